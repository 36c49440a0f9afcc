/*
 * handle.c: the handle table. Its layout is in obp.h.
 *
 * The requirements, and what meets them:
 * 1. A lookup takes no lock and does not touch the object: it takes one prepaid reference by compare-exchange on the
 *    Object word. While the word shows an object the handle has a reference of its own, so the object is alive.
 * 2. A lookup of an open handle never fails. A thread that takes one of the last few references prepays more. The
 *    reference it has just taken makes that safe; if the handle is closed meanwhile, it returns the new ones. If none
 *    is left the others wait for it. It prepays inside a dispatcher section, so no fork or suspension intervenes.
 * 3. No lookup succeeds after a close has returned: closing sets the word to 0 by compare-exchange, and the closer
 *    returns the handle's reference and whatever was prepaid. A borrower has no reference: the closer waits for it
 *    (obp.h).
 * 4. Object and Access belong together: Incarnation grows each time the entry is opened, and a lookup that finds
 *    another Access after its compare-exchange than before starts over.
 * 5. A closed handle stays invalid for a long time: free entries are reused first in first out, and not before
 *    OBP_REUSE_DELAY of them are free.
 *
 * Rejected: a lock in the entry fails 1 under contention. Counting on the object makes every lookup of a shared object
 * contend on its header, and the object could be freed between reading the entry and counting.
 */
#include "../ke/debugdata.h"
#include "../ke/park.h"
#include "../ke/ki.h"
#include "share.h"

#define OBP_REUSE_DELAY 128
#define OBP_PREPAID_MOST 0xffffu
#define OBP_PREPAID_BATCH 0x7fff

OBP_BRANCH_TABLE *volatile ObpRoot[OBP_ROOT];
KD_REGISTER_ROOT(ObpRoot);
KD_REGISTER_LAYOUT(ObpLayout, OBP_LAYOUT);

/* The indexes of handles of user mode, and those of kernel handles. Guarded by Lock. The first of each is not a
   handle. */
typedef struct _OBP_INDEXES {
    KI_LOCK Lock DECLSPEC_ALIGN(KI_CACHE_LINE);
    ULONG Next;                      /* the lowest index never used */
    ULONG Limit;
    ULONG FirstFree;
    ULONG LastFree;
    ULONG FreeCount;
} OBP_INDEXES, *POBP_INDEXES;

static OBP_INDEXES ObpTable = {.Next = 1, .Limit = OBP_KERNEL_BASE};
static OBP_INDEXES ObpKernelTable = {.Next = OBP_KERNEL_BASE + 1, .Limit = OBP_HANDLE_LIMIT};

/* Allocates a table where there is none. If two threads race, the loser frees its own. */
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
    KiClaimProcessEnd();
    OBP_BRANCH_TABLE *volatile *Root = &ObpRoot[Index / (OBP_LEAF * OBP_BRANCH)];
    if (!ObpPublish((PVOID volatile *)Root, sizeof(OBP_BRANCH_TABLE))) {
        return FALSE;
    }
    OBP_BRANCH_TABLE *Branch = __atomic_load_n(Root, __ATOMIC_ACQUIRE);
    return ObpPublish((PVOID volatile *)&Branch->Leaf[Index / OBP_LEAF % OBP_BRANCH], sizeof(OBP_LEAF_TABLE));
}

/* With the table locked. 0 and *Missing: the next index is new and the caller must allocate its leaf first. */
static ULONG ObpTakeIndex(POBP_INDEXES Table, PULONG Missing)
{
    ULONG Index;
    *Missing = 0;
    if (Table->FreeCount < OBP_REUSE_DELAY && Table->Next < Table->Limit) {
        if (ObpEntry(Table->Next) == NULL) {
            *Missing = Table->Next;
            return 0;
        }
        return Table->Next++;
    }
    Index = Table->FirstFree;
    if (Index != 0) {
        Table->FirstFree = (ULONG)__atomic_load_n(&ObpEntry(Index)->Access, __ATOMIC_RELAXED);
        Table->FreeCount--;
    }
    return Index;
}

/* A child of a process that left it handles opens those first. Kernel handles are for kernel mode. */
static POBP_HANDLE_ENTRY ObpFindEntry(HANDLE Handle, KPROCESSOR_MODE AccessMode)
{
    if (ObpIsKernelHandle(Handle)) {
        return AccessMode == KernelMode ? ObpEntry(ObpIndexOfHandle(Handle)) : NULL;
    }
    POBP_HANDLE_ENTRY Entry = ObpEntryOfHandle(Handle);
    /* relaxed: a hint; before the adoption there is no entry at all */
    if (Entry == NULL && __atomic_load_n(&ObpAdoptionState, __ATOMIC_RELAXED) != ObpNothingToAdopt) {
        ObpAdoptHandles();
        Entry = ObpEntryOfHandle(Handle);
    }
    return Entry;
}

HANDLE ObpReserveHandle(ULONG HandleAttributes)
{
    POBP_INDEXES Table = HandleAttributes & OBJ_KERNEL_HANDLE ? &ObpKernelTable : &ObpTable;
    ULONG Index, Missing;
    if (HalIsFaultInjected()) {
        return NULL;
    }
    if (__atomic_load_n(&ObpAdoptionState, __ATOMIC_RELAXED) != ObpNothingToAdopt) {
        ObpAdoptHandles();
    }
    do {
        PKTHREAD Thread = KiEnterLocked(&Table->Lock);
        Index = ObpTakeIndex(Table, &Missing);
        KiExitLocked(&Table->Lock, Thread);
    } while (Missing != 0 && ObpEnsureLeaf(Missing));
    return ObpHandleOfIndex(Index);
}

static ULONG64 ObpAccessWord(ULONG64 Previous, ULONG Low)
{
    return (Previous & ~0xffffffffull) | Low;
}

/* With the table locked. */
static VOID ObpFreeIndex(POBP_INDEXES Table, ULONG Index)
{
    POBP_HANDLE_ENTRY Entry = ObpEntry(Index);
    /* relaxed: of a closed handle, read by holders of the lock only */
    __atomic_store_n(&Entry->Access, ObpAccessWord(__atomic_load_n(&Entry->Access, __ATOMIC_RELAXED), 0),
                     __ATOMIC_RELAXED);
    if (Table->FreeCount == 0) {
        Table->FirstFree = Index;
    } else {
        POBP_HANDLE_ENTRY Last = ObpEntry(Table->LastFree);
        __atomic_store_n(&Last->Access, ObpAccessWord(__atomic_load_n(&Last->Access, __ATOMIC_RELAXED), Index),
                         __ATOMIC_RELAXED);
    }
    Table->LastFree = Index;
    Table->FreeCount++;
}

/* Also of a handle that was just closed. */
VOID ObpCancelReservedHandle(HANDLE Handle)
{
    POBP_INDEXES Table = ObpIsKernelHandle(Handle) ? &ObpKernelTable : &ObpTable;
    PKTHREAD Thread = KiEnterLocked(&Table->Lock);
    ObpFreeIndex(Table, ObpIndexOfHandle(Handle));
    KiExitLocked(&Table->Lock, Thread);
}

BOOLEAN ObpReserveHandleValue(HANDLE Handle)
{
    ULONG Index = HandleToULong(Handle) >> 2;
    BOOLEAN Possible = Index != 0 && Index < OBP_KERNEL_BASE && (HandleToULong(Handle) & 3) == 0;
    return Possible && ObpEnsureLeaf(Index) && __atomic_load_n(&ObpEntry(Index)->Object, __ATOMIC_RELAXED) == 0;
}

/* No handle was reserved before. Without memory for a leaf its indexes are lost. */
VOID ObpFreeValuesBelow(HANDLE Highest)
{
    ULONG Last = HandleToULong(Highest) >> 2;
    for (ULONG Index = 1; Index <= Last; Index++) {
        BOOLEAN Usable = ObpEntry(Index) != NULL || ObpEnsureLeaf(Index);
        PKTHREAD Thread = KiEnterLocked(&ObpTable.Lock);
        if (Usable && __atomic_load_n(&ObpEntry(Index)->Object, __ATOMIC_RELAXED) == 0) {
            ObpFreeIndex(&ObpTable, Index);
        }
        ObpTable.Next = Index + 1;
        KiExitLocked(&ObpTable.Lock, Thread);
    }
}

HANDLE ObpNextHandle(HANDLE Handle)
{
    ULONG Index = (HandleToULong(Handle) >> 2) + 1;
    PKTHREAD Thread = KiEnterLocked(&ObpTable.Lock);
    ULONG End = ObpTable.Next;
    KiExitLocked(&ObpTable.Lock, Thread);
    for (; Index < End; Index++) {
        POBP_HANDLE_ENTRY Entry = ObpEntry(Index);
        /* relaxed: the caller looks the handle up */
        if (Entry != NULL && (__atomic_load_n(&Entry->Object, __ATOMIC_RELAXED) & OBP_INHERIT)) {
            return ULongToHandle(Index << 2);
        }
    }
    return NULL;
}

/* Returns the handle count as it was before. */
static LONG_PTR ObpFillEntry(HANDLE Handle, PVOID Object, ULONG HandleAttributes, ACCESS_MASK GrantedAccess)
{
    POBJECT_HEADER Header = ObpHeaderOf(Object);
    POBP_HANDLE_ENTRY Entry = ObpFindEntry(Handle, KernelMode);
    ULONG64 Attributes = ((HandleAttributes & OBJ_INHERIT) ? OBP_INHERIT : 0) |
                         ((HandleAttributes & OBJ_PROTECT_CLOSE) ? OBP_PROTECT : 0);
    ULONG64 Incarnation = (__atomic_load_n(&Entry->Access, __ATOMIC_RELAXED) >> 32) + 1;
    LONG_PTR Handles;
    ObpReferenceObjectEx(Object, 1 + OBP_PREPAID_BATCH);
    /* acquire: with OBP_SHARED comes the share */
    Handles = __atomic_fetch_add(&Header->HandleCount, 1, __ATOMIC_ACQUIRE);
    ObpCountUp(&Header->Type->TotalNumberOfHandles, &Header->Type->HighWaterNumberOfHandles);
    __atomic_store_n(&Entry->Access, Incarnation << 32 | GrantedAccess, __ATOMIC_RELAXED);
    /* release: pairs with the compare-exchange in ObpTakeOne, which then sees this Access or a later one */
    __atomic_store_n(&Entry->Object, OBP_PREPAID_BATCH * OBP_PREPAID_ONE | (ULONG_PTR)Object | Attributes,
                     __ATOMIC_RELEASE);
    return Handles;
}

VOID ObpOpenCountedHandle(HANDLE Handle, PVOID Object, ULONG HandleAttributes, ACCESS_MASK GrantedAccess)
{
    (VOID)ObpFillEntry(Handle, Object, HandleAttributes, GrantedAccess);
}

VOID ObpOpenReservedHandle(HANDLE Handle, PVOID Object, ULONG HandleAttributes, ACCESS_MASK GrantedAccess)
{
    /* acquire: with OBP_SHARED comes the share */
    LONG_PTR Before = __atomic_load_n(&ObpHeaderOf(Object)->HandleCount, __ATOMIC_ACQUIRE);
    if (Before & OBP_SHARED) {
        ObpChangeSharedHandles(Object, 1);
    }
    Before ^= ObpFillEntry(Handle, Object, HandleAttributes, GrantedAccess);
    if (Before & OBP_SHARED) { /* it has become shared meanwhile, without this handle */
        ObpChangeSharedHandles(Object, 1);
    }
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
        HANDLE Reserved = ObpReserveHandle(HandleAttributes);
        if (Reserved != NULL) {
            ObpOpenReservedHandle(Reserved, Object, HandleAttributes, GrantedAccess);
            *Handle = Reserved;
        } else {
            Status = STATUS_INSUFFICIENT_RESOURCES;
        }
    }
    ObpDereferenceObjectEx(Object, 1);
    return Status;
}

/* The caller has just taken a reference on Object from the entry. What the entry cannot take is returned. */
static VOID ObpPayInAdvance(POBP_HANDLE_ENTRY Entry, PVOID Object)
{
    ULONG64 Word = __atomic_load_n(&Entry->Object, __ATOMIC_RELAXED);
    ObpReferenceObjectEx(Object, OBP_PREPAID_BATCH);
    /* Safe even if the handle was closed and reopened for the same object. */
    while (ObpObjectOf(Word) == Object && ObpPrepaidOf(Word) + OBP_PREPAID_BATCH <= OBP_PREPAID_MOST) {
        ULONG64 New = (Word + OBP_PREPAID_BATCH * OBP_PREPAID_ONE) | OBP_BORROWABLE;
        /* release: a lookup that takes one of these sees them counted on the object */
        if (__atomic_compare_exchange_n(&Entry->Object, &Word, New, TRUE, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
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
            KiBackOff(Round);
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

static BOOLEAN ObpReferencePseudoHandle(HANDLE Handle, POBP_REFERENCE Reference)
{
    if (!ObpIsPseudoHandle(Handle)) {
        return FALSE;
    }
    BOOLEAN Process = Handle == NtCurrentProcess();
    Reference->Object = Process ? (PVOID)&KiInitialProcess : (PVOID)KiCurrentThread();
    Reference->Information.GrantedAccess = Process ? PROCESS_ALL_ACCESS : THREAD_ALL_ACCESS;
    Reference->Information.HandleAttributes = 0;
    ObpReferenceObjectEx(Reference->Object, 1);
    return TRUE;
}

NTSTATUS ObpReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess, POBJECT_TYPE ObjectType,
                                    KPROCESSOR_MODE AccessMode, PVOID *Object,
                                    POBJECT_HANDLE_INFORMATION HandleInformation)
{
    POBP_HANDLE_ENTRY Entry = ObpFindEntry(Handle, AccessMode);
    OBP_REFERENCE Reference;
    NTSTATUS Status = STATUS_SUCCESS;
    *Object = NULL;
    if (__builtin_expect(Entry != NULL, TRUE) ? !ObpReferenceEntry(Entry, &Reference)
                                              : !ObpReferencePseudoHandle(Handle, &Reference)) {
        return STATUS_INVALID_HANDLE;
    }
    if (ObjectType != NULL && ObpHeaderOf(Reference.Object)->Type != ObjectType) {
        Status = STATUS_OBJECT_TYPE_MISMATCH;
    } else if (AccessMode != KernelMode && (DesiredAccess & ~Reference.Information.GrantedAccess) != 0) {
        Status = STATUS_ACCESS_DENIED;
    }
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
    /* relaxed: only whether it is NULL */
    if (__atomic_load_n(&Header->NameInfo, __ATOMIC_RELAXED) != NULL) {
        HandlesLeft = ObpCloseNamedHandle(Object, &Unlinked);
    } else {
        /* acquire: with OBP_SHARED comes the share */
        HandlesLeft = __atomic_sub_fetch(&Header->HandleCount, 1, __ATOMIC_ACQUIRE);
    }
    if (HandlesLeft & OBP_SHARED) {
        ObpChangeSharedHandles(Object, -1);
    }
    __atomic_fetch_sub(&Header->Type->TotalNumberOfHandles, 1, __ATOMIC_RELAXED);
    if (Header->Type->CloseProcedure != NULL) {
        Header->Type->CloseProcedure(Object, GrantedAccess, ObpHandlesOf(HandlesLeft));
    }
    ObpDereferenceObjectEx(Object, References + (Unlinked ? 1 : 0));
}

VOID ObpAwaitBorrowers(ULONG Index)
{
    HalBarrierAllThreads(); /* pairs with the store of BorrowedHandle; see KiStoreBeforeLook for hosts without it */
    /* seq_cst: pairs with KiTakeNewSlot; a thread whose slot is not counted yet finds the entry closed */
    ULONG Slots = __atomic_load_n(&KiThreadSlotsUsed, __ATOMIC_SEQ_CST);
    for (ULONG Number = 0; Number < Slots; Number += 1) {
        volatile ULONG *Borrowed = &ObpThread(KiThreadFromNumber(Number))->BorrowedHandle;
        /* seq_cst: after the barrier; also acquires what ObpEndBorrowing releases, so everything that the borrower did is
           visible */
        for (ULONG Round = 0; __atomic_load_n(Borrowed, __ATOMIC_SEQ_CST) == Index; Round += 1) {
            KiBackOff(Round);
        }
    }
}

static NTSTATUS ObpCloseEntry(POBP_HANDLE_ENTRY Entry, HANDLE Handle)
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
        /* acquire: pairs with the release in ObpOpenReservedHandle, so the Access read below is this handle's; seq_cst:
           comes before the loads of the ports that threads keep, nt/iocompletion.c, and of the handles that they borrow */
    } while (!__atomic_compare_exchange_n(&Entry->Object, &Word, 0, TRUE, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    GrantedAccess = (ACCESS_MASK)__atomic_load_n(&Entry->Access, __ATOMIC_RELAXED);
    if (Word & OBP_BORROWABLE) {
        ObpAwaitBorrowers(ObpIndexOfHandle(Handle));
    }
    ObpCancelReservedHandle(Handle);
    ObpReleaseHandle(ObpObjectOf(Word), 1 + (LONG_PTR)ObpPrepaidOf(Word), GrantedAccess);
    return STATUS_SUCCESS;
}

/* The verifier stops at a driver that closes a handle it does not own; a program only gets the status. */
NTSTATUS ObCloseHandle(HANDLE Handle, KPROCESSOR_MODE PreviousMode)
{
    POBP_HANDLE_ENTRY Entry = ObpFindEntry(Handle, PreviousMode);
    NTSTATUS Status = Entry != NULL ? ObpCloseEntry(Entry, Handle) : STATUS_INVALID_HANDLE;
    if (!NT_SUCCESS(Status) && KiVerifierEnabled && PreviousMode == KernelMode && Handle != NULL &&
        !ObpIsPseudoHandle(Handle)) {
        KeBugCheckEx(INVALID_KERNEL_HANDLE, (ULONG_PTR)Handle, Status != STATUS_HANDLE_NOT_CLOSABLE, 0, 0);
    }
    return Status;
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
    POBP_HANDLE_ENTRY Entry = ObpFindEntry(Handle, UserMode);
    ULONG64 Attributes = (Inherit ? OBP_INHERIT : 0) | (ProtectFromClose ? OBP_PROTECT : 0);
    ULONG64 Word = Entry != NULL ? __atomic_load_n(&Entry->Object, __ATOMIC_RELAXED) : 0;
    /* relaxed: the attributes publish nothing */
    while (Word != 0 && !__atomic_compare_exchange_n(&Entry->Object, &Word, (Word & ~OBP_ATTRIBUTES) | Attributes,
                                                     TRUE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return Word != 0 ? STATUS_SUCCESS : STATUS_INVALID_HANDLE;
}

NTSTATUS ObpQueryHandleAttributes(HANDLE Handle, BOOLEAN *Inherit, BOOLEAN *ProtectFromClose)
{
    POBP_HANDLE_ENTRY Entry = ObpFindEntry(Handle, KernelMode);
    ULONG64 Word = Entry != NULL ? __atomic_load_n(&Entry->Object, __ATOMIC_RELAXED) : 0;
    *Inherit = (Word & OBP_INHERIT) != 0;
    *ProtectFromClose = (Word & OBP_PROTECT) != 0;
    return Word != 0 || ObpIsPseudoHandle(Handle) ? STATUS_SUCCESS : STATUS_INVALID_HANDLE;
}

#ifdef INTERLOCK_HOST
static VOID ObpCloseLeaf(OBP_LEAF_TABLE *Leaf, ULONG FirstIndex)
{
    for (ULONG Index = 0; Index < OBP_LEAF; Index++) {
        POBP_HANDLE_ENTRY Entry = &Leaf->Entry[Index];
        /* relaxed: no other thread opens or protects handles any more */
        if (__atomic_load_n(&Entry->Object, __ATOMIC_RELAXED) != 0) {
            __atomic_fetch_and(&Entry->Object, ~OBP_PROTECT, __ATOMIC_RELAXED);
            ObpCloseEntry(Entry, ObpHandleOfIndex(FirstIndex + Index));
        }
    }
}

/* Closes the handles that the branch has; frees its tables if no other thread reads them. */
static VOID ObpEndBranch(ULONG Number, BOOLEAN FreeTables)
{
    OBP_BRANCH_TABLE *Branch = ObpRoot[Number];
    for (ULONG Index = 0; Branch != NULL && Index < OBP_BRANCH; Index++) {
        if (Branch->Leaf[Index] != NULL) {
            ObpCloseLeaf(Branch->Leaf[Index], (Number * OBP_BRANCH + Index) * OBP_LEAF);
        }
    }
    if (FreeTables && Branch != NULL) {
        ObpRoot[Number] = NULL;
        for (ULONG Index = 0; Index < OBP_BRANCH; Index++) {
            HalFree(Branch->Leaf[Index]);
        }
        HalFree(Branch);
    }
}

static BOOLEAN ObpHasTables(VOID)
{
    ULONG Number = 0;
    while (Number < OBP_ROOT && ObpRoot[Number] == NULL) {
        Number++;
    }
    return Number < OBP_ROOT;
}

/* The rules are in ke/ki.h. */
static __attribute__((destructor(KI_END_OBJECTS))) VOID ObpEndProcess(VOID)
{
    if (!ObpHasTables() || !KiProcessEndsAlone()) {
        return;
    }
    BOOLEAN FreeTables = !KiHasOwnThreads();
    PKTHREAD Thread = KiCurrentThread();
    KiEnterService(Thread);
    for (ULONG Number = 0; Number < OBP_ROOT; Number++) {
        ObpEndBranch(Number, FreeTables);
    }
    if (FreeTables) {
        ObpTable = (OBP_INDEXES){.Next = 1, .Limit = OBP_KERNEL_BASE};
        ObpKernelTable = (OBP_INDEXES){.Next = OBP_KERNEL_BASE + 1, .Limit = OBP_HANDLE_LIMIT};
    }
    ObpEndSystemObjects();
    KiExitService(Thread);
}
#endif
