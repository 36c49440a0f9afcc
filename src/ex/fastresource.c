/*
 * fastresource.c: fast resources: executive resources whose callers provide the owner entries. The rules are those of
 * resource.c; a release does not have to search.
 *
 * Requirements, each with a test of that number in tests/ex/fastresource.c:
 *  1. The same as an executive resource: exclusion, recursion, waiting behind exclusive waiters or not, conversion,
 *     handoff.
 *  2. An entry stands for one acquire, from its grant until its release. Then it may be reused or freed. An acquire
 *     needs nothing else.
 *  3. A disowned acquire stays when its thread ends, and any thread may release it.
 *  4. Each violated precondition is a bugcheck of its own kind, in every build.
 *  5. The functions for executive resources accept a fast resource that was initialized for that, and reject all
 *     others.
 */
#include "resource.h"

typedef enum _EXP_VIOLATION {
    ExpLevelTooHigh = 0x0,
    ExpInvalidEntry = 0x1,
    ExpEntryInUse = 0x2,
    ExpLegacyResource = 0x3,
    ExpOutstandingAcquires = 0x4,
    ExpInsideDpc = 0x5,
    ExpApcsEnabled = 0x7,
    ExpEntryOfOtherResource = 0x8,
    ExpEntryOfOtherThread = 0x9,
    ExpEntryDisowned = 0xa,
    ExpOtherAcquisitionType = 0xb,
    ExpEntryNotDisowned = 0xd,
    ExpInvalidFlags = 0x10,
    ExpDisownedRecursive = 0x12,
    ExpConvertedRecursive = 0x13
} EXP_VIOLATION;

static DECLSPEC_NORETURN VOID ExpFail(EXP_VIOLATION Violation, ULONG_PTR Second, ULONG_PTR Third, ULONG_PTR Fourth)
{
    KeBugCheckEx(FAST_ERESOURCE_PRECONDITION_VIOLATION, Violation, Second, Third, Fourth);
}

static PERESOURCE ExpCheckFastResource(PFAST_ERESOURCE FastResource)
{
    PERESOURCE Resource = (PERESOURCE)FastResource;
    if (((ULONG_PTR)Resource->Reserved2 & ~(ULONG_PTR)EX_FAST_RESOURCE_ENABLE_LEGACY_APIS) != EXP_FAST_RESOURCE) {
        ExpFail(ExpLegacyResource, (ULONG_PTR)Resource, 0, 0);
    }
    return Resource;
}

static PEXP_OWNER ExpCheckFastOwner(PFAST_OWNER_ENTRY FastOwner)
{
    PEXP_OWNER Owner = (PEXP_OWNER)FastOwner;
    if (Owner->Kind != EXP_FAST_OWNER) {
        ExpFail(ExpInvalidEntry, (ULONG_PTR)Owner, 0, 0);
    }
    return Owner;
}

static VOID ExpCheckFastLevel(KIRQL Highest)
{
    KIRQL Irql = KiCurrentThread()->Irql;
    if (Irql > Highest) {
        ExpFail(ExpLevelTooHigh, Irql, Highest, 0);
    }
}

static VOID ExpCheckFastCaller(VOID)
{
    PKTHREAD Thread = KiCurrentThread();
    ExpCheckFastLevel(APC_LEVEL);
    if (Thread->DpcDepth != 0) {
        ExpFail(ExpInsideDpc, 0, 0, 0);
    }
    if (Thread->Irql < APC_LEVEL && Thread->KernelApcDisable == 0 && Thread->SpecialApcDisable == 0) {
        ExpFail(ExpApcsEnabled, 0, 0, 0);
    }
}

/* With the resource locked: then an entry of that resource does not change. */
static VOID ExpCheckOwnership(PERESOURCE Resource, PEXP_OWNER Owner, BOOLEAN Disowned)
{
    if (Owner->Resource != Resource) {
        ExpFail(ExpEntryOfOtherResource, (ULONG_PTR)Resource, (ULONG_PTR)Owner, (ULONG_PTR)Owner->Resource);
    }
    if (Owner->Disowned != Disowned) {
        ExpFail(Disowned ? ExpEntryNotDisowned : ExpEntryDisowned, (ULONG_PTR)Owner, 0, 0);
    }
    if (!Disowned && Owner->Entry.OwnerThread != (ERESOURCE_THREAD)KiCurrentThread()) {
        ExpFail(ExpEntryOfOtherThread, (ULONG_PTR)Owner, Owner->Entry.OwnerThread, 0);
    }
}

VOID ExInitializeFastResource(PFAST_ERESOURCE Resource, ULONG Flags)
{
    if (Flags & ~(ULONG)EX_FAST_RESOURCE_ENABLE_LEGACY_APIS) {
        ExpFail(ExpInvalidFlags, (ULONG_PTR)Resource, Flags, 0);
    }
    ExpInitializeResource((PERESOURCE)Resource, EXP_FAST_RESOURCE | Flags);
}

VOID ExDeleteFastResource(PFAST_ERESOURCE FastResource)
{
    PERESOURCE Resource = ExpCheckFastResource(FastResource);
    PKTHREAD Thread = KiCurrentThread();
    ExpLockResource(Resource, Thread);
    if (!ExpIsResourceIdle(Resource)) {
        ExpFail(ExpOutstandingAcquires, (ULONG_PTR)Resource, 0, 0);
    }
    ExpUnlockResource(Resource, Thread);
    ExpRemoveResource(Resource);
    Resource->Reserved2 = NULL;
}

VOID ExInitializeFastOwnerEntry(PFAST_OWNER_ENTRY OwnerEntry)
{
    ExpCheckFastLevel(DISPATCH_LEVEL);
    memset(OwnerEntry, 0, sizeof(*OwnerEntry));
    ((PEXP_OWNER)OwnerEntry)->Kind = EXP_FAST_OWNER;
}

static BOOLEAN ExpAcquireFastResource(PFAST_ERESOURCE FastResource, PFAST_OWNER_ENTRY OwnerEntry, EXP_ACCESS Access,
                                      BOOLEAN Wait)
{
    PERESOURCE Resource = ExpCheckFastResource(FastResource);
    PEXP_OWNER Owner = ExpCheckFastOwner(OwnerEntry);
    ExpCheckFastCaller();
    if (Owner->Resource != NULL) {
        ExpFail(ExpEntryInUse, (ULONG_PTR)Owner, (ULONG_PTR)Owner->Resource, 0);
    }
    Owner->Exclusive = Access == ExpExclusive;
    Owner->Disowned = FALSE;
    if (__builtin_expect(KiVerifierEnabled, FALSE) && Wait) {
        KiOrderCheck(KiCurrentThread(), Resource, KiOrderResource, ExpOrderModeOf(Access));
    }
    BOOLEAN Acquired = ExpAcquireForFastOwner(Resource, Access, Wait, Owner);
    if (__builtin_expect(KiVerifierEnabled, FALSE) && Acquired) {
        KiOrderHold(KiCurrentThread(), Resource, KiOrderResource, ExpOrderModeOf(Access), __builtin_return_address(0));
    }
    return Acquired;
}

BOOLEAN ExAcquireFastResourceExclusive(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry, BOOLEAN Wait)
{
    return ExpAcquireFastResource(Resource, OwnerEntry, ExpExclusive, Wait);
}

BOOLEAN ExAcquireFastResourceShared(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry, BOOLEAN Wait)
{
    return ExpAcquireFastResource(Resource, OwnerEntry, ExpShared, Wait);
}

BOOLEAN ExAcquireFastResourceSharedStarveExclusive(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry, BOOLEAN Wait)
{
    return ExpAcquireFastResource(Resource, OwnerEntry, ExpSharedStarveExclusive, Wait);
}

BOOLEAN ExTryAcquireFastResourceExclusive(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry)
{
    return ExpAcquireFastResource(Resource, OwnerEntry, ExpExclusive, FALSE);
}

BOOLEAN ExTryAcquireFastResourceShared(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry)
{
    return ExpAcquireFastResource(Resource, OwnerEntry, ExpShared, FALSE);
}

static VOID ExpReleaseFastResource(PFAST_ERESOURCE FastResource, PFAST_OWNER_ENTRY OwnerEntry, BOOLEAN Disowned)
{
    PERESOURCE Resource = ExpCheckFastResource(FastResource);
    PEXP_OWNER Owner = ExpCheckFastOwner(OwnerEntry);
    PKTHREAD Thread = KiCurrentThread();
    ExpCheckFastLevel(DISPATCH_LEVEL);
    ExpLockResource(Resource, Thread);
    ExpCheckOwnership(Resource, Owner, Disowned);
    PEXP_RESOURCE_WAIT Released = ExpDropOwner(Resource, Thread, &Owner->Entry);
    ExpUnlockResource(Resource, Thread);
    if (__builtin_expect(KiVerifierEnabled, FALSE) && !Disowned) {
        KiOrderRelease(Thread, Resource);
    }
    ExpWakeReleased(Released);
}

VOID ExReleaseFastResource(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry)
{
    ExpReleaseFastResource(Resource, OwnerEntry, FALSE);
}

VOID ExReleaseDisownedFastResource(PFAST_ERESOURCE Resource, PFAST_OWNER_ENTRY OwnerEntry)
{
    ExpReleaseFastResource(Resource, OwnerEntry, TRUE);
}

VOID ExConvertFastResourceExclusiveToShared(PFAST_ERESOURCE FastResource, PFAST_OWNER_ENTRY OwnerEntry)
{
    PERESOURCE Resource = ExpCheckFastResource(FastResource);
    PEXP_OWNER Owner = ExpCheckFastOwner(OwnerEntry);
    PKTHREAD Thread = KiCurrentThread();
    ExpCheckFastLevel(APC_LEVEL);
    ExpLockResource(Resource, Thread);
    ExpCheckOwnership(Resource, Owner, FALSE);
    if (!Owner->Exclusive) {
        ExpFail(ExpOtherAcquisitionType, (ULONG_PTR)Owner, 1 << 16, 0);
    }
    if (Resource->ActiveEntries != 1) {
        ExpFail(ExpConvertedRecursive, (ULONG_PTR)Resource, 0, 0);
    }
    Owner->Exclusive = FALSE;
    PEXP_RESOURCE_WAIT Released = ExpShareResource(Resource);
    ExpUnlockResource(Resource, Thread);
    ExpWakeReleased(Released);
}

VOID ExDisownFastResource(PFAST_ERESOURCE FastResource, PFAST_OWNER_ENTRY OwnerEntry)
{
    PERESOURCE Resource = ExpCheckFastResource(FastResource);
    PEXP_OWNER Owner = ExpCheckFastOwner(OwnerEntry);
    PKTHREAD Thread = KiCurrentThread();
    ExpCheckFastLevel(DISPATCH_LEVEL);
    ExpLockResource(Resource, Thread);
    ExpCheckOwnership(Resource, Owner, FALSE);
    if (ExpIsOwnedExclusively(Resource) && Resource->ActiveEntries != 1) {
        ExpFail(ExpDisownedRecursive, (ULONG_PTR)Resource, 0, 0);
    }
    Owner->Disowned = TRUE;
    ExpRenameOwner(Resource, &Owner->Entry, (ERESOURCE_THREAD)Owner | EXP_OWNER_POINTER);
    ExpUnlockResource(Resource, Thread);
    if (KiVerifierEnabled) {
        KiOrderRelease(Thread, Resource);
    }
}

static BOOLEAN ExpIsHeld(PFAST_ERESOURCE FastResource, BOOLEAN Exclusively)
{
    PERESOURCE Resource = ExpCheckFastResource(FastResource);
    PKTHREAD Thread = KiCurrentThread();
    ExpLockResource(Resource, Thread);
    BOOLEAN Held = (!Exclusively || ExpIsOwnedExclusively(Resource)) &&
                   ExpFindOwner(Resource, (ERESOURCE_THREAD)Thread, EXP_ANY_OWNER) != NULL;
    ExpUnlockResource(Resource, Thread);
    return Held;
}

BOOLEAN ExIsFastResourceHeld(PFAST_ERESOURCE Resource)
{
    return ExpIsHeld(Resource, FALSE);
}

BOOLEAN ExIsFastResourceHeldExclusive(PFAST_ERESOURCE Resource)
{
    return ExpIsHeld(Resource, TRUE);
}
