/*
 * names.c: readable names. Symbols of C++ are demangled by c++filt. Where the command `interlock` runs the program, it
 * also names members and elements, from the debugging information: the explored program itself needs no library for it.
 */
#include "report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_NAMES   512
#define NAME_LENGTH 160

typedef struct name {
    char key[NAME_LENGTH];
    char text[NAME_LENGTH];
} name;

static name *names;
static uint32_t name_count;

/* The first line that the command prints. */
static bool ask(const char *command, char *text, size_t size)
{
    FILE *pipe = popen(command, "r");

    text[0] = '\0';
    if (pipe == NULL)
        return false;
    bool any = fgets(text, (int)size, pipe) != NULL;
    text[strcspn(text, "\n")] = '\0';
    return pclose(pipe) == 0 && any && text[0] != '\0';
}

static name *find(const char *key)
{
    if (names == NULL)
        names = calloc(MAX_NAMES, sizeof(*names));
    for (uint32_t i = 0; names != NULL && i < name_count; i++)
        if (strcmp(names[i].key, key) == 0)
            return &names[i];
    return NULL;
}

static void remember(const char *key, const char *text)
{
    if (names == NULL || name_count == MAX_NAMES)
        return;
    name *n = &names[name_count++];
    snprintf(n->key, sizeof(n->key), "%s", key);
    snprintf(n->text, sizeof(n->text), "%s", text);
}

static bool is_mangled(const char *symbol)
{
    return strncmp(symbol, "_Z", 2) == 0 && strspn(symbol, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.") == strcspn(symbol, "+");
}

void lab_names_demangle(char *symbol, size_t size)
{
    char command[400], text[NAME_LENGTH], rest[64];

    if (!is_mangled(symbol))
        return;
    snprintf(rest, sizeof(rest), "%s", symbol + strcspn(symbol, "+"));
    symbol[strcspn(symbol, "+")] = '\0';
    const name *known = find(symbol);
    if (known == NULL) {
        snprintf(command, sizeof(command), "c++filt -p %.300s 2>/dev/null", symbol);
        if (!ask(command, text, sizeof(text)))
            snprintf(text, sizeof(text), "%s", symbol);
        remember(symbol, text);
    } else {
        snprintf(text, sizeof(text), "%s", known->text);
    }
    snprintf(symbol, size, "%s%s", text, rest);
}

bool lab_names_variable(uintptr_t address, char *buffer, size_t size)
{
    const char *interlock = getenv("INTERLOCK_COMMAND");
    char key[32], command[512], text[NAME_LENGTH];

    if (interlock == NULL || interlock[0] != '/')
        return false;
    snprintf(key, sizeof(key), "%lx", address);
    const name *known = find(key);
    if (known == NULL) {
        snprintf(command, sizeof(command), "'%.300s' lab --describe /proc/%d/exe %s 2>/dev/null", interlock, getpid(), key);
        remember(key, ask(command, text, sizeof(text)) ? text : "");
        known = find(key);
    }
    if (known == NULL || known->text[0] == '\0')
        return false;
    snprintf(buffer, size, "%s", known->text);
    return true;
}
