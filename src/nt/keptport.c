/* keptport.c: see keptport.h. */
#include "keptport.h"

static VOID NtpDropPort(ULONG_PTR Kept)
{
    if (Kept != 0) {
        ObpDereferenceObject((PVOID)(Kept & ~NTP_GIVE_BACK));
    }
}

VOID NtpTakeBackPort(PKTHREAD Thread)
{
    PNTP_THREAD_KEPT Slot = NtpThreadKept(Thread);
    ULONG_PTR Port = __atomic_load_n(&Slot->KeptPort, __ATOMIC_RELAXED);
    /* relaxed, both: the reference orders itself */
    if ((Port & NTP_GIVE_BACK) &&
        __atomic_compare_exchange_n(&Slot->KeptPort, &Port, 0, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        NtpDropPort(Port);
    }
}

/* With UsesKeptPort set. Returns what was kept before. */
static ULONG_PTR NtpExchangeKeptPort(PNTP_THREAD_KEPT Slot, HANDLE Handle, PNTP_PORT Port)
{
    POBP_HANDLE_ENTRY Entry = ObpEntryOfHandle(Handle);
    Slot->KeptHandle = Handle;
    Slot->KeptEntry = Entry;
    /* relaxed: that of a handle that has been closed, or opened again, does not fit any more when it is compared */
    Slot->KeptAccess = __atomic_load_n(&Entry->Access, __ATOMIC_RELAXED);
    /* seq_cst, both: requirement 4, pair with the load in NtpMarkKeptPorts and the compare-exchange in ObpCloseEntry */
    ULONG_PTR Before = __atomic_exchange_n(&Slot->KeptPort, (ULONG_PTR)Port, __ATOMIC_SEQ_CST);
    if (ObpObjectOf(__atomic_load_n(&Entry->Object, __ATOMIC_SEQ_CST)) != Port) {
        /* relaxed: for NtpEndUse, by this thread */
        __atomic_fetch_or(&Slot->KeptPort, NTP_GIVE_BACK, __ATOMIC_RELAXED);
    }
    return Before;
}

VOID NtpKeepPort(PKTHREAD Thread, HANDLE Handle, PNTP_PORT Port)
{
    ULONG_PTR NotKept = (ULONG_PTR)Port;
    if (!NtpThread(Thread)->UsesKeptPort) {
        KiStoreBeforeLook(&NtpThread(Thread)->UsesKeptPort, TRUE);
        NotKept = NtpExchangeKeptPort(NtpThreadKept(Thread), Handle, Port);
        NtpEndUse(Thread);
    }
    NtpDropPort(NotKept);
}

/* Returns whether another thread than Closer keeps the port. */
static BOOLEAN NtpMarkKeptPorts(PNTP_PORT Port, ULONG Slots, PKTHREAD Closer)
{
    BOOLEAN KeptByOther = FALSE;
    for (ULONG Number = 0; Number < Slots; Number += 1) {
        PKTHREAD Thread = KiThreadFromNumber(Number);
        volatile ULONG_PTR *KeptPort = &NtpThreadKept(Thread)->KeptPort;
        /* seq_cst: requirement 4, pairs with the exchange in NtpExchangeKeptPort */
        ULONG_PTR Kept = __atomic_load_n(KeptPort, __ATOMIC_SEQ_CST);
        if ((Kept & ~NTP_GIVE_BACK) == (ULONG_PTR)Port) {
            /* Fails if somebody else has marked it or the thread has taken it. seq_cst: comes before the looks in
               NtpIsSlotInUse also where the host has no barrier on all threads */
            __atomic_compare_exchange_n(KeptPort, &Kept, Kept | NTP_GIVE_BACK, FALSE, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED);
            KeptByOther |= Thread != Closer;
        }
    }
    return KeptByOther;
}

/* A slot whose thread stayed behind in the parent of a fork is not in use. seq_cst, both: after the marks; the second
   also acquires what NtpEndUse releases */
static BOOLEAN NtpIsSlotInUse(PKTHREAD Thread)
{
    return __atomic_load_n(&KiSlotOfThread(Thread)->Use, __ATOMIC_SEQ_CST) == KiSlotUsed &&
           __atomic_load_n(&NtpThread(Thread)->UsesKeptPort, __ATOMIC_SEQ_CST);
}

VOID NtpTakeKeptPorts(PNTP_PORT Port)
{
    /* seq_cst: pairs with KiTakeNewSlot; a thread whose slot is not counted yet has not kept anything */
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
