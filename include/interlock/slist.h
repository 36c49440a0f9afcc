/*
 * slist.h: interlocked singly linked lists. Lock-free, last in first out, usable at any IRQL and from user mode.
 *
 * Header and entries are aligned to 16 bytes; what is not raises STATUS_DATATYPE_MISALIGNMENT. Zeroed memory is an
 * empty list. The depth is kept in 16 bits. An entry that was popped may be unmapped at once, though others may still
 * try to pop it: they recognise the fault and start over. For that the library handles SIGSEGV and SIGBUS from the first
 * pop on, and passes every other fault on to the handler that was installed before. A handler that the program installs
 * later is noticed within a few thousand pops of a thread.
 */
#ifndef INTERLOCK_SLIST_H
#define INTERLOCK_SLIST_H

#include <interlock/ntdef.h>

INTERLOCK_BEGIN

typedef struct DECLSPEC_ALIGN(16) _SLIST_ENTRY {
    struct _SLIST_ENTRY *Next;
} SLIST_ENTRY, *PSLIST_ENTRY;

typedef union DECLSPEC_ALIGN(16) _SLIST_HEADER {
    __extension__ struct {
        ULONGLONG Alignment;
        ULONGLONG Region;
    };
    struct {
        ULONGLONG Depth : 16;
        ULONGLONG Sequence : 48;
        ULONGLONG Reserved : 4;
        ULONGLONG NextEntry : 60; /* the address of the first entry without its four low bits, which are 0 */
    } HeaderX64;
} SLIST_HEADER, *PSLIST_HEADER;

C_ASSERT(sizeof(SLIST_HEADER) == 16);
C_ASSERT(sizeof(SLIST_ENTRY) == 16);

/* Push, pop, and flush return an entry or NULL: push the one that was first before, pop the one it took out, flush the
 * first of all that it took out. */

NTKERNELAPI VOID InitializeSListHead(PSLIST_HEADER ListHead);
NTKERNELAPI PSLIST_ENTRY InterlockedPushEntrySList(PSLIST_HEADER ListHead, PSLIST_ENTRY ListEntry);
NTKERNELAPI PSLIST_ENTRY InterlockedPushListSListEx(PSLIST_HEADER ListHead, PSLIST_ENTRY List, PSLIST_ENTRY ListEnd,
                                                    ULONG Count);
NTKERNELAPI PSLIST_ENTRY InterlockedPopEntrySList(PSLIST_HEADER ListHead);
NTKERNELAPI PSLIST_ENTRY InterlockedFlushSList(PSLIST_HEADER ListHead);
NTKERNELAPI USHORT QueryDepthSList(PSLIST_HEADER ListHead);
NTSYSAPI PSLIST_ENTRY RtlFirstEntrySList(const SLIST_HEADER *ListHead);

#define InterlockedPushListSList InterlockedPushListSListEx

/* The names of the user-mode runtime. */

#define RtlInitializeSListHead InitializeSListHead
#define RtlInterlockedPushEntrySList InterlockedPushEntrySList
#define RtlInterlockedPushListSListEx InterlockedPushListSListEx
#define RtlInterlockedPopEntrySList InterlockedPopEntrySList
#define RtlInterlockedFlushSList InterlockedFlushSList
#define RtlQueryDepthSList QueryDepthSList

INTERLOCK_END

#endif
