/* iocompletion.c: completion ports. packet.c has the memory of what is queued to them. */
#include <interlock/io.h>

#include "ntp.h"

#define NTP_REMOVE_BATCH 64

/*
 * The reference on a port that a thread keeps from one call to the next.
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
 * 7. One closer at a time (NtpCloserLock). Between a closer's check of UsesKeptPort and its compare-exchange the thread
 *    may remove the port, keep it again through another handle, and call. A second closer that marked the slot then would
 *    make the compare-exchange of the first succeed, and the port would be freed during the call (proof/genmc/keptport.c,
 *    fault 1).
 * 8. What a thread did with the port happens before its end: with a kept one by the release of UsesKeptPort and the
 *    acquire in NtpIsSlotInUse; with a port that it kept afterwards, by the exchange that put the port into the slot
 *    and the acquire of the closer that removes it. (The closer may find a mark that the thread has set itself, and
 *    read an older FALSE from UsesKeptPort, which releases less.)
 * 9. A model in which the barrier on all threads does nothing, or is a fence of the closer alone, shows a leaked reference.
 *    That is store buffering: the store of UsesKeptPort and the load of KeptPort after it pass each other. The
 *    barrier makes each thread order the two, which no fence of another thread does, so there the model is wrong, not the
 *    code. If the host has no such barrier the store is a seq_cst exchange (KiStoreBeforeLook), and the marks are seq_cst
 *    as well; proof/genmc/keptport.c is this case.
 */

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

/* Kept: the value of the slot, with NTP_GIVE_BACK. */
static DECLSPEC_NOINLINE VOID NtpTakeBackPort(PKTHREAD Thread, ULONG_PTR Kept)
{
    /* acquire: pairs with the exchange in NtpExchangeKeptPort, requirement 8 */
    if (__atomic_compare_exchange_n(&NtpThreadKept(Thread)->KeptPort, &Kept, 0, FALSE, __ATOMIC_ACQUIRE,
                                    __ATOMIC_RELAXED)) {
        NtpDropPort(Kept);
    }
}

FORCEINLINE VOID NtpEndPortUse(PKTHREAD Thread)
{
    KiStoreBeforeLook(&NtpThread(Thread)->UsesKeptPort, FALSE);
    ULONG_PTR Kept = __atomic_load_n(&NtpThreadKept(Thread)->KeptPort, __ATOMIC_SEQ_CST);
    if (__builtin_expect(Kept & NTP_GIVE_BACK, FALSE)) {
        NtpTakeBackPort(Thread, Kept);
    }
}

/* With UsesKeptPort set: the port kept for this handle, if it grants the access, or NULL. */
FORCEINLINE PNTP_PORT NtpFindKeptPort(PKTHREAD Thread, HANDLE Handle, ACCESS_MASK DesiredAccess)
{
    PNTP_THREAD_KEPT Slot = NtpThreadKept(Thread);
    ULONG_PTR Port = __atomic_load_n(&Slot->KeptPort, __ATOMIC_SEQ_CST);
    POBP_HANDLE_ENTRY Entry = Slot->KeptEntry;
    /* relaxed, both: a close before this call has already changed the entry. No address has NTP_GIVE_BACK, as Port may. */
    BOOLEAN Good = Port != 0 && Slot->KeptHandle == Handle && !(DesiredAccess & ~(ACCESS_MASK)Slot->KeptAccess) &&
                   __atomic_load_n(&Entry->Access, __ATOMIC_RELAXED) == Slot->KeptAccess &&
                   (ULONG_PTR)ObpObjectOf(__atomic_load_n(&Entry->Object, __ATOMIC_RELAXED)) == Port;
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

/* Called by the owner of NtpCloserLock, as are the functions below. Returns whether a thread other than Closer keeps the port. */
static BOOLEAN NtpMarkKeptPorts(PNTP_PORT Port, ULONG Slots, PKTHREAD Closer)
{
    BOOLEAN KeptByOther = FALSE;
    for (ULONG Number = 0; Number < Slots; Number += 1) {
        PKTHREAD Thread = KiThreadFromNumber(Number);
        volatile ULONG_PTR *KeptPort = &NtpThreadKept(Thread)->KeptPort;
        /* seq_cst: requirement 4, pairs with the exchange in NtpExchangeKeptPort */
        ULONG_PTR Kept = __atomic_load_n(KeptPort, __ATOMIC_SEQ_CST);
        if ((Kept & ~NTP_GIVE_BACK) == (ULONG_PTR)Port) {
            /* Fails if the thread has taken it. seq_cst: comes before the loads in NtpIsSlotInUse even if the host has no
               barrier on all threads */
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

static VOID NtpTakeUnusedPorts(PNTP_PORT Port, ULONG Slots)
{
    ULONG_PTR Marked = (ULONG_PTR)Port | NTP_GIVE_BACK;
    for (ULONG Number = 0; Number < Slots; Number += 1) {
        PKTHREAD Thread = KiThreadFromNumber(Number);
        /* relaxed: the compare-exchange decides */
        if (__atomic_load_n(&NtpThreadKept(Thread)->KeptPort, __ATOMIC_RELAXED) == Marked && !NtpIsSlotInUse(Thread)) {
            NtpTakeBackPort(Thread, Marked);
        }
    }
}

/* A handle of Port was closed. The caller's reference is not among those that are returned here. */
static VOID NtpTakeKeptPorts(PNTP_PORT Port)
{
    static KI_LOCK NtpCloserLock;
    PKTHREAD Closer = KiCurrentThread();
    KiEnterDispatcher(Closer);
    KiAcquireLock(&NtpCloserLock);
    /* seq_cst: pairs with KiTakeNewSlot; a thread whose slot is not counted yet keeps nothing */
    ULONG Slots = __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_SEQ_CST);
    if (NtpMarkKeptPorts(Port, Slots, Closer)) {
        HalBarrierAllThreads(); /* pairs with the stores of UsesKeptPort, requirement 3 */
    }
    NtpTakeUnusedPorts(Port, Slots);
    KiReleaseLock(&NtpCloserLock);
    KiExitDispatcher(Closer);
}

/* Ports. */

static VOID NtpReleasePacket(PNTP_PACKET Packet)
{
    switch (Packet->Kind) {
    case NtpPlainPacket:
        NtpFreePacket(Packet);
        break;
    case NtpReservePacket:
        NtpReleaseReserve(Packet);
        break;
    case NtpWaitPacket:
        NtpReleaseWaitPacket(Packet);
        break;
    }
}

static VOID NtpRundownPort(PNTP_PORT Port)
{
    PLIST_ENTRY Entry;
    KiAbandonQueue(&Port->Queue);
    while ((Entry = KiTakeQueuedEntry(&Port->Queue)) != NULL) {
        NtpReleasePacket(CONTAINING_RECORD(Entry, NTP_PACKET, QueueListEntry));
    }
}

/* After the last handle: pending removals end with STATUS_ABANDONED, plain waits are satisfied. */
static VOID NtpClosePort(PVOID Object, ACCESS_MASK GrantedAccess, LONG_PTR HandlesLeft)
{
    PNTP_PORT Port = Object;
    UNREFERENCED_PARAMETER(GrantedAccess);
    NtpTakeKeptPorts(Port);
    if (NtpIsOutOfReach(Object, HandlesLeft)) {
        NtpRundownPort(Port);
    }
}

/* A post that was in progress when the last handle was closed may have left an entry. */
static VOID NtpDeletePort(PVOID Object)
{
    NtpRundownPort(Object);
}

OBJECT_TYPE NtpPortType = {
    .Name = "IoCompletion",
    .GenericMapping = {STANDARD_RIGHTS_READ | IO_COMPLETION_QUERY_STATE,
                       STANDARD_RIGHTS_WRITE | IO_COMPLETION_MODIFY_STATE, STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE,
                       IO_COMPLETION_ALL_ACCESS},
    .ValidAccessMask = IO_COMPLETION_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = FIELD_OFFSET(NTP_PORT, Queue.Header),
    .LineAligned = TRUE,
    .CloseProcedure = NtpClosePort,
    .DeleteProcedure = NtpDeletePort,
};

OBP_REGISTER_TYPE(NtpPortType);

static NTSTATUS NtpInitializePort(PVOID Object, PVOID Context)
{
    PNTP_PORT Port = Object;
    KeInitializeQueue(&Port->Queue, *(PULONG)Context);
    return STATUS_SUCCESS;
}

NTSTATUS NtCreateIoCompletion(PHANDLE IoCompletionHandle, ACCESS_MASK DesiredAccess,
                              POBJECT_ATTRIBUTES ObjectAttributes, ULONG Count)
{
    return NTP_SERVICE(ObpCreateHandle(&NtpPortType, sizeof(NTP_PORT), ObjectAttributes, DesiredAccess,
                                       NtpInitializePort, &Count, IoCompletionHandle));
}

NTSTATUS NtOpenIoCompletion(PHANDLE IoCompletionHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandle(&NtpPortType, ObjectAttributes, DesiredAccess, IoCompletionHandle));
}

NTSTATUS NtQueryIoCompletion(HANDLE IoCompletionHandle, IO_COMPLETION_INFORMATION_CLASS IoCompletionInformationClass,
                             PVOID IoCompletionInformation, ULONG IoCompletionInformationLength, PULONG ReturnLength)
{
    PIO_COMPLETION_BASIC_INFORMATION Information = IoCompletionInformation;
    NTP_PORT_USE Use;
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status = NtpCheckQuery(IoCompletionInformationClass == IoCompletionBasicInformation,
                                    IoCompletionInformation, IoCompletionInformationLength, sizeof(*Information));
    if (NT_SUCCESS(Status)) {
        Status = NtpReferencePort(ServiceThread, IoCompletionHandle, IO_COMPLETION_QUERY_STATE, &Use);
    }
    if (NT_SUCCESS(Status)) {
        Information->Depth = KeReadStateQueue(&Use.Port->Queue);
        NtpReturnPort(ServiceThread, IoCompletionHandle, &Use);
        NtpReturnLength(ReturnLength, sizeof(*Information));
    }
    return Status;
}

FORCEINLINE NTSTATUS NtpSetPlainPacket(PNTP_PORT Port, PVOID KeyContext, PVOID ApcContext, NTSTATUS IoStatus,
                                       ULONG_PTR IoStatusInformation)
{
    PNTP_PACKET Packet = NtpAllocatePacket();
    if (Packet == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    Packet->Kind = NtpPlainPacket;
    NtpFillPacket(Packet, KeyContext, ApcContext, IoStatus, IoStatusInformation);
    KiInsertQueue(&Port->Queue, &Packet->QueueListEntry);
    return STATUS_SUCCESS;
}

NTSTATUS NtSetIoCompletion(HANDLE IoCompletionHandle, PVOID KeyContext, PVOID ApcContext, NTSTATUS IoStatus,
                           ULONG_PTR IoStatusInformation)
{
    PKTHREAD Thread = KiCurrentThread();
    NTP_PORT_USE Use;
    KiEnterService(Thread);
    NTSTATUS Status = NtpReferencePort(Thread, IoCompletionHandle, IO_COMPLETION_MODIFY_STATE, &Use);
    if (NT_SUCCESS(Status)) {
        Status = NtpSetPlainPacket(Use.Port, KeyContext, ApcContext, IoStatus, IoStatusInformation);
        NtpReturnPort(Thread, IoCompletionHandle, &Use);
    }
    KiExitService(Thread);
    return Status;
}

static VOID NtpDeliverPacket(PLIST_ENTRY Entry, PFILE_IO_COMPLETION_INFORMATION Information)
{
    PNTP_PACKET Packet = CONTAINING_RECORD(Entry, NTP_PACKET, QueueListEntry);
    Information->KeyContext = Packet->KeyContext;
    Information->ApcContext = Packet->ApcContext;
    Information->IoStatusBlock.Pointer = ULongToPtr((ULONG)Packet->IoStatus); /* the other half is 0 */
    Information->IoStatusBlock.Information = Packet->IoStatusInformation;
    NtpReleasePacket(Packet);
}

/* A queue may return a status instead of an entry; no entry has such a low address. */
static BOOLEAN NtpIsStatus(PLIST_ENTRY Entry)
{
    return (ULONG_PTR)Entry <= MAXUSHORT;
}

/* Up to NTP_REMOVE_BATCH packets: STATUS_SUCCESS and *Removed of them, or the status if there is none. */
static NTSTATUS NtpRemoveBatch(PNTP_PORT Port, PFILE_IO_COMPLETION_INFORMATION Information, ULONG Count,
                               KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout, PULONG Removed)
{
    PLIST_ENTRY Entries[NTP_REMOVE_BATCH];
    ULONG Wanted = Count < NTP_REMOVE_BATCH ? Count : NTP_REMOVE_BATCH;
    ULONG Taken = KiRemoveQueueEx(&Port->Queue, WaitMode, Alertable, Timeout, Entries, Wanted);
    if (NtpIsStatus(Entries[0])) {
        return (NTSTATUS)(LONG_PTR)Entries[0];
    }
    for (ULONG Index = 0; Index < Taken; Index += 1) {
        NtpDeliverPacket(Entries[Index], &Information[Index]);
    }
    *Removed = Taken;
    return STATUS_SUCCESS;
}

/* Only the first batch waits; after a full one the rest polls. */
static NTSTATUS NtpRemovePackets(PNTP_PORT Port, PFILE_IO_COMPLETION_INFORMATION Information, ULONG Count,
                                 KPROCESSOR_MODE WaitMode, BOOLEAN Alertable, PLARGE_INTEGER Timeout, PULONG Removed)
{
    LARGE_INTEGER Poll = {.QuadPart = 0};
    ULONG Batch = 0;
    NTSTATUS Status = NtpRemoveBatch(Port, Information, Count, WaitMode, Alertable, Timeout, &Batch);
    *Removed = Batch;
    while (NT_SUCCESS(Status) && Batch == NTP_REMOVE_BATCH && *Removed < Count) {
        Batch = 0;
        NtpRemoveBatch(Port, Information + *Removed, Count - *Removed, WaitMode, FALSE, &Poll, &Batch);
        *Removed += Batch;
    }
    return Status;
}

/* One packet, or the status if there is none; then nothing is written. */
FORCEINLINE NTSTATUS NtpRemovePacket(PNTP_PORT Port, PVOID *KeyContext, PVOID *ApcContext,
                                     PIO_STATUS_BLOCK IoStatusBlock, PLARGE_INTEGER Timeout)
{
    FILE_IO_COMPLETION_INFORMATION Information;
    PLIST_ENTRY Entry = KiRemoveQueue(&Port->Queue, UserMode, Timeout);
    if (NtpIsStatus(Entry)) {
        return (NTSTATUS)(LONG_PTR)Entry;
    }
    NtpDeliverPacket(Entry, &Information);
    *KeyContext = Information.KeyContext;
    *ApcContext = Information.ApcContext;
    *IoStatusBlock = Information.IoStatusBlock;
    return STATUS_SUCCESS;
}

NTSTATUS NtRemoveIoCompletion(HANDLE IoCompletionHandle, PVOID *KeyContext, PVOID *ApcContext,
                              PIO_STATUS_BLOCK IoStatusBlock, PLARGE_INTEGER Timeout)
{
    PKTHREAD Thread = KiCurrentThread();
    NTP_PORT_USE Use;

    if (KeyContext == NULL || ApcContext == NULL || IoStatusBlock == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    KiEnterService(Thread);
    NTSTATUS Status = NtpReferencePort(Thread, IoCompletionHandle, IO_COMPLETION_MODIFY_STATE, &Use);
    if (NT_SUCCESS(Status)) {
        Status = NtpRemovePacket(Use.Port, KeyContext, ApcContext, IoStatusBlock, Timeout);
        NtpReturnPort(Thread, IoCompletionHandle, &Use);
    }
    KiExitService(Thread);
    return Status;
}

NTSTATUS NtRemoveIoCompletionEx(HANDLE IoCompletionHandle, PFILE_IO_COMPLETION_INFORMATION IoCompletionInformation,
                                ULONG Count, PULONG NumEntriesRemoved, PLARGE_INTEGER Timeout, BOOLEAN Alertable)
{
    PKTHREAD Thread = KiCurrentThread();
    NTP_PORT_USE Use;

    if (Count == 0) {
        return STATUS_INVALID_PARAMETER;
    }
    if (IoCompletionInformation == NULL || NumEntriesRemoved == NULL) {
        return STATUS_ACCESS_VIOLATION;
    }
    KiEnterService(Thread);
    NTSTATUS Status = NtpReferencePort(Thread, IoCompletionHandle, IO_COMPLETION_MODIFY_STATE, &Use);
    if (NT_SUCCESS(Status)) {
        ULONG Removed;
        Status = NtpRemovePackets(Use.Port, IoCompletionInformation, Count, UserMode, Alertable, Timeout, &Removed);
        NtpReturnPort(Thread, IoCompletionHandle, &Use);
        *NumEntriesRemoved = Removed;
    }
    KiExitService(Thread);
    return NtpFinishWait(Status);
}

/* Here and not in src/io, because packets belong to this layer. */
NTSTATUS IoRemoveIoCompletion(PKQUEUE IoCompletion, PFILE_IO_COMPLETION_INFORMATION IoCompletionInformation, ULONG Count,
                              PULONG NumEntriesRemoved, KPROCESSOR_MODE WaitMode, PLARGE_INTEGER Timeout,
                              BOOLEAN Alertable)
{
    if (Count == 0) {
        return STATUS_INVALID_PARAMETER;
    }
    PNTP_PORT Port = CONTAINING_RECORD(IoCompletion, NTP_PORT, Queue);
    return NtpFinishWait(
        NtpRemovePackets(Port, IoCompletionInformation, Count, WaitMode, Alertable, Timeout, NumEntriesRemoved));
}
