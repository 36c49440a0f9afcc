/*
 * waits.c: what a blocked thread waits for, according to the library, and which thread owns it. An owner that the
 * library does not record is derived from the schedule: the thread that changed the lock last (lab_report_changes).
 */
#include "labhal.h"

#include "ex/resource.h"
#include "ke/ki.h"
#include "ke/wait.h"

#include <interlock/rtl.h>

#include <stdarg.h>
#include <stdio.h>

typedef struct _LABHAL_TEXT {
    char *Buffer;
    size_t Size;
    size_t Used;
    lab_thread *Waiter;
} LABHAL_TEXT;

static void LabhalAdd(LABHAL_TEXT *Text, const char *Format, ...) __attribute__((format(printf, 2, 3)));

static void LabhalAdd(LABHAL_TEXT *Text, const char *Format, ...)
{
    va_list Arguments;

    va_start(Arguments, Format);
    int Length = vsnprintf(Text->Buffer + Text->Used, Text->Size - Text->Used, Format, Arguments);
    va_end(Arguments);
    Text->Used += Length > 0 && Text->Used + (size_t)Length < Text->Size ? (size_t)Length : 0;
}

static void LabhalAddSymbol(LABHAL_TEXT *Text, const void *Address)
{
    char Symbol[64];

    lab_report_symbol((uintptr_t)Address, Symbol, sizeof(Symbol));
    LabhalAdd(Text, "%s", Symbol);
}

static void LabhalAddChanges(LABHAL_TEXT *Text, const void *Address)
{
    char Changes[64];

    lab_report_changes((uintptr_t)Address, Text->Waiter->number, Changes, sizeof(Changes));
    LabhalAdd(Text, "%s", Changes);
}

struct _KTHREAD *LabhalThreadObject(const lab_thread *Thread)
{
    struct _KTHREAD *Object;

    memcpy(&Object, Thread->tls + ((char *)&HalCurrentThread - lab->tls), sizeof(Object));
    return Object;
}

static void LabhalAddOwningThread(LABHAL_TEXT *Text, const lab_thread *Owner)
{
    Text->Waiter->waits_for_owner = true;
    LabhalAdd(Text, ", owned by %c%s", (char)('a' + Owner->number),
              Owner->state == THREAD_DONE ? ", which has ended" : "");
}

static void LabhalAddOwner(LABHAL_TEXT *Text, const struct _KTHREAD *Owner)
{
    for (uint32_t Index = 0; Owner != NULL && Index < lab->run.thread_count; Index += 1) {
        const lab_thread *Thread = &lab->run.threads[Index];

        if (LabhalThreadObject(Thread) == Owner) {
            LabhalAddOwningThread(Text, Thread);
        }
    }
}

static void LabhalAddOwnerById(LABHAL_TEXT *Text, HANDLE Id)
{
    uint32_t Number = HandleToULong(Id) - LABHAL_FIRST_THREAD;

    if (Id != NULL && Number < lab->run.thread_count) {
        LabhalAddOwningThread(Text, &lab->run.threads[Number]);
    }
}

/* Resources: the one on whose queues the thread is. */

static BOOLEAN LabhalIsInQueue(const EXP_RESOURCE_WAIT *Wait, const void *Object)
{
    while (Wait != NULL && (const void *)Wait != Object) {
        Wait = Wait->Next;
    }
    return Wait != NULL;
}

static PERESOURCE LabhalResourceOf(const void *Object)
{
    for (PLIST_ENTRY Entry = ExpSystemResourcesList.Flink; Entry != &ExpSystemResourcesList; Entry = Entry->Flink) {
        PERESOURCE Resource = CONTAINING_RECORD(Entry, ERESOURCE, SystemResourcesList);

        if (LabhalIsInQueue((PVOID)Resource->ExclusiveWaiters, Object) ||
            LabhalIsInQueue((PVOID)Resource->SharedWaiters, Object)) {
            return Resource;
        }
    }
    return NULL;
}

static void LabhalAddEntry(LABHAL_TEXT *Text, const OWNER_ENTRY *Entry)
{
    if (Entry->OwnerThread != 0) {
        LabhalAddOwner(Text, (PKTHREAD)(Entry->OwnerThread & ~(ERESOURCE_THREAD)EXP_OWNER_POINTER));
    }
}

static void LabhalAddResource(LABHAL_TEXT *Text, PERESOURCE Resource)
{
    LabhalAdd(Text, "waits for the resource ");
    LabhalAddSymbol(Text, Resource);
    LabhalAddEntry(Text, &Resource->OwnerEntry);
    for (PEXP_OWNER Owner = (PVOID)Resource->OwnerTable; Owner != NULL; Owner = Owner->Next) {
        LabhalAddEntry(Text, &Owner->Entry);
    }
}

static void LabhalAddFastMutex(LABHAL_TEXT *Text, PDISPATCHER_HEADER Header)
{
    PFAST_MUTEX Mutex = CONTAINING_RECORD(Header, FAST_MUTEX, Event.Header);

    LabhalAdd(Text, "waits for the mutex ");
    LabhalAddSymbol(Text, Mutex);
    LabhalAddOwner(Text, Mutex->Owner);
}

static void LabhalAddSection(LABHAL_TEXT *Text, PRTL_CRITICAL_SECTION Section)
{
    LabhalAdd(Text, "waits for the critical section ");
    LabhalAddSymbol(Text, Section);
    LabhalAddOwnerById(Text, Section->OwningThread);
}

static void LabhalAddLock(LABHAL_TEXT *Text, const char *Kind, const void *Lock)
{
    LabhalAdd(Text, "waits for %s", Kind);
    LabhalAddSymbol(Text, Lock);
    LabhalAddChanges(Text, Lock);
}

static void LabhalAddEnd(LABHAL_TEXT *Text, const struct _KTHREAD *Object)
{
    for (uint32_t Index = 0; Index < lab->run.thread_count; Index += 1) {
        if (LabhalThreadObject(&lab->run.threads[Index]) == Object) {
            LabhalAdd(Text, ", the end of %c", (char)('a' + Index));
        }
    }
}

static void LabhalAddObject(LABHAL_TEXT *Text, PDISPATCHER_HEADER Header)
{
    LabhalAdd(Text, "waits for ");
    LabhalAddSymbol(Text, Header);
    LabhalAdd(Text, " (SignalState %d)", Header->SignalState);
    switch (Header->Type & KOBJECT_TYPE_MASK) {
    case MutantObject:
        LabhalAddOwner(Text, CONTAINING_RECORD(Header, KMUTANT, Header)->OwnerThread);
        break;
    case ThreadObject:
        LabhalAddEnd(Text, CONTAINING_RECORD(Header, struct _KTHREAD, Header));
        break;
    default: /* any thread that could have signaled it */
        LabhalAddChanges(Text, Header);
        break;
    }
}

/* TRUE: the block belongs to a lock, so the state of its object is irrelevant. */
static BOOLEAN LabhalAddBlock(LABHAL_TEXT *Text, const struct _KTHREAD *Object, const KWAIT_BLOCK *Block)
{
    PVOID Lock = Object->LockWaitedFor;
    PERESOURCE Resource;

    if (Lock != NULL && Object->WaitReason == WrPushLock) {
        LabhalAddLock(Text, "the pushlock ", Lock);
    } else if (Lock != NULL && (Object->WaitReason == UserRequest || Object->WaitReason == WrAlertByThreadId)) {
        LabhalAddSection(Text, Lock);
    } else if (Block->WaitType == KI_HINT_BLOCK) {
        LabhalAddLock(Text, "", Block->Object);
    } else if (Object->WaitReason == WrFastMutex || Object->WaitReason == WrGuardedMutex) {
        LabhalAddFastMutex(Text, Block->Object);
    } else if (Object->WaitReason == WrResource && (Resource = LabhalResourceOf(Block->Object)) != NULL) {
        LabhalAddResource(Text, Resource);
    } else {
        LabhalAddObject(Text, Block->Object);
        return FALSE;
    }
    return TRUE;
}

bool lab_describe_wait(lab_thread *Thread, char *Buffer, size_t Size, bool *Satisfied)
{
    struct _KTHREAD *Object = LabhalThreadObject(Thread);
    LABHAL_TEXT Text = {Buffer, Size, 0, Thread};

    if (Object == NULL || Thread->op.address != (uintptr_t)&Object->WakeWord ||
        !(Object->WaitRegister & KI_WAIT_ACTIVE)) {
        return false;
    }
    for (ULONG Index = 0; Index < Object->WaitBlockCount && Text.Used + 200 < Size; Index += 1) {
        PKWAIT_BLOCK Block = &Object->WaitBlockList[Index];

        if (Index != 0) {
            LabhalAdd(&Text, ", ");
        }
        if (!LabhalAddBlock(&Text, Object, Block)) {
            *Satisfied |= (Block->WaitType == WaitAny || Block->WaitType == KI_MANY_BLOCK) &&
                          ((PDISPATCHER_HEADER)Block->Object)->SignalState > 0;
        }
    }
    return true;
}
