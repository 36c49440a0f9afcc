/*
 * keptport.h: the reference on a port that a thread keeps from one call to the next.
 *
 * Those who post to a port and those who remove from it do so by the same handle and as often as they can. If each call
 * took its reference from the handle's entry and gave it back there, that entry would be a cache line that travels
 * twice with each packet. So a thread keeps the reference that it has got, in its slot, and as long as the handle is
 * open for the same port a call reads the entry and writes what is the thread's own, by plain stores.
 *
 *      KeptPort      the port, 0 if none is kept; NTP_GIVE_BACK in it: somebody has closed a handle of the port
 *      KeptHandle    where the reference came from
 *      KeptEntry     its entry
 *      KeptAccess    the Access word of the entry then (handletable.h)
 *      UsesKeptPort  of NTP_THREAD: a call is using the port that is kept, or changes what is kept
 *
 * 1. Whoever takes a port out of KeptPort, by an atomic operation, has the reference.
 * 2. Only the thread itself puts a port there, and only while UsesKeptPort is set; a call that an APC makes meanwhile
 *    leaves the slot alone. What is kept is looked at only then, so no APC changes it in between.
 * 3. Who closes a handle of the port sets NTP_GIVE_BACK, makes a barrier on all threads, and takes the port out of
 *    each slot that is not in use. A thread sets UsesKeptPort, looks for NTP_GIVE_BACK then, and uses no such port; it
 *    clears UsesKeptPort, looks again then, and takes such a port out. So the port of a slot in use is taken by its
 *    thread, when the call ends, and any other by who closes.
 * 4. A thread that has put a port into its slot looks at the entry afterwards; who closes a handle looks at the slots
 *    afterwards. All four accesses are seq_cst: at least one of the two sees what the other did.
 * 5. By 3 and 4 no port outlives its last handle because a thread that has ended, or does something else, had used it.
 *    Nor because one has stayed behind in the parent of a fork: its slot is not in use.
 * 6. What is kept is used only if the entry has that Access still and shows that port: the handle may be closed, and
 *    opened again for another object, before who closes it comes to the slots.
 */
#ifndef INTERLOCK_NT_KEPTPORT_H
#define INTERLOCK_NT_KEPTPORT_H

#include "completion.h"

#include "../ob/handletable.h"

#define NTP_GIVE_BACK ((ULONG_PTR)1)

typedef struct _NTP_PORT_USE {
    PNTP_PORT Port;
    BOOLEAN Kept; /* the reference is the one that the thread's slot keeps */
} NTP_PORT_USE, *PNTP_PORT_USE;

VOID NtpTakeBackPort(PKTHREAD Thread); /* out of the slot, if it has NTP_GIVE_BACK */
VOID NtpKeepPort(PKTHREAD Thread, HANDLE Handle, PNTP_PORT Port);
VOID NtpTakeKeptPorts(PNTP_PORT Port); /* a handle of Port has been closed */

FORCEINLINE VOID NtpEndUse(PKTHREAD Thread)
{
    KiStoreBeforeLook(&NtpThread(Thread)->UsesKeptPort, FALSE);
    if (__builtin_expect(__atomic_load_n(&NtpThreadKept(Thread)->KeptPort, __ATOMIC_SEQ_CST) & NTP_GIVE_BACK, FALSE)) {
        NtpTakeBackPort(Thread);
    }
}

/* relaxed, both: whoever has closed the handle before this call has changed the entry before */
FORCEINLINE BOOLEAN NtpIsKeptFor(PNTP_THREAD_KEPT Slot, ULONG_PTR Port)
{
    POBP_HANDLE_ENTRY Entry = Slot->KeptEntry;
    return __atomic_load_n(&Entry->Access, __ATOMIC_RELAXED) == Slot->KeptAccess &&
           (ULONG_PTR)ObpObjectOf(__atomic_load_n(&Entry->Object, __ATOMIC_RELAXED)) == Port;
}

/* With UsesKeptPort set: what is kept of this handle, if it is good for this, or NULL. */
FORCEINLINE PNTP_PORT NtpFindKeptPort(PKTHREAD Thread, HANDLE Handle, ACCESS_MASK DesiredAccess)
{
    PNTP_THREAD_KEPT Slot = NtpThreadKept(Thread);
    ULONG_PTR Port = __atomic_load_n(&Slot->KeptPort, __ATOMIC_SEQ_CST);
    BOOLEAN Good = Port != 0 && Slot->KeptHandle == Handle && !(DesiredAccess & ~(ACCESS_MASK)Slot->KeptAccess) &&
                   NtpIsKeptFor(Slot, Port); /* no object's address has NTP_GIVE_BACK */
    return __builtin_expect(Good, TRUE) ? (PNTP_PORT)Port : NULL;
}

/* A port by handle, for the time of one call of Thread's. If this succeeds the handle is one of the table. */
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
        NtpEndUse(Thread);
    }
    return ObpReferenceByHandle(Handle, DesiredAccess, &NtpPortType, UserMode, (PVOID *)&Use->Port);
}

FORCEINLINE VOID NtpReturnPort(PKTHREAD Thread, HANDLE Handle, PNTP_PORT_USE Use)
{
    if (__builtin_expect(Use->Kept, TRUE)) {
        NtpEndUse(Thread);
    } else {
        NtpKeepPort(Thread, Handle, Use->Port);
    }
}

#endif
