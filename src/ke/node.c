/*
 * node.c: nodes of memory, and callbacks for changes of the processors.
 *
 * Which processors a node has is read from the host at the first query and kept. Two threads that query first both
 * read, and the loser frees its table.
 */
#include "ki.h"

#include "../hal/machine.h"

typedef struct _KI_NODES {
    USHORT Highest;
    USHORT NodeOf[]; /* a processor's node */
} KI_NODES, *PKI_NODES;

static PKI_NODES KiNodes;

/* NULL: no memory. */
static PKI_NODES KiReadNodes(VOID)
{
    PHAL_RELATION Relations;
    ULONG Count;
    PKI_NODES Nodes = HalAllocate(sizeof(KI_NODES) + KeNumberProcessors * sizeof(USHORT), sizeof(PVOID));
    if (Nodes == NULL || !HalQueryTopology(KeNumberProcessors, &Relations, &Count)) {
        HalFree(Nodes);
        return NULL;
    }
    for (ULONG i = 0; i < Count; i++) {
        for (ULONG Number = 0; Relations[i].Kind == HalNode && Number < KeNumberProcessors; Number++) {
            if (Relations[i].Processors[Number / 64] & (1ull << Number % 64)) {
                Nodes->NodeOf[Number] = (USHORT)Relations[i].Number;
                Nodes->Highest = Nodes->NodeOf[Number] > Nodes->Highest ? Nodes->NodeOf[Number] : Nodes->Highest;
            }
        }
    }
    HalFree(Relations);
    return Nodes;
}

static PKI_NODES KiQueryNodes(VOID)
{
    /* acquire: pairs with the release of the compare-exchange */
    PKI_NODES Nodes = __atomic_load_n(&KiNodes, __ATOMIC_ACQUIRE);
    if (Nodes == NULL) {
        PKI_NODES Fresh = KiReadNodes();
        if (Fresh == NULL ||
            __atomic_compare_exchange_n(&KiNodes, &Nodes, Fresh, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            return Fresh;
        }
        HalFree(Fresh);
    }
    return Nodes;
}

/* Without memory for the table all processors are in node 0. */
static USHORT KiNodeOf(PKI_NODES Nodes, ULONG Processor)
{
    return Nodes != NULL ? Nodes->NodeOf[Processor] : 0;
}

USHORT KeQueryHighestNodeNumber(VOID)
{
    PKI_NODES Nodes = KiQueryNodes();
    return Nodes != NULL ? Nodes->Highest : 0;
}

USHORT KeGetCurrentNodeNumber(VOID)
{
    return KiNodeOf(KiQueryNodes(), KeGetCurrentProcessorNumberEx(NULL));
}

/* The groups in which a node has processors, as many as there is room for. Returns how many there are. */
static USHORT KiAffinitiesOfNode(USHORT NodeNumber, PGROUP_AFFINITY Affinities, USHORT Room)
{
    PKI_NODES Nodes = KiQueryNodes();
    USHORT Used = 0;
    for (USHORT Group = 0; Group < KeQueryActiveGroupCount(); Group++) {
        GROUP_AFFINITY Affinity = {.Group = Group};
        for (ULONG Number = 0; Number < KeQueryActiveProcessorCountEx(Group); Number++) {
            if (KiNodeOf(Nodes, (ULONG)Group * MAXIMUM_PROC_PER_GROUP + Number) == NodeNumber) {
                Affinity.Mask |= (KAFFINITY)1 << Number;
            }
        }
        if (Affinity.Mask != 0 && Used < Room) {
            Affinities[Used] = Affinity;
        }
        Used = (USHORT)(Used + (Affinity.Mask != 0));
    }
    return Used;
}

static USHORT KiProcessorsOfNode(USHORT NodeNumber)
{
    PKI_NODES Nodes = KiQueryNodes();
    USHORT Count = 0;
    for (ULONG Number = 0; Number < KeNumberProcessors; Number++) {
        Count = (USHORT)(Count + (KiNodeOf(Nodes, Number) == NodeNumber));
    }
    return Count;
}

VOID KeQueryNodeActiveAffinity(USHORT NodeNumber, PGROUP_AFFINITY Affinity, PUSHORT Count)
{
    GROUP_AFFINITY First = {0};
    KiAffinitiesOfNode(NodeNumber, &First, 1);
    if (Affinity != NULL) {
        *Affinity = First;
    }
    if (Count != NULL) {
        *Count = (USHORT)__builtin_popcountll(First.Mask);
    }
}

NTSTATUS KeQueryNodeActiveAffinity2(USHORT NodeNumber, PGROUP_AFFINITY GroupAffinities, USHORT GroupAffinitiesCount,
                                    PUSHORT GroupAffinitiesRequired)
{
    USHORT Required;
    if (NodeNumber > KeQueryHighestNodeNumber()) {
        return STATUS_INVALID_PARAMETER;
    }
    Required = KiAffinitiesOfNode(NodeNumber, GroupAffinities, GroupAffinitiesCount);
    *GroupAffinitiesRequired = Required;
    return Required <= GroupAffinitiesCount ? STATUS_SUCCESS : STATUS_BUFFER_TOO_SMALL;
}

USHORT KeQueryNodeActiveProcessorCount(USHORT NodeNumber)
{
    return KiProcessorsOfNode(NodeNumber);
}

USHORT KeQueryNodeMaximumProcessorCount(USHORT NodeNumber)
{
    return KiProcessorsOfNode(NodeNumber);
}

/*
 * Processor changes. None is ever added, so a registration sees the existing ones, if it asks for them. A processor is
 * added in two steps; if the callback refuses one in the first, it gets a failure for that one and for those before.
 */

typedef struct _KI_PROCESSOR_CALLBACK {
    PPROCESSOR_CALLBACK_FUNCTION Function;
    PVOID Context;
} KI_PROCESSOR_CALLBACK, *PKI_PROCESSOR_CALLBACK;

static NTSTATUS KiNotifyOfProcessor(PKI_PROCESSOR_CALLBACK Callback, ULONG Number,
                                    KE_PROCESSOR_CHANGE_NOTIFY_STATE State, NTSTATUS Status)
{
    KE_PROCESSOR_CHANGE_NOTIFY_CONTEXT Change = {.State = State, .NtNumber = Number, .Status = Status};
    NTSTATUS Operation = STATUS_SUCCESS;
    KeGetProcessorNumberFromIndex(Number, &Change.ProcNumber);
    Callback->Function(Callback->Context, &Change, &Operation);
    return State == KeProcessorAddStartNotify ? Operation : STATUS_SUCCESS;
}

static BOOLEAN KiNotifyOfExisting(PKI_PROCESSOR_CALLBACK Callback)
{
    NTSTATUS Status = STATUS_SUCCESS;
    ULONG Started = 0;
    while (Started < KeNumberProcessors && NT_SUCCESS(Status)) {
        Status = KiNotifyOfProcessor(Callback, Started++, KeProcessorAddStartNotify, STATUS_SUCCESS);
    }
    for (ULONG Number = 0; Number < Started; Number++) {
        KiNotifyOfProcessor(Callback, Number,
                            NT_SUCCESS(Status) ? KeProcessorAddCompleteNotify : KeProcessorAddFailureNotify, Status);
    }
    return NT_SUCCESS(Status);
}

PVOID KeRegisterProcessorChangeCallback(PPROCESSOR_CALLBACK_FUNCTION CallbackFunction, PVOID CallbackContext,
                                        ULONG Flags)
{
    PKI_PROCESSOR_CALLBACK Callback;
    if (CallbackFunction == NULL || (Flags & ~(ULONG)KE_PROCESSOR_CHANGE_ADD_EXISTING)) {
        return NULL;
    }
    Callback = HalAllocate(sizeof(*Callback), sizeof(PVOID));
    if (Callback == NULL) {
        return NULL;
    }
    *Callback = (KI_PROCESSOR_CALLBACK){CallbackFunction, CallbackContext};
    if ((Flags & KE_PROCESSOR_CHANGE_ADD_EXISTING) && !KiNotifyOfExisting(Callback)) {
        HalFree(Callback);
        return NULL;
    }
    return Callback;
}

VOID KeDeregisterProcessorChangeCallback(PVOID CallbackHandle)
{
    HalFree(CallbackHandle);
}
