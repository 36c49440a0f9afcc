/*
 * keptport.c: the reference on a port that a thread keeps from one call to the next.
 *
 * Those who post to a port and those who remove from it do so by the same handle and as often as they can. If each call
 * took its reference from the handle's entry and gave it back there, that entry would be a cache line that travels
 * twice with each packet. So a thread keeps the reference that it has got, in its slot, and as long as the handle is
 * open for the same port the entry is only read.
 *
 *      KeptPort      the port, or NULL: nothing is kept, or a call of the thread is using it
 *      KeptHandle    where the reference came from
 *      KeptAccess    the Access word of the entry then (handletable.h)
 *
 * 1. Whoever changes KeptPort from a port to NULL, by an atomic operation, has the reference: the thread for a call, or
 *    who closes a handle of the port. So no port outlives its last handle because a thread, or what is left of one that
 *    has ended or stayed behind in the parent of a fork, had used it.
 * 2. A thread that keeps a port looks at the entry afterwards; who closes a handle looks at the slots afterwards. All
 *    four accesses are seq_cst: at least one of the two sees what the other did, and takes the reference.
 * 3. KeptHandle and KeptAccess are the thread's own. What is kept is used only if the entry of KeptHandle has that
 *    Access still, so the handle is the same one with the same rights, and shows that port: an APC that uses ports, and
 *    comes between a call's note of its handle and its exchange of KeptPort, leaves its handle beside the call's port.
 */
#include "completion.h"

#include "../ob/handletable.h"

static PVOID NtpTakeKeptPort(KI_THREAD_SLOT *Slot)
{
    /* relaxed: the thread has put it there itself, or the one that had the slot before it */
    return __atomic_exchange_n(&Slot->KeptPort, NULL, __ATOMIC_RELAXED);
}

static VOID NtpDropPort(PVOID Port)
{
    if (Port != NULL) {
        ObpDereferenceObject(Port);
    }
}

/* relaxed, both: whoever has closed the handle before this call has taken what was kept, requirement 2 */
static BOOLEAN NtpIsKeptFor(POBP_HANDLE_ENTRY Entry, PVOID Port, ULONG64 Access)
{
    return __atomic_load_n(&Entry->Access, __ATOMIC_RELAXED) == Access &&
           ObpObjectOf(__atomic_load_n(&Entry->Object, __ATOMIC_RELAXED)) == Port;
}

/* What is kept of this handle, if it is good for this, or NULL. */
static PVOID NtpReuseKeptPort(KI_THREAD_SLOT *Slot, HANDLE Handle, ACCESS_MASK DesiredAccess)
{
    if (Slot->KeptHandle != Handle || (DesiredAccess & ~(ACCESS_MASK)Slot->KeptAccess) != 0) {
        return NULL;
    }
    PVOID Port = NtpTakeKeptPort(Slot);
    if (Port == NULL || NtpIsKeptFor(ObpEntryOfHandle(Handle), Port, Slot->KeptAccess)) {
        return Port;
    }
    ObpDereferenceObject(Port);
    return NULL;
}

/* The handle is one of the table if this succeeds, so it has an entry in NtpReturnPort. */
NTSTATUS NtpReferencePort(PKTHREAD Thread, HANDLE Handle, ACCESS_MASK DesiredAccess, PNTP_PORT *Port)
{
    *Port = NtpReuseKeptPort(KiSlotOfThread(Thread), Handle, DesiredAccess);
    return *Port != NULL ? STATUS_SUCCESS
                         : ObpReferenceByHandle(Handle, DesiredAccess, &NtpPortType, UserMode, (PVOID *)Port);
}

/* In a dispatcher section: an APC finds both of one handle or both of another. */
static DECLSPEC_NOINLINE VOID NtpNoteHandle(PKTHREAD Thread, KI_THREAD_SLOT *Slot, HANDLE Handle, ULONG64 Access)
{
    KiEnterDispatcher(Thread);
    Slot->KeptHandle = Handle;
    Slot->KeptAccess = Access;
    KiExitDispatcher(Thread);
}

VOID NtpReturnPort(PKTHREAD Thread, HANDLE Handle, PNTP_PORT Port)
{
    KI_THREAD_SLOT *Slot = KiSlotOfThread(Thread);
    POBP_HANDLE_ENTRY Entry = ObpEntryOfHandle(Handle);
    /* relaxed: that of a handle that has been closed, or opened again, does not fit any more when it is compared */
    ULONG64 Access = __atomic_load_n(&Entry->Access, __ATOMIC_RELAXED);
    if (Slot->KeptHandle != Handle || Slot->KeptAccess != Access) {
        NtpNoteHandle(Thread, Slot, Handle, Access);
    }
    /* seq_cst, both: requirement 2, pair with the load in NtpTakeKeptPorts and the compare-exchange in ObpCloseEntry */
    PVOID Other = __atomic_exchange_n(&Slot->KeptPort, Port, __ATOMIC_SEQ_CST);
    if (ObpObjectOf(__atomic_load_n(&Entry->Object, __ATOMIC_SEQ_CST)) != Port) {
        NtpDropPort(NtpTakeKeptPort(Slot));
    }
    NtpDropPort(Other);
}

VOID NtpTakeKeptPorts(PNTP_PORT Port)
{
    /* seq_cst: pairs with KiTakeNewSlot; a thread whose slot is not counted yet has not kept anything */
    ULONG Slots = __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_SEQ_CST);
    for (ULONG Number = 0; Number < Slots; Number += 1) {
        PVOID volatile *Kept = &KiSlotOfThread(KiThreadFromNumber(Number))->KeptPort;
        PVOID Expected = Port;
        /* seq_cst: requirement 2, pairs with the exchange in NtpReturnPort; relaxed: the reference orders itself */
        if (__atomic_load_n(Kept, __ATOMIC_SEQ_CST) == (PVOID)Port &&
            __atomic_compare_exchange_n(Kept, &Expected, NULL, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            ObpDereferenceObject(Port);
        }
    }
}
