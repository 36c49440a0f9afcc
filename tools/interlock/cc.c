/*
 * cc.c: interlock cc and interlock c++, compilers for Win32 sources.
 *
 * The host's compiler runs with the predefined words of a compiler for Windows, with the headers, and, when it links,
 * with the library. Options of the caller come later on the command line and win. Options that only matter to a linker
 * for Windows are dropped, and so are import libraries: libinterlock has their functions, or nothing has.
 */
#include "command.h"
#include "words.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -fPIC: all code of Windows may be in a DLL. -fms-extensions: as in gcc for Windows. The formats are Microsoft's
   (language.h): the compiler would check them by the host's rules. Sources have Microsoft's pragmas (warning, comment). */
static const char predefined[] = "-D_WIN32=1 -D_WIN64=1 -DWIN32=1 -D_INTEGRAL_MAX_BITS=64 -fshort-wchar -fms-extensions -fPIC "
                                 "-D__INTERLOCK_CC__=1 -DINTERLOCK_KEYWORDS_ONLY -Wno-format -Wno-unknown-pragmas -fno-builtin-printf -fno-builtin-fprintf "
                                 "-fno-builtin-sprintf -fno-builtin-snprintf -fno-builtin-vprintf -fno-builtin-vfprintf "
                                 "-fno-builtin-vsprintf -fno-builtin-vsnprintf "
#if defined(__x86_64__)
                                 "-D_M_X64=100 -D_M_AMD64=100 "
#elif defined(__aarch64__)
                                 "-D_M_ARM64=1 "
#endif
                                 INTERLOCK_USER_ARGS;

/* Options with which the compiler does not link. */
static const char *const not_linking[] = {"-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "-r", "-nostdlib", "-nodefaultlibs",
                                          "-emit-llvm", NULL};
/* Options whose argument is the next word, if they are a word of their own. */
static const char *const with_argument[] = {
    "-o", "-x", "-I", "-L", "-D", "-U", "-l", "-T", "-u", "-z", "-e", "-MF", "-MT", "-MQ", "-include", "-imacros", "-isystem",
    "-idirafter", "-iquote", "-iprefix", "-isysroot", "-B", "-Xlinker", "-Xpreprocessor", "-Xassembler", "-Xclang", "--param",
    "-target", "--sysroot", "-aux-info", "-dumpbase", "-wrapper", NULL};
static const char *const of_windows[] = {"-mwindows", "-mconsole", "-municode", "-mthreads", "-mdll", "-mwin32", "-mno-cygwin",
                                         NULL};
/* Beginnings of options of the linker. */
static const char *const of_windows_linker[] = {
    "--subsystem", "--major-", "--minor-", "--enable-auto-import", "--disable-auto-import", "--enable-runtime-pseudo-reloc",
    "--enable-stdcall-fixup", "--disable-stdcall-fixup", "--kill-at", "--add-stdcall-alias", "--output-def", "--dynamicbase",
    "--disable-dynamicbase", "--nxcompat", "--disable-nxcompat", "--high-entropy-va", "--disable-high-entropy-va",
    "--large-address-aware", "--tsaware", "--no-seh", "--image-base", "--export-all-symbols", "--exclude-all-symbols",
    "--insert-timestamp", "--no-insert-timestamp", "--dll", NULL};
static const char *const import_libraries[] = {
    "advapi32", "avrt", "bcrypt", "comctl32", "comdlg32", "crypt32", "dbghelp", "gdi32", "imagehlp", "iphlpapi", "kernel32",
    "kernelbase", "mincore", "mingw32", "mingwex", "moldname", "msvcrt", "mswsock", "netapi32", "ntdll", "ole32", "oleaut32",
    "onecore", "psapi", "rpcrt4", "secur32", "setupapi", "shell32", "shlwapi", "synchronization", "ucrt", "ucrtbase", "user32",
    "userenv", "uxtheme", "winmm", "winspool", "ws2_32", "wsock32", NULL};

static const char usage[] =
    "usage: interlock cc|c++ [--compiler=COMMAND] [options of the compiler] FILE...\n"
    "Compiles and links Win32 sources: with _WIN32, a 16-bit wchar_t, __declspec and similar words, windows.h, and libinterlock.\n"
    "  --compiler=COMMAND  the compiler to use: gcc or clang, g++ or clang++; default: INTERLOCK_CC or gcc, for c++\n"
    "                      INTERLOCK_CXX or g++\n"
    "  --private-library   links a copy of the library whose names no other library of the process sees\n"
    "  --interlock-help    this text (--help is the compiler's own)\n";

typedef struct driver {
    const char *compiler;
    words arguments;           /* of the caller, without the dropped ones */
    bool links;
    bool has_input;
    bool is_private;
    const char *output;
    const char *import_library; /* created beside the output, or NULL */
} driver;

static bool is_in(const char *const *list, const char *word)
{
    while (*list != NULL && strcmp(*list, word) != 0)
        list++;
    return *list != NULL;
}

static bool begins_with_one(const char *const *list, const char *word)
{
    while (*list != NULL && strncmp(*list, word, strlen(*list)) != 0)
        list++;
    return *list != NULL;
}

/* The rest of the word after this beginning; NULL: the word begins differently. */
static const char *after(const char *word, const char *beginning)
{
    size_t length = strlen(beginning);

    return strncmp(word, beginning, length) == 0 ? word + length : NULL;
}

static bool takes_import_library(driver *self, const char *word)
{
    const char *rest = after(word, "-Wl,--out-implib");

    if (rest == NULL || (*rest != ',' && *rest != '='))
        return false;
    self->import_library = rest + 1;
    return true;
}

static bool is_left_out(driver *self, const char *word)
{
    const char *library = after(word, "-l"), *linker = after(word, "-Wl,");

    return is_in(of_windows, word) || (library != NULL && is_in(import_libraries, library)) ||
           takes_import_library(self, word) || (linker != NULL && begins_with_one(of_windows_linker, linker));
}

static void take_argument(driver *self, const char *word, const char *next)
{
    const char *compiler = after(word, "--compiler=");

    if (compiler != NULL) {
        self->compiler = compiler;
        return;
    }
    if (strcmp(word, "--private-library") == 0) {
        self->is_private = true;
        return;
    }
    if (is_left_out(self, word))
        return;
    if (word[0] != '-' || word[1] == '\0')
        self->has_input = true;
    if (is_in(not_linking, word))
        self->links = false;
    if (strcmp(word, "-o") == 0)
        self->output = next;
    words_add(&self->arguments, word);
}

static void take_arguments(driver *self, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        take_argument(self, argv[i], argv[i + 1]);
        if (is_in(with_argument, argv[i]) && i + 1 < argc)
            words_add(&self->arguments, argv[++i]);
    }
}

/* The folder of the C library's headers must keep its place behind those of C++. */
static void add_headers(words *command)
{
    const char *include = place_include();

    words_format(command, "-isystem%s", place_api("win32"));
    if (strcmp(include, "/usr/include") != 0)
        words_format(command, "-isystem%s", include);
    words_add(command, "-include");
    words_format(command, "%s/interlock/win32/language.h", include);
}

/* Programs built with an uninstalled command find the library in the build directory; an installed library is found by
   the loader, as with pkg-config. */
static void add_library(words *command)
{
    words_format(command, "-L%s", place_library());
    if (place_is_build())
        words_format(command, "-Wl,-rpath,%s", place_library());
    words_add(command, "-linterlock");
}

/* The main of a program that has a wmain, as _tmain is with UNICODE. The linker takes it if there is no main. */
static void add_wide_main(words *command)
{
    words_format(command, "-L%s", place_library());
    words_add(command, "-l:libinterlock-wmain.a");
}

/* All of it, before the libraries of the caller: one of them may have the same names. */
static void add_private_library(words *command)
{
    words_format(command, "-L%s", place_library());
    words_split(command, "-Wl,--exclude-libs,libinterlock.a -Wl,--push-state,--whole-archive -l:libinterlock.a -Wl,--pop-state");
}

/* Programs for Windows link with an import library. Here it is a linker script that names the library itself. */
static int write_import_library(const driver *self)
{
    char path[PATH_MAX];
    FILE *file = realpath(self->output != NULL ? self->output : "a.out", path) != NULL ? fopen(self->import_library, "w") : NULL;
    bool failed = file == NULL || fprintf(file, "INPUT(\"%s\")\n", path) < 0;

    if ((file != NULL && fclose(file) != 0) || failed) {
        fprintf(stderr, "interlock: cannot write %s\n", self->import_library);
        return 1;
    }
    return 0;
}

static int compile(driver *self)
{
    static words command; /* static: never freed, and not a leak */
    int status;

    words_split(&command, self->compiler);
    words_split(&command, predefined);
    add_headers(&command);
    if (self->is_private && self->links && self->has_input)
        add_private_library(&command);
    for (size_t i = 0; i < self->arguments.count; i++)
        words_add(&command, self->arguments.word[i]);
    if (self->links && self->has_input)
        add_wide_main(&command);
    if (!self->is_private && self->links && self->has_input)
        add_library(&command);
    if (self->import_library == NULL)
        words_exec(&command);
    status = words_run(&command);
    return status != 0 ? status : write_import_library(self);
}

static int run_driver(const char *variable, const char *compiler, int argc, char **argv)
{
    static driver self;

    self = (driver){.compiler = getenv(variable), .links = true};
    if (self.compiler == NULL || self.compiler[strspn(self.compiler, " ")] == '\0')
        self.compiler = compiler;
    if (argc > 1 && strcmp(argv[1], "--interlock-help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    take_arguments(&self, argc, argv);
    if (self.compiler[strspn(self.compiler, " ")] == '\0') {
        fputs(usage, stderr);
        return 2;
    }
    return compile(&self);
}

int command_cc(int argc, char **argv)
{
    return run_driver("INTERLOCK_CC", "gcc", argc, argv);
}

int command_cxx(int argc, char **argv)
{
    return run_driver("INTERLOCK_CXX", "g++", argc, argv);
}
