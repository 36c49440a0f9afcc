/*
 * lab.c: compiles a program for the explorer, links it with the instrumented library, and runs it. The explored program
 * replaces this process's child; its folder is removed before it runs, so that nothing is left behind if it is killed.
 * Before that, while it is compiled, a process of its own waits for the end of this one and then removes the folder.
 */
#include "command.h"
#include "describe.h"
#include "words.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: interlock lab [options of the explorer] FILE... [scenario...] [-- options of the compiler and linker]\n"
    "       interlock lab --scale [options]\n"
    "FILE: C or C++ sources (.c .cc .cpp .cxx .C), objects and archives (.o .a). Explores the first of these that it finds: the\n"
    "functions of --function, scenarios (LAB_SCENARIO), test cases of GoogleTest or cmocka, main.\n"
    "  --gdb     runs it in gdb (with --replay TOKEN)\n"
    "  --keep FILE  leaves the linked program in FILE\n"
    "  --scale   counts the cache lines that locks move (--scale --help)\n"
    "  --help    with a FILE, also the options of the explorer\n";

typedef enum file_kind { FILE_NONE, FILE_C, FILE_CXX, FILE_OBJECT } file_kind;

static file_kind kind_of(const char *name)
{
    static const struct {
        const char *ending;
        file_kind kind;
    } endings[] = {{".c", FILE_C},     {".cc", FILE_CXX},  {".cpp", FILE_CXX}, {".cxx", FILE_CXX},
                   {".c++", FILE_CXX}, {".C", FILE_CXX},   {".o", FILE_OBJECT}, {".a", FILE_OBJECT}};
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot != NULL && i < sizeof(endings) / sizeof(endings[0]); i++)
        if (strcmp(dot, endings[i].ending) == 0)
            return endings[i].kind;
    return FILE_NONE;
}

static void add_compiler_command(words *list, bool cxx)
{
    const char *compiler = getenv(cxx ? "CXX" : "CC");

    words_split(list, compiler != NULL && compiler[0] != '\0' ? compiler : cxx ? "g++" : "gcc");
}

/* The headers of Windows come last: some have names that the host's headers have too. */
static void add_compiler(words *list, bool cxx)
{
    add_compiler_command(list, cxx);
    if (!cxx)
        words_add(list, "-std=gnu11");
    words_split(list, "-O1 -g -fsanitize=thread -fno-omit-frame-pointer -fno-optimize-sibling-calls " INTERLOCK_USER_ARGS " "
                      INTERLOCK_LAB_CALLED);
    if (strstr(list->word[0], "clang") == NULL)
        words_split(list, "--param=tsan-instrument-func-entry-exit=0 --param=tsan-distinguish-volatile=1");
    if (place_is_build())
        words_add(list, "-I" INTERLOCK_SOURCE_ROOT "/lab/include");
    words_format(list, "-isystem%s", place_include());
    words_add(list, "-idirafter");
    words_add(list, place_api("wdk"));
    words_add(list, "-idirafter");
    words_add(list, place_api("win32"));
}

static int compile(const words *files, const words *extra, const char *folder, words *objects)
{
    for (size_t i = 0; i < files->count; i++) {
        words command = {.count = 0};

        if (kind_of(files->word[i]) == FILE_OBJECT) {
            words_add(objects, files->word[i]);
            continue;
        }
        add_compiler(&command, kind_of(files->word[i]) == FILE_CXX);
        for (size_t w = 0; w < extra->count; w++)
            if (strncmp(extra->word[w], "-l", 2) != 0 && strncmp(extra->word[w], "-Wl,", 4) != 0)
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

static bool has_cxx(const words *files)
{
    for (size_t i = 0; i < files->count; i++)
        if (kind_of(files->word[i]) == FILE_CXX)
            return true;
    return false;
}

/*
 * The objects are compiled with the sanitizer and linked without it: the lab replaces its runtime. C++'s library is linked
 * statically, so that its calls and its memory are the explorer's too.
 */
static int link_program(const words *objects, const words *extra, bool cxx, const char *program)
{
    words command = {.count = 0};

    add_compiler_command(&command, cxx);
    for (size_t i = 0; i < objects->count; i++)
        words_add(&command, objects->word[i]);
    words_format(&command, "-L%s", place_is_build() ? INTERLOCK_BUILD "/lab" : place_library());
    words_split(&command, INTERLOCK_LAB_LINK " -linterlock-lab");
    if (cxx)
        words_split(&command, "-static-libstdc++ -static-libgcc");
    for (size_t w = 0; w < extra->count; w++)
        if (strncmp(extra->word[w], "-l", 2) == 0 || strncmp(extra->word[w], "-L", 2) == 0 ||
            strncmp(extra->word[w], "-Wl,", 4) == 0 || strcmp(extra->word[w], "-static") == 0 ||
            strcmp(extra->word[w], "-pthread") == 0 || strcmp(extra->word[w], "-fopenmp") == 0)
            words_add(&command, extra->word[w]);
    for (size_t w = 0; w < extra->count; w++)
        if (strcmp(extra->word[w], "-lgtest_main") == 0 || strcmp(extra->word[w], "-lgmock_main") == 0)
            words_add(&command, "-Wl,-u,main"); /* it is in a library */
    words_add(&command, "-o");
    words_add(&command, program);
    return words_run(&command);
}

/* The explorer uses faults itself; gdb stops where it reports a failure, on the thread of the last step. */
static void add_gdb(words *command)
{
    static const char *const orders[] = {"handle SIGSEGV SIGSYS SIGPROF nostop noprint pass", "break lab_sched_fail",
                                         "set print thread-events off"};

    words_add(command, "gdb");
    words_add(command, "-q");
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        words_add(command, "-ex");
        words_add(command, orders[i]);
    }
    words_add(command, "--args");
}

static void remove_folder(const char *folder)
{
    DIR *files = opendir(folder);

    for (struct dirent *file; files != NULL && (file = readdir(files)) != NULL;)
        unlinkat(dirfd(files), file->d_name, 0);
    if (files != NULL)
        closedir(files);
    rmdir(folder);
}

/* An interrupt from the keyboard goes to the whole job: the guard survives it. A compiler that still runs may add one
   more file. */
static void guard_folder(const char *folder)
{
    int ends[2];
    char byte;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    if (fork() == 0) {
        for (int number = 1; number < NSIG; number++)
            signal(number, SIG_IGN);
        close(ends[1]);
        for (int file = 0; file <= 2; file++)
            close(file);
        while (read(ends[0], &byte, 1) > 0) {
        }
        for (int i = 0; i < 100 && access(folder, F_OK) == 0; i++) {
            remove_folder(folder);
            usleep(10000);
        }
        _exit(0);
    }
    close(ends[0]); /* the other end is closed when this process has ended */
}

static int count_lines(int argc, char **argv)
{
    words command = {.count = 0};

    words_format(&command, "%s/lab-scale", place_is_build() ? INTERLOCK_BUILD "/lab/scale" : place_libexec());
    for (int i = 0; i < argc; i++)
        words_add(&command, argv[i]);
    return words_run(&command);
}

typedef struct lab_command {
    words files, options, extra, objects;
    bool gdb, help;
    const char *keep;
    const char *temporaries; /* TMPDIR, as the program gets it */
} lab_command;

/* Options whose value may look like the name of a file. */
static bool takes_value(const char *option)
{
    static const char *const with_file[] = {"--html", "--checkpoint", "--resume", "--argument", "--replay", "--function"};

    for (size_t i = 0; i < sizeof(with_file) / sizeof(with_file[0]); i++)
        if (strcmp(option, with_file[i]) == 0)
            return true;
    return false;
}

static void take_words(lab_command *c, int argc, char **argv)
{
    int i;

    for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--gdb") == 0) {
            c->gdb = true;
        } else if (strcmp(argv[i], "--help") == 0) {
            c->help = true;
        } else if (strcmp(argv[i], "--keep") == 0 && i + 1 < argc) {
            c->keep = argv[++i];
        } else if (takes_value(argv[i]) && i + 1 < argc) {
            words_add(&c->options, argv[i]);
            words_add(&c->options, argv[++i]);
        } else if (kind_of(argv[i]) != FILE_NONE) {
            words_add(&c->files, argv[i]);
        } else {
            words_add(&c->options, argv[i]);
        }
    }
    for (i++; i < argc; i++)
        words_add(&c->extra, argv[i]);
}

static bool has_all_files(const words *files)
{
    for (size_t i = 0; i < files->count; i++) {
        if (access(files->word[i], R_OK) != 0) {
            fprintf(stderr, "interlock: %s: %s\n", files->word[i], strerror(errno));
            return false;
        }
    }
    return true;
}

/* Runs from its descriptor, because the file has already been removed. gdb needs the file. */
static int run_program(lab_command *c, const char *folder, const char *program)
{
    words command = {.count = 0};
    char path[64];
    int file = open(program, O_RDONLY);

    if (c->gdb) {
        add_gdb(&command);
        words_add(&command, program);
    } else {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
        words_add(&command, path);
        remove_folder(folder);
    }
    for (size_t w = 0; w < c->options.count; w++)
        words_add(&command, c->options.word[w]);
    if (c->temporaries != NULL)
        setenv("TMPDIR", c->temporaries, 1);
    else
        unsetenv("TMPDIR");
    setenv("INTERLOCK_COMMAND", place_command(), 1);
    setenv("INTERLOCK_LAB_PROGRAM", c->files.word[0], 1);
    int status = words_run(&command);
    close(file);
    return status;
}

int command_lab(int argc, char **argv)
{
    lab_command c = {.temporaries = getenv("TMPDIR")};
    char folder[] = "/tmp/interlock-lab-XXXXXX";

    if (argc > 1 && strcmp(argv[1], "--scale") == 0)
        return count_lines(argc - 2, argv + 2);
    if (argc == 4 && strcmp(argv[1], "--describe") == 0)
        return describe_variable(argv[2], argv[3]);
    take_words(&c, argc, argv);
    if (c.help) {
        fputs(usage, stdout);
        fflush(stdout);
        words_add(&c.options, "--help");
    }
    if (c.files.count == 0) {
        if (!c.help && c.options.count != 0)
            fprintf(stderr, "interlock: no source file among the arguments: %s\n", c.options.word[c.options.count - 1]);
        if (!c.help)
            fputs(usage, stderr);
        return c.help ? 0 : 2;
    }
    if (!has_all_files(&c.files))
        return 2;
    if (mkdtemp(folder) == NULL) {
        perror("interlock: mkdtemp");
        return 2;
    }
    guard_folder(folder);
    c.temporaries = c.temporaries != NULL ? strdup(c.temporaries) : NULL; /* setenv may reuse its memory */
    setenv("TMPDIR", folder, 1); /* for the compiler's own files */
    char temporary[sizeof(folder) + sizeof("/test")];
    snprintf(temporary, sizeof(temporary), "%s/test", folder);
    const char *program = c.keep != NULL ? c.keep : temporary;
    int status = compile(&c.files, &c.extra, folder, &c.objects);
    if (status == 0)
        status = link_program(&c.objects, &c.extra, has_cxx(&c.files), program);
    if (status == 0 && c.keep == NULL)
        status = run_program(&c, folder, temporary);
    remove_folder(folder);
    return status;
}
