/* tracecontention.c: a table of the locks that threads had to wait for, by who asked. Theory in tracefile.h. */
#include "recording.h"

#define KI_CONTENTION_PROBES 64

static ULONG64 KiHash(ULONG64 Hash, ULONG64 Word)
{
    Hash = (Hash ^ Word) * 0x9e3779b97f4a7c15ull;
    return Hash ^ Hash >> 32;
}

static BOOLEAN KiIsEntryOf(PKI_CONTENTION_ENTRY Entry, const KI_CONTENTION_ENTRY *Wanted)
{
    return Entry->Hash == Wanted->Hash && Entry->Lock == Wanted->Lock && Entry->Kind == Wanted->Kind &&
           Entry->Exclusive == Wanted->Exclusive && Entry->Frames == Wanted->Frames &&
           memcmp(Entry->Frame, Wanted->Frame, Wanted->Frames * sizeof(Wanted->Frame[0])) == 0;
}

static VOID KiFillEntry(PKI_CONTENTION_ENTRY Entry, const KI_CONTENTION_ENTRY *Wanted)
{
    Entry->Kind = Wanted->Kind;
    Entry->Exclusive = Wanted->Exclusive;
    Entry->Frames = Wanted->Frames;
    Entry->Hash = Wanted->Hash;
    Entry->Lock = Wanted->Lock;
    memcpy(Entry->Frame, Wanted->Frame, sizeof(Entry->Frame));
    /* release: pairs with the acquire in KiFindEntry */
    __atomic_store_n(&Entry->State, KiEntryReady, __ATOMIC_RELEASE);
}

/* An entry that is just being filled is passed over: at worst two have the same stack, which a reader adds up. */
static PKI_CONTENTION_ENTRY KiFindEntry(const KI_CONTENTION_ENTRY *Wanted)
{
    PKI_TRACE_FILE File = KiRecording[KiTraceContention].File;
    PKI_CONTENTION_ENTRY Entries = (PKI_CONTENTION_ENTRY)(File + 1);
    for (ULONG Probe = 0; Probe < KI_CONTENTION_PROBES; Probe++) {
        PKI_CONTENTION_ENTRY Entry = &Entries[(Wanted->Hash + Probe) % KI_CONTENTION_ENTRIES];
        ULONG State = __atomic_load_n(&Entry->State, __ATOMIC_ACQUIRE);
        if (State == KiEntryReady && KiIsEntryOf(Entry, Wanted)) {
            return Entry;
        }
        /* acquire: as above, when somebody else was faster */
        if (State == KiEntryFree && __atomic_compare_exchange_n(&Entry->State, &State, KiEntryFilling, FALSE,
                                                                __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
            KiFillEntry(Entry, Wanted);
            __atomic_fetch_add(&File->UnitsUsed, 1, __ATOMIC_RELAXED);
            return Entry;
        }
        if (State == KiEntryReady && KiIsEntryOf(Entry, Wanted)) {
            return Entry;
        }
    }
    KiCountDropped(File, 1);
    return NULL;
}

/* In an interrupt of the host the unwinder may be what was interrupted. */
DECLSPEC_NOINLINE VOID KiEnterContention(PKI_CONTENTION Contention, ULONG64 Lock, KI_LOCK_KIND Kind, BOOLEAN Exclusive,
                                         ULONG Owner)
{
    KI_CONTENTION_ENTRY Wanted = {.Lock = Lock, .Kind = (UCHAR)Kind, .Exclusive = Exclusive != FALSE};
    if (KiCurrentThread()->HostInterrupts == 0) {
        Wanted.Frames = (USHORT)HalCaptureStack(2, Wanted.Frame, KI_CONTENTION_FRAMES);
    }
    Wanted.Hash = KiHash(KiHash(0, Lock), (ULONG64)Kind << 1 | Wanted.Exclusive);
    for (ULONG Frame = 0; Frame < Wanted.Frames; Frame++) {
        Wanted.Hash = KiHash(Wanted.Hash, Wanted.Frame[Frame]);
    }
    Contention->Entry = KiFindEntry(&Wanted);
    if (Contention->Entry != NULL) {
        /* relaxed, here and below: statistics */
        __atomic_fetch_add(&Contention->Entry->Waiting, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&Contention->Entry->LastOwner, Owner, __ATOMIC_RELAXED);
    }
}

VOID KiLeaveContention(PKI_CONTENTION Contention)
{
    PKI_CONTENTION_ENTRY Entry = Contention->Entry;
    ULONG64 Time = HalQueryNanoseconds() - Contention->Begin;
    ULONG64 Longest = __atomic_load_n(&Entry->Longest, __ATOMIC_RELAXED);
    __atomic_fetch_add(&Entry->Count, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&Entry->Time, Time, __ATOMIC_RELAXED);
    while (Longest < Time && !__atomic_compare_exchange_n(&Entry->Longest, &Longest, Time, FALSE, __ATOMIC_RELAXED,
                                                          __ATOMIC_RELAXED)) {
    }
    __atomic_fetch_sub(&Entry->Waiting, 1, __ATOMIC_RELAXED);
}

VOID KiTraceContended(PKI_CONTENTION Contention, PVOID Lock, KI_LOCK_KIND Kind, BOOLEAN Exclusive, ULONG Owner)
{
    Contention->Begin = HalQueryNanoseconds();
    if (KiRecords(KiTraceEvents)) {
        PKI_TRACE_EVENT Event = KiOpenEvent(KiCurrentThread());
        if (Event != NULL) {
            Event->Begin = Contention->Begin;
            Event->Object = (ULONG64)Lock;
            Event->Argument = Owner;
            Event->Type = (UCHAR)Kind;
            Event->Flags = Exclusive ? KI_TRACE_EXCLUSIVE : 0;
            /* release: what a reader finds here is complete */
            __atomic_store_n(&Event->Kind, KiTraceAcquire, __ATOMIC_RELEASE);
        }
    }
    if (KiRecords(KiTraceContention)) {
        KiEnterContention(Contention, (ULONG64)Lock, Kind, Exclusive, Owner);
    }
}

/* One that began in the parent of a fork has nothing to end here. */
static BOOLEAN KiIsOwnEntry(PKI_CONTENTION_ENTRY Entry)
{
    if (!KiRecords(KiTraceContention)) {
        return FALSE;
    }
    PKI_CONTENTION_ENTRY First = (PKI_CONTENTION_ENTRY)(KiRecording[KiTraceContention].File + 1);
    return Entry >= First && Entry < First + KI_CONTENTION_ENTRIES;
}

VOID KiTraceAcquired(PKI_CONTENTION Contention)
{
    if (Contention->Begin != 0 && KiRecords(KiTraceEvents)) {
        KiCloseEvent(KiCurrentThread());
    }
    if (KiIsOwnEntry(Contention->Entry)) {
        KiLeaveContention(Contention);
    }
}
