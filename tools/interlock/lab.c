/* lab.c: compiles a test for the explorer, links it with the instrumented library, and runs it. */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_WORDS 256

typedef struct words {
    const char *word[MAX_WORDS];
    int count;
} words;

static const char usage[] = "usage: interlock lab [options of the explorer] FILE.c... [-- options of the compiler]\n"
                            "       interlock lab --scale [options]\n"
                            "  --gdb     runs it in gdb (with --replay TOKEN)\n"
                            "  --scale   counts the cache lines that locks move (--scale --help)\n"
                            "  --help    with a FILE.c, also the options of the explorer\n";

static void add(words *list, const char *word)
{
    if (list->count < MAX_WORDS - 1)
        list->word[list->count++] = word;
}

/* The words of a text that has no quotes. */
static void add_split(words *list, const char *text)
{
    char *copy = strdup(text);

    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        add(list, word);
}

static char *format(const char *first, const char *second)
{
    char *text = NULL;

    if (asprintf(&text, "%s%s", first, second) < 0)
        exit(2);
    return text;
}

/* The command runs in its build directory, or installed. */
static int is_in_build_folder(void)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

    if (length < 0)
        return 0;
    path[length] = '\0';
    return strncmp(path, INTERLOCK_BUILD "/", strlen(INTERLOCK_BUILD) + 1) == 0;
}

static void add_compiler(words *list)
{
    const char *compiler = getenv("CC");

    add_split(list, compiler != NULL ? compiler : "gcc");
    add_split(list,
              "-std=gnu11 -O1 -g -fsanitize=thread -fno-omit-frame-pointer -fno-optimize-sibling-calls "
              "--param=tsan-instrument-func-entry-exit=0 --param=tsan-distinguish-volatile=1 " INTERLOCK_USER_ARGS);
    if (is_in_build_folder()) {
        add_split(list, "-I" INTERLOCK_SOURCE_ROOT "/lab/include -I" INTERLOCK_SOURCE_ROOT
                        "/include -I" INTERLOCK_SOURCE_ROOT "/include/wdk -I" INTERLOCK_SOURCE_ROOT "/include/win32");
    } else {
        add_split(list, "-I" INTERLOCK_INCLUDEDIR " -I" INTERLOCK_INCLUDEDIR "/interlock/wdk -I" INTERLOCK_INCLUDEDIR
                        "/interlock/win32");
    }
}

static int run(const words *list)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        execvp(list->word[0], (char **)(void *)list->word);
        fprintf(stderr, "interlock: cannot run %s: %s\n", list->word[0], strerror(errno));
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return 2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

static int compile(const words *files, const words *extra, const char *folder, words *objects)
{
    for (int i = 0; i < files->count; i++) {
        words command = {.count = 0};
        char *object = NULL;

        if (asprintf(&object, "%s/%d.o", folder, i) < 0)
            return 2;
        add_compiler(&command);
        for (int w = 0; w < extra->count; w++)
            add(&command, extra->word[w]);
        add(&command, "-c");
        add(&command, files->word[i]);
        add(&command, "-o");
        add(&command, object);
        int status = run(&command);
        if (status != 0)
            return status;
        add(objects, object);
    }
    return 0;
}

/* The objects are compiled with the sanitizer and linked without it: the lab replaces its runtime. */
static int link_program(const words *objects, const char *program)
{
    words command = {.count = 0};
    const char *compiler = getenv("CC");

    add_split(&command, compiler != NULL ? compiler : "gcc");
    for (int i = 0; i < objects->count; i++)
        add(&command, objects->word[i]);
    add_split(&command, is_in_build_folder() ? "-L" INTERLOCK_BUILD "/lab" : "-L" INTERLOCK_LIBDIR);
    add_split(&command, "-no-pie -Wl,-z,now -Wl,--warn-unresolved-symbols " INTERLOCK_LAB_WRAPS " -linterlock-lab -o");
    add(&command, program);
    return run(&command);
}

/* The explorer uses faults itself; gdb stops where it reports a failure, on the thread of the last step. */
static void add_gdb(words *command)
{
    static const char *const orders[] = {"handle SIGSEGV SIGPROF nostop noprint pass", "break lab_sched_fail",
                                         "set print thread-events off"};

    add(command, "gdb");
    add(command, "-q");
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        add(command, "-ex");
        add(command, orders[i]);
    }
    add(command, "--args");
}

static void remove_folder(const char *folder, const words *objects, const char *program)
{
    for (int i = 0; i < objects->count; i++)
        unlink(objects->word[i]);
    unlink(program);
    rmdir(folder);
}

static int count_lines(int argc, char **argv)
{
    const char *program = INTERLOCK_LIBEXECDIR "/interlock/lab-scale";
    words command = {.count = 0};

    add(&command, is_in_build_folder() ? INTERLOCK_BUILD "/lab/scale/lab-scale" : program);
    for (int i = 0; i < argc; i++)
        add(&command, argv[i]);
    return run(&command);
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
            add(&files, argv[i]);
        else
            add(&options, argv[i]);
    }
    for (i++; i < argc; i++)
        add(&extra, argv[i]);
    if (help) {
        fputs(usage, stdout);
        fflush(stdout);
        add(&options, "--help");
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
    char *program = format(folder, "/test");
    int status = compile(&files, &extra, folder, &objects);
    if (status == 0)
        status = link_program(&objects, program);
    if (status == 0) {
        words command = {.count = 0};

        if (gdb)
            add_gdb(&command);
        add(&command, program);
        for (int w = 0; w < options.count; w++)
            add(&command, options.word[w]);
        status = run(&command);
        if (help)
            status = 0; /* to the explorer --help is a wrong option, which its usage answers */
    }
    remove_folder(folder, &objects, program);
    free(program);
    return status;
}
