/*
 * debugdata.h: where a debugger finds what the library keeps, in a live process or in a core file. Part of ke.h, which
 * includes it.
 *
 * The block is found by its symbol; in a program without symbols by Magic, where Self is the block's own address. What
 * the roots point to is described by the internal headers: a debugger of another Version or LayoutHash cannot read it.
 */
#ifndef INTERLOCK_DEBUGDATA_H
#define INTERLOCK_DEBUGDATA_H

#include <interlock/ntdef.h>

INTERLOCK_BEGIN

/* A variable of the library, by the name that it has there. */
typedef struct _KD_ROOT {
    PCSTR Name;
    PVOID Address;
    SIZE_T Size;
} KD_ROOT, *PKD_ROOT;

#define KD_DEBUGGER_DATA_MAGIC "Interlock KDBG\n"

typedef struct _KD_DEBUGGER_DATA {
    CHAR Magic[16];
    struct _KD_DEBUGGER_DATA *Self;
    ULONG Size;               /* of this block */
    volatile ULONG Ready;     /* 1: the roots may be looked at */
    CHAR Version[32];
    ULONG64 LayoutHash;
    const KD_ROOT *FirstRoot; /* and those behind it, up to */
    const KD_ROOT *EndOfRoots;
} KD_DEBUGGER_DATA, *PKD_DEBUGGER_DATA;

extern NTKERNELAPI KD_DEBUGGER_DATA KdDebuggerDataBlock;

INTERLOCK_END

#endif
