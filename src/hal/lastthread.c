/*
 * lastthread.c: does the program have other threads?
 *
 * The host lists the threads of the process. Two kinds are not the program's: those that have ended (the first thread
 * of a process stays in the list) and the library's own, whose names begin with HALP_OWN_THREAD. Two kinds briefly look
 * like the program's, so the caller asks again: a thread that is about to end, which is recorded before it counts as
 * ended for the library, and a thread that has not yet set its name.
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

static volatile ULONG HalpNotedThreads[NOTED_THREADS];
static volatile ULONG HalpNotes;
volatile ULONG HalpStartingThreads;

VOID HalNoteThreadEnds(VOID)
{
    /* relaxed, both: the change of the thread's state, which comes later, releases them */
    ULONG Note = __atomic_fetch_add(&HalpNotes, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&HalpNotedThreads[Note % NOTED_THREADS], HalCurrentThreadId(), __ATOMIC_RELAXED);
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
    const char *State, *Name;

    snprintf(Path, PATH_SIZE, "/proc/self/task/%u/stat", ThreadId);
    State = HalpReadStatus(Path, Line, 0);
    Name = State != NULL ? strchr(Line, '(') : NULL;
    if (Name == NULL || State[1] == 'Z' || State[1] == 'X' ||
        strncmp(Name + 1, HALP_OWN_THREAD, sizeof(HALP_OWN_THREAD) - 1) == 0) {
        return HalNoOthers;
    }
    /* acquire: pairs with the release in HalpRunThread */
    return HalpIsNoted(ThreadId) || __atomic_load_n(&HalpStartingThreads, __ATOMIC_ACQUIRE) != 0 ? HalOthersForNow
                                                                                                 : HalOthers;
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
