/* words.c: command lines, and the places of the build directory or of an installed tree. */
#include "words.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *or_exit(void *memory)
{
    if (memory == NULL) {
        fprintf(stderr, "interlock: out of memory\n");
        exit(2);
    }
    return memory;
}

void words_add(words *list, const char *word)
{
    if (list->count + 2 > list->capacity) {
        list->capacity = list->capacity * 2 + 32;
        list->word = or_exit(realloc(list->word, list->capacity * sizeof(*list->word)));
    }
    list->word[list->count++] = word;
    list->word[list->count] = NULL;
}

void words_split(words *list, const char *text)
{
    char *copy = or_exit(strdup(text));

    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        words_add(list, word);
}

static __attribute__((format(printf, 1, 0))) char *formatted(const char *format, va_list arguments)
{
    char *text = NULL;

    return vasprintf(&text, format, arguments) < 0 ? or_exit(NULL) : text;
}

void words_format(words *list, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    words_add(list, formatted(format, arguments));
    va_end(arguments);
}

void words_exec(const words *list)
{
    execvp(list->word[0], (char **)(void *)list->word);
    fprintf(stderr, "interlock: cannot run %s: %s\n", list->word[0], strerror(errno));
    _exit(127);
}

int words_run(const words *list)
{
    int status;
    pid_t child = fork();

    if (child == 0)
        words_exec(list);
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return 2;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

void words_free(words *list)
{
    free(list->word);
}

static const char *own_path(void)
{
    static char path[PATH_MAX];
    ssize_t length = path[0] != '\0' ? 0 : readlink("/proc/self/exe", path, sizeof(path) - 1);

    return length < 0 ? "" : path;
}

const char *place_command(void)
{
    return own_path();
}

bool place_is_build(void)
{
    return strncmp(own_path(), INTERLOCK_BUILD "/", strlen(INTERLOCK_BUILD) + 1) == 0;
}

/* Where the command is PREFIX/bin/interlock, PREFIX; otherwise the one that it was configured with. */
static const char *prefix(void)
{
    static const char end[] = "/" INTERLOCK_BINDIR "/interlock";
    static char found[PATH_MAX];
    size_t length = strlen(own_path());

    if (length <= sizeof(end) - 1 || strcmp(own_path() + length - (sizeof(end) - 1), end) != 0)
        return INTERLOCK_PREFIX;
    memcpy(found, own_path(), length - (sizeof(end) - 1));
    return found;
}

/* An absolute folder is the one that was configured. */
static const char *installed(const char *folder, const char *below)
{
    char *text = NULL;

    if (asprintf(&text, "%s%s%s%s", folder[0] == '/' ? "" : prefix(), folder[0] == '/' ? "" : "/", folder, below) < 0)
        or_exit(NULL);
    return text;
}

const char *place_include(void)
{
    return place_is_build() ? INTERLOCK_SOURCE_ROOT "/include" : installed(INTERLOCK_INCLUDEDIR, "");
}

const char *place_api(const char *api)
{
    char *text = NULL;

    if (asprintf(&text, place_is_build() ? "%s/%s" : "%s/interlock-%s", place_include(), api) < 0)
        or_exit(NULL);
    return text;
}

const char *place_library(void)
{
    return place_is_build() ? INTERLOCK_BUILD "/src" : installed(INTERLOCK_LIBDIR, "");
}

const char *place_libexec(void)
{
    return installed(INTERLOCK_LIBEXECDIR, "/interlock");
}
