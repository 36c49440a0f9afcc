/*
 * keptport.h: the reference on a port that a thread keeps from one call to the next. Included by iocompletion.c alone.
 *
 * Producers and consumers of a port use the same handle at a high rate. If each call took its reference from the
 * handle's entry and returned it there, that entry would be a cache line that bounces twice per packet. So a thread
 * keeps the reference in its slot, and as long as the handle is open for the same port a call only reads the entry and
 * writes the thread's own memory, by plain stores.
 *
 *      KeptPort      the port, 0 if none is kept; NTP_GIVE_BACK in it: a handle of the port was closed
 *      KeptHandle    where the reference came from
 *      KeptEntry     its entry
 *      KeptAccess    the Access word of the entry at that time (obp.h)
 *      UsesKeptPort  of NTP_THREAD: a call is using the kept port, or changing what is kept
 *
 * 1. A thread that removes a port from KeptPort, by an atomic operation, owns the reference.
 * 2. Only the thread itself puts a port there, and only while UsesKeptPort is set; a call that an APC makes meanwhile
 *    leaves the slot alone. The thread reads the slot only while UsesKeptPort is set, so no APC changes it in between.
 * 3. The closer of a handle of the port sets NTP_GIVE_BACK, executes a barrier on all threads, and removes the port
 *    from each slot that is not in use. A thread sets UsesKeptPort, then checks for NTP_GIVE_BACK and does not use such
 *    a port; it clears UsesKeptPort, then checks again and removes such a port. So its thread removes the port of a
 *    slot in use when the call ends, and the closer removes any other.
 * 4. A thread that has put a port into its slot then checks the entry; a closer has changed the entry and then checks
 *    the slots. All four accesses are seq_cst: at least one of the two sees the other.
 * 5. By 3 and 4 no port outlives its last handle because a thread used it once: not if the thread has ended or is idle,
 *    nor if it stayed behind in the parent of a fork, since then its slot is not in use.
 * 6. The kept port is used only if the entry still has that Access and that port: the handle may have been closed, and
 *    reopened for another object, before the closer reaches the slots.
 * 7. Two closers of two handles of the port, and a thread that calls: both closers may want the reference in the slot, and
 *    one compare-exchange of KeptPort decides which of them, or the thread, gets it. What the thread did with the port
 *    happens before its end, by the release of UsesKeptPort and the acquire in NtpIsSlotInUse. A model in which the
 *    barrier on all threads is a fence of the closer alone shows a race here, and one without the barrier a reference
 *    that is left over. Both are store buffering: the store of UsesKeptPort and the load of KeptPort after it pass each
 *    other. The barrier makes each thread order the two, which no fence of another thread does. So the model is wrong,
 *    not the code. If the host has no such barrier the store is a seq_cst exchange (KiStoreBeforeLook), and the marks
 *    are seq_cst as well. The scenario is in lab/user/keptport.c: port_kept_two_closers, complete under sc, and under
 *    RC11 up to a number of preemptions.
 */
#ifndef INTERLOCK_NT_KEPTPORT_H
#define INTERLOCK_NT_KEPTPORT_H

#include "completion.h"

#define NTP_GIVE_BACK ((ULONG_PTR)1)

typedef struct _NTP_PORT_USE {
    PNTP_PORT Port;
    BOOLEAN Kept; /* the reference is the one in the thread's slot */
} NTP_PORT_USE, *PNTP_PORT_USE;

static VOID NtpDropPort(ULONG_PTR Kept)
{
    if (Kept != 0) {
        ObpDereferenceObject((PVOID)(Kept & ~NTP_GIVE_BACK));
    }
}

/* Removes the port from the slot if it has NTP_GIVE_BACK. */
static DECLSPEC_NOINLINE VOID NtpTakeBackPort(PKTHREAD Thread)
{
    PNTP_THREAD_KEPT Slot = NtpThreadKept(Thread);
    ULONG_PTR Port = __atomic_load_n(&Slot->KeptPort, __ATOMIC_RELAXED);
    /* relaxed, both: the reference count does the ordering */
    if ((Port & NTP_GIVE_BACK) &&
        __atomic_compare_exchange_n(&Slot->KeptPort, &Port, 0, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        NtpDropPort(Port);
    }
}

FORCEINLINE VOID NtpEndPortUse(PKTHREAD Thread)
{
    KiStoreBeforeLook(&NtpThread(Thread)->UsesKeptPort, FALSE);
    if (__builtin_expect(__atomic_load_n(&NtpThreadKept(Thread)->KeptPort, __ATOMIC_SEQ_CST) & NTP_GIVE_BACK, FALSE)) {
        NtpTakeBackPort(Thread);
    }
}

/* relaxed, both: a close before this call has already changed the entry */
FORCEINLINE BOOLEAN NtpIsKeptFor(PNTP_THREAD_KEPT Slot, ULONG_PTR Port)
{
    POBP_HANDLE_ENTRY Entry = Slot->KeptEntry;
    return __atomic_load_n(&Entry->Access, __ATOMIC_RELAXED) == Slot->KeptAccess &&
           (ULONG_PTR)ObpObjectOf(__atomic_load_n(&Entry->Object, __ATOMIC_RELAXED)) == Port;
}

/* With UsesKeptPort set: the port kept for this handle, if it grants the access, or NULL. */
FORCEINLINE PNTP_PORT NtpFindKeptPort(PKTHREAD Thread, HANDLE Handle, ACCESS_MASK DesiredAccess)
{
    PNTP_THREAD_KEPT Slot = NtpThreadKept(Thread);
    ULONG_PTR Port = __atomic_load_n(&Slot->KeptPort, __ATOMIC_SEQ_CST);
    BOOLEAN Good = Port != 0 && Slot->KeptHandle == Handle && !(DesiredAccess & ~(ACCESS_MASK)Slot->KeptAccess) &&
                   NtpIsKeptFor(Slot, Port); /* fails if Port has NTP_GIVE_BACK: no address has it */
    return __builtin_expect(Good, TRUE) ? (PNTP_PORT)Port : NULL;
}

/* A port by handle, for one call of Thread. On success the handle is one of the table. */
FORCEINLINE NTSTATUS NtpReferencePort(PKTHREAD Thread, HANDLE Handle, ACCESS_MASK DesiredAccess, PNTP_PORT_USE Use)
{
    Use->Kept = FALSE;
    if (__builtin_expect(!NtpThread(Thread)->UsesKeptPort, TRUE)) {
        KiStoreBeforeLook(&NtpThread(Thread)->UsesKeptPort, TRUE);
        Use->Port = NtpFindKeptPort(Thread, Handle, DesiredAccess);
        if (__builtin_expect(Use->Port != NULL, TRUE)) {
            Use->Kept = TRUE;
            return STATUS_SUCCESS;
        }
        NtpEndPortUse(Thread);
    }
    return ObpReferenceByHandle(Handle, DesiredAccess, &NtpPortType, UserMode, (PVOID *)&Use->Port);
}

/* With UsesKeptPort set. Returns what was kept before. */
static ULONG_PTR NtpExchangeKeptPort(PNTP_THREAD_KEPT Slot, HANDLE Handle, PNTP_PORT Port)
{
    POBP_HANDLE_ENTRY Entry = ObpEntryOfHandle(Handle);
    Slot->KeptHandle = Handle;
    Slot->KeptEntry = Entry;
    /* relaxed: if the handle was closed or reopened, the comparison fails */
    Slot->KeptAccess = __atomic_load_n(&Entry->Access, __ATOMIC_RELAXED);
    /* seq_cst, both: requirement 4; pair with the load in NtpMarkKeptPorts and the compare-exchange in ObpCloseEntry */
    ULONG_PTR Before = __atomic_exchange_n(&Slot->KeptPort, (ULONG_PTR)Port, __ATOMIC_SEQ_CST);
    if (ObpObjectOf(__atomic_load_n(&Entry->Object, __ATOMIC_SEQ_CST)) != Port) {
        /* relaxed: for NtpEndPortUse, on this thread */
        __atomic_fetch_or(&Slot->KeptPort, NTP_GIVE_BACK, __ATOMIC_RELAXED);
    }
    return Before;
}

static DECLSPEC_NOINLINE VOID NtpKeepPort(PKTHREAD Thread, HANDLE Handle, PNTP_PORT Port)
{
    ULONG_PTR NotKept = (ULONG_PTR)Port;
    if (!NtpThread(Thread)->UsesKeptPort) {
        KiStoreBeforeLook(&NtpThread(Thread)->UsesKeptPort, TRUE);
        NotKept = NtpExchangeKeptPort(NtpThreadKept(Thread), Handle, Port);
        NtpEndPortUse(Thread);
    }
    NtpDropPort(NotKept);
}

FORCEINLINE VOID NtpReturnPort(PKTHREAD Thread, HANDLE Handle, PNTP_PORT_USE Use)
{
    if (__builtin_expect(Use->Kept, TRUE)) {
        NtpEndPortUse(Thread);
    } else {
        NtpKeepPort(Thread, Handle, Use->Port);
    }
}

/* Returns whether a thread other than Closer keeps the port. */
static BOOLEAN NtpMarkKeptPorts(PNTP_PORT Port, ULONG Slots, PKTHREAD Closer)
{
    BOOLEAN KeptByOther = FALSE;
    for (ULONG Number = 0; Number < Slots; Number += 1) {
        PKTHREAD Thread = KiThreadFromNumber(Number);
        volatile ULONG_PTR *KeptPort = &NtpThreadKept(Thread)->KeptPort;
        /* seq_cst: requirement 4, pairs with the exchange in NtpExchangeKeptPort */
        ULONG_PTR Kept = __atomic_load_n(KeptPort, __ATOMIC_SEQ_CST);
        if ((Kept & ~NTP_GIVE_BACK) == (ULONG_PTR)Port) {
            /* Fails if another closer has marked it or the thread has taken it. seq_cst: comes before the loads in
               NtpIsSlotInUse even if the host has no barrier on all threads */
            __atomic_compare_exchange_n(KeptPort, &Kept, Kept | NTP_GIVE_BACK, FALSE, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED);
            KeptByOther |= Thread != Closer;
        }
    }
    return KeptByOther;
}

/* A slot whose thread stayed behind in the parent of a fork is not in use. seq_cst, both: after the marks; the second
   load also acquires what NtpEndPortUse releases */
static BOOLEAN NtpIsSlotInUse(PKTHREAD Thread)
{
    return __atomic_load_n(&KiSlotOfThread(Thread)->Use, __ATOMIC_SEQ_CST) == KiSlotUsed &&
           __atomic_load_n(&NtpThread(Thread)->UsesKeptPort, __ATOMIC_SEQ_CST);
}

/* A handle of Port was closed. */
static VOID NtpTakeKeptPorts(PNTP_PORT Port)
{
    /* seq_cst: pairs with KiTakeNewSlot; a thread whose slot is not counted yet keeps nothing */
    ULONG Slots = __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_SEQ_CST);
    if (NtpMarkKeptPorts(Port, Slots, KiCurrentThread())) {
        HalBarrierAllThreads(); /* pairs with the stores of UsesKeptPort, requirement 3 */
    }
    for (ULONG Number = 0; Number < Slots; Number += 1) {
        PKTHREAD Thread = KiThreadFromNumber(Number);
        if (__atomic_load_n(&NtpThreadKept(Thread)->KeptPort, __ATOMIC_RELAXED) == ((ULONG_PTR)Port | NTP_GIVE_BACK) &&
            !NtpIsSlotInUse(Thread)) {
            NtpTakeBackPort(Thread);
        }
    }
}

#endif
