/*
 * debugdata.h: the roots that a debugger starts from. One line beside a variable, in any layer, registers it as a root.
 * The linker collects them: registering costs nothing, and a static program has the roots of the parts that it links.
 *
 * Layouts are registered in the same way: the offsets of the members of private structures that a debugger reads. The
 * debugger compares them with its own before it reads any. The kernel's layouts are part of the hash in the block.
 */
#ifndef INTERLOCK_KE_DEBUGDATA_H
#define INTERLOCK_KE_DEBUGDATA_H

#include "irql.h"
#include "timer.h"

/*
 * The block that a debugger searches for, in a live process or in a core file: by its symbol, or in a program without
 * symbols by Magic where Self is the block's own address. A debugger of another Version or LayoutHash cannot read what
 * the roots point to.
 */
typedef struct _KD_ROOT {
    PCSTR Name;               /* the variable's name in the library */
    PVOID Address;
    SIZE_T Size;
} KD_ROOT, *PKD_ROOT;

#define KD_DEBUGGER_DATA_MAGIC "Interlock KDBG\n"

typedef struct _KD_DEBUGGER_DATA {
    CHAR Magic[16];
    struct _KD_DEBUGGER_DATA *Self;
    ULONG Size;               /* of this block */
    volatile ULONG Ready;     /* 1: the roots may be read */
    CHAR Version[32];
    ULONG64 LayoutHash;
    const KD_ROOT *FirstRoot; /* up to EndOfRoots, exclusive */
    const KD_ROOT *EndOfRoots;
} KD_DEBUGGER_DATA, *PKD_DEBUGGER_DATA;

extern NTKERNELAPI KD_DEBUGGER_DATA KdDebuggerDataBlock;

/* aligned: no gaps between the entries */
#define KD_REGISTER_ROOT(Variable)                                                                                     \
    static const KD_ROOT KdRootOf##Variable                                                                            \
        __attribute__((used, section("interlock_kd"), aligned(sizeof(PVOID)))) = {#Variable, (PVOID)&(Variable),       \
                                                                                  sizeof(Variable)}

/* The list is a macro beside the structure, <NAME>_LAYOUT, of sizes and KDP_MEMBER. */
#define KD_REGISTER_LAYOUT(Name, ...)                                                                                  \
    static const ULONG Name[] = {__VA_ARGS__};                                                                         \
    KD_REGISTER_ROOT(Name)


#define KDP_MEMBER(Type, Member) FIELD_OFFSET(Type, Member), sizeof(((Type *)0)->Member)

/* Covers the members that a debugger reads; those of public structures do not move. */
FORCEINLINE ULONG64 KdpLayoutHash(VOID)
{
    const ULONG Layout[] = {
        sizeof(KI_THREAD_SLOT),
        KDP_MEMBER(KI_THREAD_SLOT, Tcb),
        KDP_MEMBER(KI_THREAD_SLOT, Ps),
        KDP_MEMBER(KI_THREAD_SLOT, Use),
        KDP_MEMBER(KTHREAD, WaitRegister),
        KDP_MEMBER(KTHREAD, WaitBlockList),
        KDP_MEMBER(KTHREAD, WaitReason),
        KDP_MEMBER(KTHREAD, State),
        KDP_MEMBER(KTHREAD, WaitTime),
        KDP_MEMBER(KTHREAD, WaitDeadline),
        KDP_MEMBER(KTHREAD, WaitBlock),
        KDP_MEMBER(KTHREAD, Irql),
        KDP_MEMBER(KTHREAD, Prcb),
        KDP_MEMBER(KTHREAD, ApcState),
        KDP_MEMBER(KTHREAD, SuspendCount),
        KDP_MEMBER(KTHREAD, SuspendEvent),
        KDP_MEMBER(KTHREAD, Priority),
        KDP_MEMBER(KTHREAD, MutantListHead),
        KDP_MEMBER(KTHREAD, LockWaitedFor),
        KDP_MEMBER(KTHREAD, ThreadId),
        KDP_MEMBER(KTHREAD, CreateTime),
        sizeof(KPRCB),
        KDP_MEMBER(KPRCB, Owner),
        KDP_MEMBER(KPRCB, DpcData),
        KDP_MEMBER(KPRCB, InterruptRequest),
        KDP_MEMBER(KPRCB, Idle),
        KDP_MEMBER(KPRCB, LockQueue),
        KDP_MEMBER(KTIMER_TABLE, Processor),
        KDP_MEMBER(KTIMER_TABLE, Wheel),
        KDP_MEMBER(KI_WHEEL, Slot),
        KDP_MEMBER(KI_PROCESS_SLOT, Pcb),
    };
    ULONG64 Hash = 0xcbf29ce484222325ull;
    for (ULONG Index = 0; Index < sizeof(Layout) / sizeof(Layout[0]); Index += 1) {
        Hash = (Hash ^ Layout[Index]) * 0x100000001b3ull;
    }
    return Hash;
}

#endif
