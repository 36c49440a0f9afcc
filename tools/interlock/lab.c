/* lab.c: compiles a test for the explorer, links it with the instrumented library, and runs it. */
#include "command.h"
#include "words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] = "usage: interlock lab [options of the explorer] FILE.c... [-- options of the compiler]\n"
                            "       interlock lab --scale [options]\n"
                            "  --gdb     runs it in gdb (with --replay TOKEN)\n"
                            "  --scale   counts the cache lines that locks move (--scale --help)\n"
                            "  --help    with a FILE.c, also the options of the explorer\n";

static void add_compiler(words *list)
{
    const char *compiler = getenv("CC");

    words_split(list, compiler != NULL ? compiler : "gcc");
    words_split(list,
              "-std=gnu11 -O1 -g -fsanitize=thread -fno-omit-frame-pointer -fno-optimize-sibling-calls "
              "--param=tsan-instrument-func-entry-exit=0 --param=tsan-distinguish-volatile=1 " INTERLOCK_USER_ARGS);
    if (place_is_build())
        words_add(list, "-I" INTERLOCK_SOURCE_ROOT "/lab/include");
    words_format(list, "-I%s", place_include());
    words_format(list, "-I%s", place_api("wdk"));
    words_format(list, "-I%s", place_api("win32"));
}

static int compile(const words *files, const words *extra, const char *folder, words *objects)
{
    for (size_t i = 0; i < files->count; i++) {
        words command = {.count = 0};

        add_compiler(&command);
        for (size_t w = 0; w < extra->count; w++)
            words_add(&command, extra->word[w]);
        words_add(&command, "-c");
        words_add(&command, files->word[i]);
        words_add(&command, "-o");
        words_format(objects, "%s/%zu.o", folder, i);
        words_add(&command, objects->word[i]);
        int status = words_run(&command);
        words_free(&command);
        if (status != 0)
            return status;
    }
    return 0;
}

/* The objects are compiled with the sanitizer and linked without it: the lab replaces its runtime. */
static int link_program(const words *objects, const char *program)
{
    words command = {.count = 0};
    const char *compiler = getenv("CC");

    words_split(&command, compiler != NULL ? compiler : "gcc");
    for (size_t i = 0; i < objects->count; i++)
        words_add(&command, objects->word[i]);
    words_format(&command, "-L%s", place_is_build() ? INTERLOCK_BUILD "/lab" : place_library());
    words_split(&command, "-no-pie -Wl,-z,now -Wl,--warn-unresolved-symbols " INTERLOCK_LAB_WRAPS " -linterlock-lab -o");
    words_add(&command, program);
    return words_run(&command);
}

/* The explorer uses faults itself; gdb stops where it reports a failure, on the thread of the last step. */
static void add_gdb(words *command)
{
    static const char *const orders[] = {"handle SIGSEGV SIGPROF nostop noprint pass", "break lab_sched_fail",
                                         "set print thread-events off"};

    words_add(command, "gdb");
    words_add(command, "-q");
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        words_add(command, "-ex");
        words_add(command, orders[i]);
    }
    words_add(command, "--args");
}

static void remove_folder(const char *folder, const words *objects, const char *program)
{
    for (size_t i = 0; i < objects->count; i++)
        unlink(objects->word[i]);
    unlink(program);
    rmdir(folder);
}

static int count_lines(int argc, char **argv)
{
    words command = {.count = 0};

    words_format(&command, "%s/lab-scale", place_is_build() ? INTERLOCK_BUILD "/lab/scale" : place_libexec());
    for (int i = 0; i < argc; i++)
        words_add(&command, argv[i]);
    return words_run(&command);
}

int command_lab(int argc, char **argv)
{
    words files = {.count = 0}, options = {.count = 0}, extra = {.count = 0}, objects = {.count = 0};
    char folder[] = "/tmp/interlock-lab-XXXXXX";
    int gdb = 0, help = 0, i;

    if (argc > 1 && strcmp(argv[1], "--scale") == 0)
        return count_lines(argc - 2, argv + 2);
    for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        size_t length = strlen(argv[i]);

        if (strcmp(argv[i], "--gdb") == 0)
            gdb = 1;
        else if (strcmp(argv[i], "--help") == 0)
            help = 1;
        else if (length > 2 && strcmp(argv[i] + length - 2, ".c") == 0)
            words_add(&files, argv[i]);
        else
            words_add(&options, argv[i]);
    }
    for (i++; i < argc; i++)
        words_add(&extra, argv[i]);
    if (help) {
        fputs(usage, stdout);
        fflush(stdout);
        words_add(&options, "--help");
    }
    if (files.count == 0) {
        if (!help)
            fputs(usage, stderr);
        return help ? 0 : 2;
    }
    if (mkdtemp(folder) == NULL) {
        perror("interlock: mkdtemp");
        return 2;
    }
    char program[sizeof(folder) + sizeof("/test")];
    snprintf(program, sizeof(program), "%s/test", folder);
    int status = compile(&files, &extra, folder, &objects);
    if (status == 0)
        status = link_program(&objects, program);
    if (status == 0) {
        words command = {.count = 0};

        if (gdb)
            add_gdb(&command);
        words_add(&command, program);
        for (size_t w = 0; w < options.count; w++)
            words_add(&command, options.word[w]);
        status = words_run(&command);
        if (help)
            status = 0; /* to the explorer --help is a wrong option, which its usage answers */
    }
    remove_folder(folder, &objects, program);
    return status;
}
