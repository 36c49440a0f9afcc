/* tree.h: the findings in a tree of sources. */
#ifndef INTERLOCK_PORT_TREE_H
#define INTERLOCK_PORT_TREE_H

#include "lexer.h"
#include "names.h"

#include <stdbool.h>

/* What needs attention when porting; look_kinds describes them. */
typedef enum look {
    LOOK_LONG_INTERLOCKED,
    LOOK_SCAN_LONG,
    LOOK_PRINT_LONG,
    LOOK_LONG_LIMITS,
    LOOK_SIZE_OF_LONG,
    LOOK_REDECLARED,
    LOOK_REDECLARED_TYPE,
    LOOK_POSIX_NAME,
    LOOK_DLL_MAIN,
    LOOK_TLS_CALLBACK,
    LOOK_EXCEPTION,
    LOOK_FAULT,
    LOOK_ASSEMBLY,
    LOOK_ALIGN_STRUCT,
    LOOK_SHARED_NAME,
    LOOK_MODULE,
    LOOK_WIDE_LIBRARY,
    LOOK_COUNT
} look;

typedef struct look_kind {
    const char *key;
    const char *title;
    const char *advice;
} look_kind;

extern const look_kind look_kinds[LOOK_COUNT];

typedef struct place {
    uint32_t file;
    uint32_t line;
} place;

typedef struct places {
    place *place;
    size_t count;
    size_t capacity;
} places;

typedef struct name_set {
    char **slot;
    size_t count;
    size_t capacity; /* a power of two */
} name_set;

/* An argument of an Interlocked function, to be decided when all declarations are known. */
typedef struct candidate {
    place at;
    char *name;
    bool is_long_here; /* in the same file */
} candidate;

typedef struct tree {
    char **files; /* paths below the root, printable */
    size_t file_count, file_capacity;
    size_t windows_files; /* that use a function or a header of Windows; known at the end */
    size_t lines;
    size_t binary, too_large, unreadable, too_deep;
    places *functions; /* by their number in sdk_functions */
    places *headers;
    bool *own; /* the tree defines a function or macro of that name itself */
    places looks[LOOK_COUNT];
    name_set long_names; /* declared with long in a header, or outside functions */
    candidate *candidates;
    size_t candidate_count, candidate_capacity;
} tree;

/* NULL: it cannot be opened; errno has the reason. */
tree *tree_read(const char *path);
void tree_free(tree *dead);

void tree_add_place(places *list, place at);
void name_set_add(name_set *set, const char *name, size_t length);
bool name_set_has(const name_set *set, const char *name, size_t length);
void name_set_free(name_set *set);
/* The number of a name; count if it is none of them. */
size_t tree_find(const sdk_name *table, size_t count, const char *name, size_t length);

/* The analysis of one file, and of what depends on the whole tree. */
void analyse_source(tree *self, const source *text, uint32_t file, bool is_header);
void analyse_end(tree *self);

#endif
