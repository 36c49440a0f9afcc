/*
 * handle.c: the handle table. How it is laid out is in handletable.h.
 *
 * The requirements, and what meets them:
 * 1. A lookup takes no lock and does not touch the object: it takes one prepaid reference by compare-exchange on the
 *    Object word. While the word shows an object the handle has a reference of its own, so the object is alive.
 * 2. A lookup of an open handle never fails. When few references are left, whoever takes one pays for more. It can do
 *    so because the one it has just taken keeps the object; should the handle be closed meanwhile, it takes them back.
 *    Where none is left the others wait for that. It happens inside a dispatcher section, so a fork or a suspension
 *    does not come in between.
 * 3. No lookup succeeds after a close has returned: closing takes the word to 0 by compare-exchange, and the one who
 *    did that gives back the handle's reference and whatever was prepaid.
 * 4. Object and Access belong together: Incarnation grows each time the entry is opened, and a lookup that finds
 *    another Access after its compare-exchange than before starts over.
 * 5. A closed handle stays invalid for long: free entries are used first in first out, and not before
 *    OBP_REUSE_DELAY of them are there.
 *
 * A lock in the entry would fail 1 under contention; counting on the object would make every lookup of a shared object
 * meet on its header, and could not exclude that the object goes between reading the entry and counting.
 */
#include "handletable.h"
#include "namespace.h"

#include "../ke/debugdata.h"

#define OBP_REUSE_DELAY 128
#define OBP_PREPAID_MOST 0xffffu
#define OBP_PREPAID_BATCH 0x7fff

OBP_BRANCH_TABLE *volatile ObpRoot[OBP_ROOT];
KD_REGISTER_ROOT(ObpRoot);
KD_REGISTER_LAYOUT(ObpLayout, OBP_LAYOUT);

/* Everything below is guarded by Lock. Index 0 is no handle. */
static struct {
    KI_LOCK Lock DECLSPEC_ALIGN(KI_CACHE_LINE);
    ULONG Next;                      /* the lowest index never used */
    ULONG FirstFree;
    ULONG LastFree;
    ULONG FreeCount;
} ObpTable = {.Next = 1};

/* Puts a fresh table where there is none; whoever comes second throws its own away. */
static BOOLEAN ObpPublish(PVOID volatile *Place, SIZE_T Size)
{
    PVOID Expected = NULL;
    PVOID Fresh;
    if (__atomic_load_n(Place, __ATOMIC_ACQUIRE) != NULL) {
        return TRUE;
    }
    Fresh = HalAllocate(Size, KI_CACHE_LINE);
    if (Fresh == NULL) {
        return FALSE;
    }
    if (!__atomic_compare_exchange_n(Place, &Expected, Fresh, FALSE, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        HalFree(Fresh);
    }
    return TRUE;
}

static BOOLEAN ObpEnsureLeaf(ULONG Index)
{
    OBP_BRANCH_TABLE *volatile *Root = &ObpRoot[Index / (OBP_LEAF * OBP_BRANCH)];
    OBP_BRANCH_TABLE *Branch;
    if (!ObpPublish((PVOID volatile *)Root, sizeof(OBP_BRANCH_TABLE))) {
        return FALSE;
    }
    Branch = __atomic_load_n(Root, __ATOMIC_ACQUIRE);
    return ObpPublish((PVOID volatile *)&Branch->Leaf[Index / OBP_LEAF % OBP_BRANCH], sizeof(OBP_LEAF_TABLE));
}

static VOID ObpLockTable(PKTHREAD Thread)
{
    KiEnterDispatcher(Thread);
    KiAcquireLock(&ObpTable.Lock);
}

static VOID ObpUnlockTable(PKTHREAD Thread)
{
    KiReleaseLock(&ObpTable.Lock);
    KiExitDispatcher(Thread);
}

/* With the table locked. A new index is only good once its leaf is there: *Missing is the index to make one for. */
static ULONG ObpTakeIndex(PULONG Missing)
{
    ULONG Index;
    *Missing = 0;
    if (ObpTable.FreeCount < OBP_REUSE_DELAY && ObpTable.Next < OBP_HANDLE_LIMIT) {
        if (ObpEntry(ObpTable.Next) == NULL) {
            *Missing = ObpTable.Next;
            return 0;
        }
        return ObpTable.Next++;
    }
    Index = ObpTable.FirstFree;
    if (Index != 0) {
        ObpTable.FirstFree = (ULONG)__atomic_load_n(&ObpEntry(Index)->Access, __ATOMIC_RELAXED);
        ObpTable.FreeCount--;
    }
    return Index;
}

static ULONG ObpAllocateIndex(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG Index, Missing;
    do {
        ObpLockTable(Thread);
        Index = ObpTakeIndex(&Missing);
        ObpUnlockTable(Thread);
    } while (Missing != 0 && ObpEnsureLeaf(Missing));
    return Index;
}

static ULONG64 ObpAccessWord(ULONG64 Previous, ULONG Low)
{
    return (Previous & ~0xffffffffull) | Low;
}

static VOID ObpFreeIndex(ULONG Index)
{
    PKTHREAD Thread = KiCurrentThread();
    POBP_HANDLE_ENTRY Entry = ObpEntry(Index);
    ObpLockTable(Thread);
    /* relaxed: the word of a closed handle; who holds the lock is the only one who goes by it */
    __atomic_store_n(&Entry->Access, ObpAccessWord(__atomic_load_n(&Entry->Access, __ATOMIC_RELAXED), 0),
                     __ATOMIC_RELAXED);
    if (ObpTable.FreeCount == 0) {
        ObpTable.FirstFree = Index;
    } else {
        POBP_HANDLE_ENTRY Last = ObpEntry(ObpTable.LastFree);
        __atomic_store_n(&Last->Access, ObpAccessWord(__atomic_load_n(&Last->Access, __ATOMIC_RELAXED), Index),
                         __ATOMIC_RELAXED);
    }
    ObpTable.LastFree = Index;
    ObpTable.FreeCount++;
    ObpUnlockTable(Thread);
}

static VOID ObpOpenEntry(POBP_HANDLE_ENTRY Entry, PVOID Object, ULONG64 Attributes, ACCESS_MASK GrantedAccess)
{
    ULONG64 Incarnation = (__atomic_load_n(&Entry->Access, __ATOMIC_RELAXED) >> 32) + 1;
    __atomic_store_n(&Entry->Access, Incarnation << 32 | GrantedAccess, __ATOMIC_RELAXED);
    /* release: pairs with the compare-exchange in ObpTakePrepaid, which then sees this Access or a later one */
    __atomic_store_n(&Entry->Object, OBP_PREPAID_BATCH * OBP_PREPAID_ONE | (ULONG_PTR)Object | Attributes,
                     __ATOMIC_RELEASE);
}

HANDLE ObpReserveHandle(VOID)
{
    return ULongToHandle(ObpAllocateIndex() << 2);
}

VOID ObpCancelReservedHandle(HANDLE Handle)
{
    ObpFreeIndex(HandleToULong(Handle) >> 2);
}

VOID ObpOpenReservedHandle(HANDLE Handle, PVOID Object, ULONG HandleAttributes, ACCESS_MASK GrantedAccess)
{
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    ULONG64 Attributes = ((HandleAttributes & OBJ_INHERIT) ? OBP_INHERIT : 0) |
                         ((HandleAttributes & OBJ_PROTECT_CLOSE) ? OBP_PROTECT : 0);
    ObpReferenceObjectEx(Object, 1 + OBP_PREPAID_BATCH);
    __atomic_fetch_add(&Header->HandleCount, 1, __ATOMIC_RELAXED);
    ObpCountUp(&Header->Type->TotalNumberOfHandles, &Header->Type->HighWaterNumberOfHandles);
    ObpOpenEntry(ObpEntryOfHandle(Handle), Object, Attributes, GrantedAccess);
}

static NTSTATUS ObpOpenObject(PVOID Object, ULONG HandleAttributes, ACCESS_MASK GrantedAccess, PHANDLE Handle)
{
    HANDLE Reserved = ObpReserveHandle();
    if (Reserved == NULL) {
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    ObpOpenReservedHandle(Reserved, Object, HandleAttributes, GrantedAccess);
    *Handle = Reserved;
    return STATUS_SUCCESS;
}

NTSTATUS ObOpenObjectByPointer(PVOID Object, ULONG HandleAttributes, PACCESS_STATE PassedAccessState,
                               ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType, KPROCESSOR_MODE AccessMode,
                               PHANDLE Handle)
{
    ACCESS_MASK GrantedAccess;
    NTSTATUS Status;
    UNREFERENCED_PARAMETER(PassedAccessState);
    if (HandleAttributes & ~(ULONG)OBJ_VALID_ATTRIBUTES) {
        return STATUS_INVALID_PARAMETER;
    }
    if (HandleAttributes & OBJ_FORCE_ACCESS_CHECK) {
        AccessMode = UserMode;
    }
    Status = ObReferenceObjectByPointer(Object, DesiredAccess, ObjectType, AccessMode);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Status = ObpGrantAccess(ObpHeaderOf(Object)->Type, DesiredAccess, AccessMode, &GrantedAccess);
    if (NT_SUCCESS(Status)) {
        Status = ObpOpenObject(Object, HandleAttributes, GrantedAccess, Handle);
    }
    ObpDereferenceObjectEx(Object, 1);
    return Status;
}

/* The caller has just taken a reference on Object from the entry. Whatever cannot be stored there goes back. */
static VOID ObpPayInAdvance(POBP_HANDLE_ENTRY Entry, PVOID Object)
{
    ULONG64 Word = __atomic_load_n(&Entry->Object, __ATOMIC_RELAXED);
    ObpReferenceObjectEx(Object, OBP_PREPAID_BATCH);
    /* A handle that was closed and opened again for the same object may have them as well. */
    while (ObpObjectOf(Word) == Object && ObpPrepaidOf(Word) + OBP_PREPAID_BATCH <= OBP_PREPAID_MOST) {
        /* release: who takes one of these sees an object that has them */
        if (__atomic_compare_exchange_n(&Entry->Object, &Word, Word + OBP_PREPAID_BATCH * OBP_PREPAID_ONE, TRUE,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
            return;
        }
    }
    ObpDereferenceObjectEx(Object, OBP_PREPAID_BATCH);
}

static DECLSPEC_NOINLINE ULONG64 ObpTakeOneOfFew(POBP_HANDLE_ENTRY Entry)
{
    PKTHREAD Thread = KiCurrentThread();
    ULONG64 Word;
    KiEnterDispatcher(Thread);
    for (ULONG Round = 0; (Word = __atomic_load_n(&Entry->Object, __ATOMIC_RELAXED)) != 0; Round++) {
        if (ObpPrepaidOf(Word) == 0) {
            HalLongSpin(Round);
        } else if (ObpTakeOne(Entry, &Word)) {
            if (ObpPrepaidOf(Word) <= OBP_PREPAID_FEW) {
                ObpPayInAdvance(Entry, ObpObjectOf(Word));
            }
            break;
        }
    }
    KiExitDispatcher(Thread);
    return Word;
}

/* Takes one reference from the entry. Returns the word it was taken from, 0 if the handle is not open. */
static ULONG64 ObpTakePrepaid(POBP_HANDLE_ENTRY Entry)
{
    ULONG64 Word = __atomic_load_n(&Entry->Object, __ATOMIC_RELAXED);
    while (ObpPrepaidOf(Word) > OBP_PREPAID_FEW) {
        if (ObpTakeOne(Entry, &Word)) {
            return Word;
        }
    }
    return Word != 0 ? ObpTakeOneOfFew(Entry) : 0;
}

typedef struct _OBP_REFERENCE {
    PVOID Object;
    OBJECT_HANDLE_INFORMATION Information;
} OBP_REFERENCE, *POBP_REFERENCE;

FORCEINLINE BOOLEAN ObpReferenceEntry(POBP_HANDLE_ENTRY Entry, POBP_REFERENCE Reference)
{
    for (;;) {
        /* acquire: read before the compare-exchange in ObpTakePrepaid, which itself comes before the second read */
        ULONG64 Access = __atomic_load_n(&Entry->Access, __ATOMIC_ACQUIRE);
        ULONG64 Word = ObpTakePrepaid(Entry);
        if (Word == 0) {
            return FALSE;
        }
        if (__atomic_load_n(&Entry->Access, __ATOMIC_RELAXED) == Access) {
            Reference->Object = ObpObjectOf(Word);
            Reference->Information.HandleAttributes = (Word & OBP_INHERIT) ? OBJ_INHERIT : 0;
            Reference->Information.GrantedAccess = (ACCESS_MASK)Access;
            return TRUE;
        }
        ObpDereferenceObjectEx(ObpObjectOf(Word), 1);
    }
}

static BOOLEAN ObpIsPseudoHandle(HANDLE Handle)
{
    return Handle == NtCurrentProcess() || Handle == NtCurrentThread();
}

static DECLSPEC_NOINLINE VOID ObpReferencePseudoHandle(HANDLE Handle, POBP_REFERENCE Reference)
{
    if (Handle == NtCurrentProcess()) {
        Reference->Object = &KiInitialProcess;
        Reference->Information.GrantedAccess = PROCESS_ALL_ACCESS;
    } else {
        Reference->Object = KiCurrentThread();
        Reference->Information.GrantedAccess = THREAD_ALL_ACCESS;
    }
    Reference->Information.HandleAttributes = 0;
    ObpReferenceObjectEx(Reference->Object, 1);
}

FORCEINLINE BOOLEAN ObpReferenceHandle(HANDLE Handle, POBP_REFERENCE Reference)
{
    POBP_HANDLE_ENTRY Entry = ObpEntryOfHandle(Handle);
    if (__builtin_expect(Entry != NULL, TRUE)) {
        return ObpReferenceEntry(Entry, Reference);
    }
    if (ObpIsPseudoHandle(Handle)) {
        ObpReferencePseudoHandle(Handle, Reference);
        return TRUE;
    }
    return FALSE;
}

static NTSTATUS ObpCheckReference(POBP_REFERENCE Reference, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                  KPROCESSOR_MODE AccessMode)
{
    if (ObjectType != NULL && ObpHeaderOf(Reference->Object)->Type != ObjectType) {
        return STATUS_OBJECT_TYPE_MISMATCH;
    }
    if (AccessMode != KernelMode && (DesiredAccess & ~Reference->Information.GrantedAccess) != 0) {
        return STATUS_ACCESS_DENIED;
    }
    return STATUS_SUCCESS;
}

NTSTATUS ObpReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                    KPROCESSOR_MODE AccessMode, PVOID *Object,
                                    POBJECT_HANDLE_INFORMATION HandleInformation)
{
    OBP_REFERENCE Reference;
    NTSTATUS Status;
    *Object = NULL;
    if (!ObpReferenceHandle(Handle, &Reference)) {
        return STATUS_INVALID_HANDLE;
    }
    Status = ObpCheckReference(&Reference, DesiredAccess, ObjectType, AccessMode);
    if (!NT_SUCCESS(Status)) {
        ObpDereferenceObjectEx(Reference.Object, 1);
        return Status;
    }
    *Object = Reference.Object;
    if (HandleInformation != NULL) {
        *HandleInformation = Reference.Information;
    }
    return STATUS_SUCCESS;
}

NTSTATUS ObReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                   KPROCESSOR_MODE AccessMode, PVOID *Object,
                                   POBJECT_HANDLE_INFORMATION HandleInformation)
{
    return HandleInformation == NULL
               ? ObpReferenceByHandle(Handle, DesiredAccess, ObjectType, AccessMode, Object)
               : ObpReferenceObjectByHandle(Handle, DesiredAccess, ObjectType, AccessMode, Object, HandleInformation);
}

static VOID ObpReleaseHandle(PVOID Object, LONG_PTR References, ACCESS_MASK GrantedAccess)
{
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    BOOLEAN Unlinked = FALSE;
    LONG_PTR HandlesLeft;
    if (Header->NameInfo != NULL) {
        HandlesLeft = ObpCloseNamedHandle(Object, &Unlinked);
    } else {
        HandlesLeft = __atomic_sub_fetch(&Header->HandleCount, 1, __ATOMIC_RELAXED);
    }
    __atomic_fetch_sub(&Header->Type->TotalNumberOfHandles, 1, __ATOMIC_RELAXED);
    if (Header->Type->CloseProcedure != NULL) {
        Header->Type->CloseProcedure(Object, GrantedAccess, HandlesLeft);
    }
    ObpDereferenceObjectEx(Object, References + (Unlinked ? 1 : 0));
}

static NTSTATUS ObpCloseEntry(POBP_HANDLE_ENTRY Entry, ULONG Index)
{
    ULONG64 Word = __atomic_load_n(&Entry->Object, __ATOMIC_RELAXED);
    ACCESS_MASK GrantedAccess;
    do {
        if (Word == 0) {
            return STATUS_INVALID_HANDLE;
        }
        if (Word & OBP_PROTECT) {
            return STATUS_HANDLE_NOT_CLOSABLE;
        }
        /* acquire: pairs with the release in ObpOpenEntry, so the Access read below is that of this handle; seq_cst:
           comes before the looks at what threads have kept, nt/keptport.h */
    } while (!__atomic_compare_exchange_n(&Entry->Object, &Word, 0, TRUE, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    GrantedAccess = (ACCESS_MASK)__atomic_load_n(&Entry->Access, __ATOMIC_RELAXED);
    ObpFreeIndex(Index);
    ObpReleaseHandle(ObpObjectOf(Word), 1 + (LONG_PTR)ObpPrepaidOf(Word), GrantedAccess);
    return STATUS_SUCCESS;
}

/* A driver that closes what it does not own has a bug that the verifier stops at; a program only gets the status. */
static NTSTATUS ObpCloseFailed(HANDLE Handle, KPROCESSOR_MODE PreviousMode, NTSTATUS Status)
{
    if (KiVerifierEnabled && PreviousMode == KernelMode && Handle != NULL && !ObpIsPseudoHandle(Handle)) {
        KeBugCheckEx(INVALID_KERNEL_HANDLE, (ULONG_PTR)Handle, Status != STATUS_HANDLE_NOT_CLOSABLE, 0, 0);
    }
    return Status;
}

NTSTATUS ObCloseHandle(HANDLE Handle, KPROCESSOR_MODE PreviousMode)
{
    POBP_HANDLE_ENTRY Entry = ObpEntryOfHandle(Handle);
    NTSTATUS Status =
        Entry != NULL ? ObpCloseEntry(Entry, (ULONG)((ULONG_PTR)Handle >> 2)) : STATUS_INVALID_HANDLE;
    return NT_SUCCESS(Status) ? Status : ObpCloseFailed(Handle, PreviousMode, Status);
}

NTSTATUS ZwClose(HANDLE Handle)
{
    PKTHREAD Thread = KiCurrentThread();
    NTSTATUS Status;
    KiEnterService(Thread);
    Status = ObCloseHandle(Handle, KernelMode);
    KiExitService(Thread);
    return Status;
}

NTSTATUS ObpSetHandleAttributes(HANDLE Handle, BOOLEAN Inherit, BOOLEAN ProtectFromClose)
{
    POBP_HANDLE_ENTRY Entry = ObpEntryOfHandle(Handle);
    ULONG64 Attributes = (Inherit ? OBP_INHERIT : 0) | (ProtectFromClose ? OBP_PROTECT : 0);
    ULONG64 Word = Entry != NULL ? __atomic_load_n(&Entry->Object, __ATOMIC_RELAXED) : 0;
    /* relaxed: nothing goes with the attributes */
    while (Word != 0 && !__atomic_compare_exchange_n(&Entry->Object, &Word, (Word & ~OBP_ATTRIBUTES) | Attributes,
                                                     TRUE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return Word != 0 ? STATUS_SUCCESS : STATUS_INVALID_HANDLE;
}

NTSTATUS ObpQueryHandleAttributes(HANDLE Handle, BOOLEAN *Inherit, BOOLEAN *ProtectFromClose)
{
    POBP_HANDLE_ENTRY Entry = ObpEntryOfHandle(Handle);
    ULONG64 Word = Entry != NULL ? __atomic_load_n(&Entry->Object, __ATOMIC_RELAXED) : 0;
    *Inherit = (Word & OBP_INHERIT) != 0;
    *ProtectFromClose = (Word & OBP_PROTECT) != 0;
    return Word != 0 || ObpIsPseudoHandle(Handle) ? STATUS_SUCCESS : STATUS_INVALID_HANDLE;
}
