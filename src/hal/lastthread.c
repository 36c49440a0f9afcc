/*
 * lastthread.c: does the program have other threads?
 *
 * The host lists the threads of the process. Two kinds are not the program's: those that have ended (the first thread
 * of a process stays in the list) and the library's own, which have entered their ids in a table. (Names do not help: a
 * program may be called interlock-something, and its threads inherit that.) Two kinds briefly look like the program's, so
 * the caller asks again: a thread that is about to end, which is recorded before it counts as ended for the library, and
 * one of the library's own that has not yet entered its id.
 */
#include "halp.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define NOTED_THREADS 64 /* a power of 2 */
#define LIST_SIZE 4096
#define PATH_SIZE 64

typedef struct _HALP_LISTED {
    ULONG64 Number;
    LONG64 Next;
    USHORT Length;
    UCHAR Type;
    CHAR Name[];
} HALP_LISTED;

#define OWN_THREADS 8192 /* a power of 2; beyond them an own thread counts as one of the program's */

static volatile ULONG HalpNotedThreads[NOTED_THREADS];
static volatile ULONG HalpNotes;
volatile ULONG HalpStartingThreads;

/* The process id in the upper half, so a forked child has none; 0: free. A thread enters itself at its id or behind. */
static volatile ULONG64 HalpOwnThreads[OWN_THREADS];
HALP_THREAD_LOCAL ULONG HalpOwnPlace; /* + 1; 0: it is not entered */

static ULONG64 HalpOwnEntry(ULONG ThreadId)
{
    return (ULONG64)HalCurrentProcessId() << 32 | ThreadId;
}

VOID HalpEnterOwnThread(VOID)
{
    ULONG64 Own = HalpOwnEntry(HalCurrentThreadId());

    for (ULONG Try = 0; Try < OWN_THREADS; Try++) {
        ULONG Place = ((ULONG)Own + Try) % OWN_THREADS;
        ULONG64 Found = __atomic_load_n(&HalpOwnThreads[Place], __ATOMIC_RELAXED);
        /* relaxed: HalpStartingThreads releases it */
        if (Found >> 32 != Own >> 32 && __atomic_compare_exchange_n(&HalpOwnThreads[Place], &Found, Own, FALSE,
                                                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            HalpOwnPlace = Place + 1;
            return;
        }
    }
}

/* After it was noted: its id may soon be that of another thread. */
static VOID HalpLeaveOwnThreads(VOID)
{
    if (HalpOwnPlace != 0) {
        /* release: pairs with the acquire in HalpIsOwnThread; a thread that is not entered any more is noted */
        __atomic_store_n(&HalpOwnThreads[HalpOwnPlace - 1], 0, __ATOMIC_RELEASE);
        HalpOwnPlace = 0;
    }
}

/* The thread that has forked goes on in the child as what it was. */
VOID HalpForkChildOwnThread(VOID)
{
    if (HalpOwnPlace != 0) {
        HalpEnterOwnThread();
    }
}

static BOOLEAN HalpIsOwnThread(ULONG ThreadId)
{
    ULONG64 Own = HalpOwnEntry(ThreadId);

    for (ULONG Try = 0; Try < OWN_THREADS; Try++) {
        /* acquire: pairs with the release in HalpLeaveOwnThreads */
        if (__atomic_load_n(&HalpOwnThreads[(ThreadId + Try) % OWN_THREADS], __ATOMIC_ACQUIRE) == Own) {
            return TRUE;
        }
    }
    return FALSE;
}

VOID HalNoteThreadEnds(VOID)
{
    /* relaxed, both: the change of the thread's state, which comes later, releases them */
    ULONG Note = __atomic_fetch_add(&HalpNotes, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&HalpNotedThreads[Note % NOTED_THREADS], HalCurrentThreadId(), __ATOMIC_RELAXED);
    HalpLeaveOwnThreads();
}

static BOOLEAN HalpIsNoted(ULONG ThreadId)
{
    for (ULONG Index = 0; Index < NOTED_THREADS; Index++) {
        if (__atomic_load_n(&HalpNotedThreads[Index], __ATOMIC_RELAXED) == ThreadId) {
            return TRUE;
        }
    }
    return FALSE;
}

static HAL_OTHERS HalpClassifyThread(ULONG ThreadId)
{
    CHAR Path[PATH_SIZE], Line[HALP_STATUS_SIZE];
    const char *State;
    /* acquire: pairs with the release in HalpRunThread. Loaded first: with none starting, every own one is entered. */
    BOOLEAN Starting = __atomic_load_n(&HalpStartingThreads, __ATOMIC_ACQUIRE) != 0;

    if (HalpIsOwnThread(ThreadId)) {
        return HalNoOthers;
    }
    snprintf(Path, PATH_SIZE, "/proc/self/task/%u/stat", ThreadId);
    State = HalpReadStatus(Path, Line, 0);
    if (State == NULL) { /* it is gone, or no descriptor is left to find out */
        return HalpCall(SYS_tgkill, HalCurrentProcessId(), ThreadId, 0) == -ESRCH ? HalNoOthers : HalOthers;
    }
    if (State[1] == 'Z' || State[1] == 'X') {
        return HalNoOthers;
    }
    return HalpIsNoted(ThreadId) || Starting ? HalOthersForNow : HalOthers;
}

static HAL_OTHERS HalpClassifyList(const CHAR *List, long Length)
{
    HAL_OTHERS Others = HalNoOthers;

    for (long Offset = 0; Offset < Length && Others != HalOthers;) {
        const HALP_LISTED *Listed = (const HALP_LISTED *)(List + Offset);
        ULONG ThreadId = (ULONG)strtoul(Listed->Name, NULL, 10); /* 0: "." and ".." */
        if (ThreadId != 0 && ThreadId != HalCurrentThreadId()) {
            HAL_OTHERS One = HalpClassifyThread(ThreadId);
            Others = One > Others ? One : Others;
        }
        Offset += Listed->Length;
    }
    return Others;
}

HAL_OTHERS HalFindOtherThreads(VOID)
{
    HALP_HOST_CALLS;
    CHAR List[LIST_SIZE] DECLSPEC_ALIGN(8);
    HAL_OTHERS Others = HalNoOthers;
    int Folder = HalpOpenFile("/proc/self/task", O_RDONLY | O_DIRECTORY);
    long Length;

    if (Folder < 0) {
        return HalOthers;
    }
    while (Others != HalOthers && (Length = HalpCall(SYS_getdents64, Folder, List, sizeof(List))) > 0) {
        HAL_OTHERS Some = HalpClassifyList(List, Length);
        Others = Some > Others ? Some : Others;
    }
    HalCloseDescriptor(Folder);
    return Others;
}
