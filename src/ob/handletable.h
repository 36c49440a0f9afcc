/*
 * handletable.h: how handles are kept.
 *
 * A handle is the index of an entry times four. Entries live in leaves, leaves hang on branches, branches on a root
 * that is always there; leaves and branches are added when they are needed and never taken away. An entry is two words:
 *
 *      63          48 47                              4  3  2   1    0
 *     +--------------+---------------------------------+-----+----+----+
 *     |   Prepaid    |  the object's address           |  0  | P  | I  |    Object; 0: the handle is not open
 *     +--------------+---------------------------------+-----+----+----+
 *      63                            32 31                            0
 *     +--------------------------------+-------------------------------+
 *     |           Incarnation          | GrantedAccess, or next free   |    Access
 *     +--------------------------------+-------------------------------+
 *
 * P: protected from close. I: inherited. Prepaid: references that the handle has already taken on the object, beside
 * the one of its own, for lookups to take away.
 */
#ifndef INTERLOCK_HANDLETABLE_H
#define INTERLOCK_HANDLETABLE_H

#include "obp.h"

#define OBP_LEAF 256
#define OBP_BRANCH 512
#define OBP_ROOT 128

#define OBP_HANDLE_LIMIT (OBP_LEAF * OBP_BRANCH * OBP_ROOT)
#define OBP_INHERIT 1ull
#define OBP_PROTECT 2ull
#define OBP_ATTRIBUTES (OBP_INHERIT | OBP_PROTECT)
#define OBP_ADDRESS 0x0000fffffffffff0ull

typedef struct _OBP_HANDLE_ENTRY {
    volatile ULONG64 Object;
    volatile ULONG64 Access;
} OBP_HANDLE_ENTRY, *POBP_HANDLE_ENTRY;

typedef struct _OBP_LEAF_TABLE {
    OBP_HANDLE_ENTRY Entry[OBP_LEAF];
} OBP_LEAF_TABLE;

typedef struct _OBP_BRANCH_TABLE {
    OBP_LEAF_TABLE *volatile Leaf[OBP_BRANCH];
} OBP_BRANCH_TABLE;

#endif
