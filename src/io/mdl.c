/*
 * mdl.c: memory descriptor lists.
 *
 * The program and its drivers share one address space, and the host pages on its own. So a list describes a buffer by
 * its address; locking and mapping only change the list's flags, and the order of these changes is checked.
 */
#include "iop.h"

#define IOP_LOCKED_WRONG_FLAGS 0xb0
#define IOP_MAPPED_TWICE 0xb2
#define IOP_MAPPED_NOT_LOCKED 0xb3
#define IOP_UNLOCKED_PARTIAL 0xb4
#define IOP_FREED_MAPPED 0xb8
#define IOP_UNLOCKED_TOO_OFTEN 0x07 /* of PFN_LIST_CORRUPT */

static DECLSPEC_NORETURN VOID IopStopAtMdl(ULONG Kind, PMDL Mdl, ULONG Flags)
{
    KeBugCheckEx(DRIVER_VERIFIER_DETECTED_VIOLATION, Kind, (ULONG_PTR)Mdl, (USHORT)Mdl->MdlFlags, Flags);
}

SIZE_T MmSizeOfMdl(PVOID Base, SIZE_T Length)
{
    return sizeof(MDL) + sizeof(PFN_NUMBER) * ADDRESS_AND_SIZE_TO_SPAN_PAGES(Base, Length);
}

PMDL IoAllocateMdl(PVOID VirtualAddress, ULONG Length, BOOLEAN SecondaryBuffer, BOOLEAN ChargeQuota, PIRP Irp)
{
    UNREFERENCED_PARAMETER(ChargeQuota);
    PMDL Mdl = ExAllocatePool2(POOL_FLAG_NON_PAGED, MmSizeOfMdl(VirtualAddress, Length), IOP_MDL_TAG);
    if (Mdl == NULL) {
        return NULL;
    }
    MmInitializeMdl(Mdl, VirtualAddress, Length);
    if (Irp != NULL) {
        PMDL *Link = &Irp->MdlAddress;
        while (SecondaryBuffer && *Link != NULL) {
            Link = &(*Link)->Next;
        }
        *Link = Mdl;
    }
    return Mdl;
}

VOID IoFreeMdl(PMDL Mdl)
{
    MmPrepareMdlForReuse(Mdl);
    if (Mdl->MdlFlags & MDL_MAPPED_TO_SYSTEM_VA) {
        IopStopAtMdl(IOP_FREED_MAPPED, Mdl, 0);
    }
    if ((Mdl->MdlFlags & (MDL_PAGES_LOCKED | MDL_PARTIAL)) == MDL_PAGES_LOCKED) {
        KeBugCheckEx(PROCESS_HAS_LOCKED_PAGES, 0, (ULONG_PTR)PsGetCurrentProcess(),
                     ADDRESS_AND_SIZE_TO_SPAN_PAGES(MmGetMdlVirtualAddress(Mdl), Mdl->ByteCount), (ULONG_PTR)Mdl);
    }
    ExFreePoolWithTag(Mdl, IOP_MDL_TAG);
}

static VOID IopFillPages(PMDL Mdl)
{
    ULONG Pages = ADDRESS_AND_SIZE_TO_SPAN_PAGES(MmGetMdlVirtualAddress(Mdl), Mdl->ByteCount);
    for (ULONG Page = 0; Page < Pages; Page++) {
        MmGetMdlPfnArray(Mdl)[Page] = ((ULONG_PTR)Mdl->StartVa >> PAGE_SHIFT) + Page;
    }
}

VOID MmBuildMdlForNonPagedPool(PMDL MemoryDescriptorList)
{
    IopFillPages(MemoryDescriptorList);
    MemoryDescriptorList->Process = NULL;
    MemoryDescriptorList->MappedSystemVa = MmGetMdlVirtualAddress(MemoryDescriptorList);
    MemoryDescriptorList->MdlFlags |= MDL_SOURCE_IS_NONPAGED_POOL;
}

VOID MmProbeAndLockPages(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode, LOCK_OPERATION Operation)
{
    static const ULONG Wrong = MDL_PAGES_LOCKED | MDL_MAPPED_TO_SYSTEM_VA | MDL_SOURCE_IS_NONPAGED_POOL | MDL_PARTIAL;
    UNREFERENCED_PARAMETER(AccessMode);
    if (MemoryDescriptorList->MdlFlags & Wrong) {
        IopStopAtMdl(IOP_LOCKED_WRONG_FLAGS, MemoryDescriptorList, MemoryDescriptorList->MdlFlags & Wrong);
    }
    IopFillPages(MemoryDescriptorList);
    MemoryDescriptorList->Process = PsGetCurrentProcess();
    MemoryDescriptorList->MdlFlags |= MDL_PAGES_LOCKED | (Operation != IoReadAccess ? MDL_WRITE_OPERATION : 0);
}

VOID MmUnlockPages(PMDL MemoryDescriptorList)
{
    if (MemoryDescriptorList->MdlFlags & MDL_PARTIAL) {
        IopStopAtMdl(IOP_UNLOCKED_PARTIAL, MemoryDescriptorList, MDL_PARTIAL);
    }
    if (!(MemoryDescriptorList->MdlFlags & MDL_PAGES_LOCKED)) {
        KeBugCheckEx(PFN_LIST_CORRUPT, IOP_UNLOCKED_TOO_OFTEN, (ULONG_PTR)MemoryDescriptorList->StartVa >> PAGE_SHIFT, 0,
                     0);
    }
    MemoryDescriptorList->MdlFlags &= ~(MDL_PAGES_LOCKED | MDL_MAPPED_TO_SYSTEM_VA | MDL_WRITE_OPERATION);
    MemoryDescriptorList->MappedSystemVa = NULL;
}

PVOID MmMapLockedPagesSpecifyCache(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode, MEMORY_CACHING_TYPE CacheType,
                                   PVOID RequestedAddress, ULONG BugCheckOnFailure, ULONG Priority)
{
    static const ULONG Mapped = MDL_MAPPED_TO_SYSTEM_VA | MDL_SOURCE_IS_NONPAGED_POOL;
    static const ULONG Locked = MDL_PAGES_LOCKED | MDL_PARTIAL;
    PVOID Address = MmGetMdlVirtualAddress(MemoryDescriptorList);
    UNREFERENCED_PARAMETER(CacheType);
    UNREFERENCED_PARAMETER(RequestedAddress);
    UNREFERENCED_PARAMETER(BugCheckOnFailure);
    UNREFERENCED_PARAMETER(Priority);
    if (AccessMode != KernelMode) {
        return Address;
    }
    if (MemoryDescriptorList->MdlFlags & Mapped) {
        IopStopAtMdl(IOP_MAPPED_TWICE, MemoryDescriptorList, MemoryDescriptorList->MdlFlags & Mapped);
    }
    if (!(MemoryDescriptorList->MdlFlags & Locked)) {
        IopStopAtMdl(IOP_MAPPED_NOT_LOCKED, MemoryDescriptorList, Locked);
    }
    MemoryDescriptorList->MappedSystemVa = Address;
    MemoryDescriptorList->MdlFlags |=
        MDL_MAPPED_TO_SYSTEM_VA | (MemoryDescriptorList->MdlFlags & MDL_PARTIAL ? MDL_PARTIAL_HAS_BEEN_MAPPED : 0);
    return Address;
}

PVOID MmMapLockedPages(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode)
{
    return MmMapLockedPagesSpecifyCache(MemoryDescriptorList, AccessMode, MmCached, NULL, TRUE, HighPagePriority);
}

VOID MmUnmapLockedPages(PVOID BaseAddress, PMDL MemoryDescriptorList)
{
    if (BaseAddress == MemoryDescriptorList->MappedSystemVa) {
        MemoryDescriptorList->MdlFlags &= ~(MDL_MAPPED_TO_SYSTEM_VA | MDL_PARTIAL_HAS_BEEN_MAPPED);
        MemoryDescriptorList->MappedSystemVa = NULL;
    }
}

VOID IoBuildPartialMdl(PMDL SourceMdl, PMDL TargetMdl, PVOID VirtualAddress, ULONG Length)
{
    ULONG_PTR Offset = (ULONG_PTR)VirtualAddress - (ULONG_PTR)MmGetMdlVirtualAddress(SourceMdl);
    ULONG Bytes = Length != 0 ? Length : SourceMdl->ByteCount - (ULONG)Offset;
    if (Offset > SourceMdl->ByteCount || Bytes > SourceMdl->ByteCount - Offset ||
        MmSizeOfMdl(VirtualAddress, Bytes) > (USHORT)TargetMdl->Size) {
        KeBugCheckEx(TARGET_MDL_TOO_SMALL, (ULONG_PTR)SourceMdl, (ULONG_PTR)TargetMdl, (ULONG_PTR)VirtualAddress,
                     Length);
    }
    CSHORT Size = TargetMdl->Size;
    MmInitializeMdl(TargetMdl, VirtualAddress, Bytes);
    TargetMdl->Size = Size;
    TargetMdl->Process = SourceMdl->Process;
    TargetMdl->MdlFlags = MDL_PARTIAL | (SourceMdl->MdlFlags & (MDL_SOURCE_IS_NONPAGED_POOL | MDL_WRITE_OPERATION));
    TargetMdl->MappedSystemVa = SourceMdl->MdlFlags & MDL_SOURCE_IS_NONPAGED_POOL ? VirtualAddress : NULL;
    IopFillPages(TargetMdl);
}
