/*
 * uuid.c: unique identifiers of version 1 (RFC 4122): 60 bits of time, 14 of a clock sequence, 48 of a node.
 *
 * The time is the system's, or one more than the last one given out in this process, so that no two calls get the same.
 * Processes differ by the node, which is random with the multicast bit set, as the RFC requires of a node that is not
 * an address. A child of fork has its parent's random bits, so the process id is mixed in.
 */
#include <interlock/ex.h>

#include "exp.h"

#define EXP_UUID_EPOCH 5748192000000000LL /* from 1582-10-15 to 1601-01-01 */
#define EXP_UUID_VERSION 0x1000
#define EXP_UUID_VARIANT 0x80
#define EXP_UUID_MULTICAST 0x01

typedef struct _EXP_UUID_NODE {
    UCHAR Node[6];
    UCHAR Sequence[2];
} EXP_UUID_NODE;

static LONGLONG ExpLastUuidTime;

static LONGLONG ExpNextUuidTime(VOID)
{
    LARGE_INTEGER Now;
    LONGLONG Last, Next;
    KeQuerySystemTimePrecise(&Now);
    Now.QuadPart += EXP_UUID_EPOCH;
    Last = __atomic_load_n(&ExpLastUuidTime, __ATOMIC_RELAXED);
    do {
        Next = Now.QuadPart > Last ? Now.QuadPart : Last + 1;
        /* relaxed: only the values must differ */
    } while (!__atomic_compare_exchange_n(&ExpLastUuidTime, &Last, Next, TRUE, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return Next;
}

NTSTATUS ExUuidCreate(UUID *Uuid)
{
    static ULONGLONG Chosen; /* the node and sequence of the process; 0: not yet */
    ULONGLONG Bits = __atomic_load_n(&Chosen, __ATOMIC_RELAXED);
    ULONGLONG None = 0;
    EXP_UUID_NODE Node;
    ULONG ProcessId = HalCurrentProcessId();
    ULONGLONG Time = (ULONGLONG)ExpNextUuidTime();
    /* The first thread's choice counts; relaxed: nothing else depends on it. */
    if (Bits == 0 && HalQueryRandom(&Bits, sizeof(Bits)) && Bits != 0 &&
        !__atomic_compare_exchange_n(&Chosen, &None, Bits, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
        Bits = None;
    }
    memcpy(&Node, &Bits, sizeof(Node));
    for (ULONG Index = 0; Index < sizeof(ProcessId); Index++) {
        Node.Node[2 + Index] ^= (UCHAR)(ProcessId >> Index * 8);
    }
    Uuid->Data1 = (ULONG)Time;
    Uuid->Data2 = (USHORT)(Time >> 32);
    Uuid->Data3 = (USHORT)((Time >> 48 & 0x0FFF) | EXP_UUID_VERSION);
    Uuid->Data4[0] = (UCHAR)((Node.Sequence[0] & 0x3F) | EXP_UUID_VARIANT);
    Uuid->Data4[1] = Node.Sequence[1];
    Node.Node[0] |= EXP_UUID_MULTICAST;
    memcpy(&Uuid->Data4[2], Node.Node, sizeof(Node.Node));
    return Bits != 0 ? STATUS_SUCCESS : RPC_NT_UUID_LOCAL_ONLY;
}
