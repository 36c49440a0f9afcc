/* memory.c: the C library accesses the program's memory too: memcpy, strcpy, snprintf. */
#include "program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char text[64], other[64];

static void *copy_there(void *unused)
{
    memcpy(text, other, sizeof(text));
    return unused;
}

static void *copy_back(void *unused)
{
    memcpy(other, text, 10);
    return unused;
}

static void *clear(void *unused)
{
    memset(text, 0, sizeof(text));
    return unused;
}

static void *write_text(void *unused)
{
    strcpy(text, "text");
    return unused;
}

static void *print_text(void *unused)
{
    snprintf(text, sizeof(text), "%d", 5);
    return unused;
}

static void *measure(void *unused)
{
    assert(strlen(text) < sizeof(text));
    return unused;
}

static void *compare(void *unused)
{
    assert(strcmp(text, "texts") != 0);
    return unused;
}

static void *duplicate(void *unused)
{
    free(strdup(text));
    return unused;
}

static void *write_locked(void *unused)
{
    pthread_mutex_lock(&mutex);
    strcpy(text, "text");
    memmove(text + 1, text, strlen(text) + 1);
    assert(strcmp(text, "ttext") == 0 && memchr(text, 'x', sizeof(text)) == text + 3 && strrchr(text, 't') == text + 4);
    strcat(text, "s");
    strncat(text, "tail", 1);
    assert(strlen(text) == 7 && strnlen(text, 3) == 3 && memcmp(text, "ttextst", 8) == 0 && strstr(text, "xt") == text + 3);
    assert(snprintf(text, 3, "%s", "long") == 4 && strncmp(text, "lots", 2) == 0 && strchr(text, 'o') == text + 1);
    pthread_mutex_unlock(&mutex);
    return unused;
}

/* Beside each other, not in the same bytes. */
static void *write_half(void *half)
{
    memset(half, 1, sizeof(text) / 2);
    return half;
}

CORRECT(memory_locked)
{
    run_two(write_locked, write_locked);
}

CORRECT(memory_halves)
{
    pthread_t thread;

    pthread_create(&thread, NULL, write_half, text);
    write_half(text + sizeof(text) / 2);
    pthread_join(thread, NULL);
}

BROKEN(memory_copied, "race")
{
    run_two(copy_there, copy_back);
}

BROKEN(memory_cleared, "race")
{
    run_two(clear, measure);
}

BROKEN(memory_text_written, "race")
{
    run_two(write_text, compare);
}

BROKEN(memory_text_printed, "race")
{
    run_two(print_text, measure);
}

BROKEN(memory_text_duplicated, "race")
{
    run_two(write_text, duplicate);
}

BROKEN(memory_copied_after_free, "freed memory")
{
    char *block = malloc(16);
    char *volatile kept = block; /* the compiler notices otherwise */

    free(block);
    memcpy(other, kept, 16);
}

BROKEN(memory_copied_beyond, "wild access")
{
    char *volatile block = malloc(16);

    memset(block, 1, 17);
    free(block);
}
