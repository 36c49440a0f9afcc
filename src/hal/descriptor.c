/*
 * descriptor.c: descriptors of the host: readiness, a descriptor that others can watch, and the keeper of the library's
 * own descriptors.
 *
 * A program may close every descriptor that it finds (closefrom, as a daemon does), or put another file under a number
 * of ours (dup2). The number is then the program's: the library must not write to it, wait on it or close it.
 * 1. Kept descriptors have numbers from FIRST_KEPT on, if the process may have them: programs get the lowest free ones.
 * 2. Each kept descriptor is a member of one epoll set, armed or not. The host finds a member by file and number
 *    together, so a number is ours if and only if it is a member. Arming a member is the call that checks this.
 * 3. The set itself is ours if the guard is a member: the reading end of a pipe, whose file has an identity of its own.
 * 4. A thread blocks in a read of the guard (HalAwaitKeeperLoss), which keeps that file open even after a close. Its
 *    writing end has no other users. A program that closes everything closes that end too, and the read ends: so the
 *    loss is noticed while every thread sleeps, and descriptors that can be reopened are.
 * Between the check of a number and its use the program may still change it: that race is the program's.
 *
 * One thread at a time opens the keeper (io/descriptor.c). Its numbers change only then. A thread with stale numbers checks
 * numbers that are closed or no longer ours: the result is negative, as in 2.
 */
#include "halp.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

C_ASSERT(HAL_DESCRIPTOR_READABLE == POLLIN && HAL_DESCRIPTOR_READABLE == EPOLLIN);
C_ASSERT(HAL_DESCRIPTOR_WRITABLE == POLLOUT && HAL_DESCRIPTOR_WRITABLE == EPOLLOUT);
C_ASSERT(HAL_DESCRIPTOR_URGENT == POLLPRI && HAL_DESCRIPTOR_URGENT == EPOLLPRI);
C_ASSERT(HAL_DESCRIPTOR_FAILED == POLLERR && HAL_DESCRIPTOR_FAILED == EPOLLERR);
C_ASSERT(HAL_DESCRIPTOR_CLOSED == POLLHUP && HAL_DESCRIPTOR_CLOSED == EPOLLHUP);

#define NO_DESCRIPTOR (-1)
#define FIRST_KEPT 256
#define FIRST_BEHIND_STANDARD 3
#define FILE_MODE 0666

static struct {
    volatile ULONG Generation;   /* counts the keepers; even: none is open */
    volatile LONG Set;
    volatile LONG Guard;         /* the reading end, */
    volatile LONG GuardWriter;   /* and the writing end, which is never used */
    HAL_FILE_ID GuardId;
    HAL_FILE_ID SharedId;        /* common to all files that the host does not distinguish */
} HalpKeeper = {.Set = NO_DESCRIPTOR, .Guard = NO_DESCRIPTOR, .GuardWriter = NO_DESCRIPTOR};

int HalpOpenFile(PCSTR Path, int Flags)
{
    return (int)HalpCall(SYS_openat, AT_FDCWD, Path, Flags | O_CLOEXEC, FILE_MODE);
}

SSIZE_T HalpReadFile(int File, PVOID Buffer, SIZE_T Size)
{
    return HalpCall(SYS_read, File, Buffer, Size);
}

SSIZE_T HalpWriteFile(int File, const VOID *Buffer, SIZE_T Size)
{
    return HalpCall(SYS_write, File, Buffer, Size);
}

NTSTATUS HalpStatusOfRefusal(long Error, NTSTATUS Other)
{
    switch (Error) {
    case -EMFILE:
    case -ENFILE:
        return STATUS_TOO_MANY_OPENED_FILES;
    case -ENOMEM:
        return STATUS_INSUFFICIENT_RESOURCES;
    default:
        return Other;
    }
}

/* If the limit is below FIRST_KEPT, or no number is left there: any number above the standard ones. */
static LONG HalpDuplicate(LONG Descriptor)
{
    LONG Duplicate = (LONG)HalpCall(SYS_fcntl, Descriptor, F_DUPFD_CLOEXEC, FIRST_KEPT);

    if (Duplicate == -EINVAL || Duplicate == -EMFILE) {
        Duplicate = (LONG)HalpCall(SYS_fcntl, Descriptor, F_DUPFD_CLOEXEC, FIRST_BEHIND_STANDARD);
    }
    return Duplicate;
}

LONG HalpKeepDescriptor(LONG Descriptor)
{
    LONG Kept;

    if (Descriptor < 0 || Descriptor >= FIRST_KEPT) {
        return Descriptor;
    }
    Kept = HalpDuplicate(Descriptor);
    if (Kept < 0 && Descriptor >= FIRST_BEHIND_STANDARD) {
        return Descriptor;
    }
    HalCloseDescriptor(Descriptor);
    return Kept;
}

NTSTATUS HalDuplicateDescriptor(LONG Descriptor, PLONG Duplicate)
{
    *Duplicate = HalpDuplicate(Descriptor);
    if (*Duplicate >= 0) {
        return STATUS_SUCCESS;
    }
    return *Duplicate == -EBADF ? STATUS_INVALID_HANDLE : STATUS_TOO_MANY_OPENED_FILES;
}

VOID HalCloseDescriptor(LONG Descriptor)
{
    HalpCall(SYS_close, Descriptor);
}

ULONG HalPollDescriptor(LONG Descriptor, ULONG Events)
{
    struct pollfd Poll = {.fd = Descriptor, .events = (short)Events};
    struct timespec Now = {0};
    long Count;

    do {
        Count = HalpCall(SYS_ppoll, &Poll, 1, &Now, NULL, 0);
    } while (Count == -EINTR);
    return Count > 0 ? (ULONG)(USHORT)Poll.revents : 0;
}

BOOLEAN HalQueryFileId(LONG Descriptor, PHAL_FILE_ID Id)
{
    struct stat Status; /* on 64-bit machines that of the C library is the host's */

    if (HalpCall(SYS_fstat, Descriptor, &Status) != 0) {
        return FALSE;
    }
    Id->Device = Status.st_dev;
    Id->File = Status.st_ino;
    return TRUE;
}

/* relaxed, both: Second may be the keeper's and change meanwhile; a torn id matches no file */
static BOOLEAN HalpIsSameId(const HAL_FILE_ID *First, const HAL_FILE_ID *Second)
{
    return First->Device == __atomic_load_n(&Second->Device, __ATOMIC_RELAXED) &&
           First->File == __atomic_load_n(&Second->File, __ATOMIC_RELAXED);
}

static BOOLEAN HalpStoreId(LONG Descriptor, PHAL_FILE_ID Place)
{
    HAL_FILE_ID Id = {0};
    BOOLEAN Open = HalQueryFileId(Descriptor, &Id);

    /* relaxed, both: see HalpIsSameId */
    __atomic_store_n(&Place->Device, Id.Device, __ATOMIC_RELAXED);
    __atomic_store_n(&Place->File, Id.File, __ATOMIC_RELAXED);
    return Open;
}

BOOLEAN HalIsFile(LONG Descriptor, const HAL_FILE_ID *Id)
{
    HAL_FILE_ID Present;

    return HalQueryFileId(Descriptor, &Present) && HalpIsSameId(&Present, Id);
}

BOOLEAN HalIsTellingId(const HAL_FILE_ID *Id)
{
    return !HalpIsSameId(Id, &HalpKeeper.SharedId);
}

/* relaxed, here and below: a thread with stale numbers gets a negative result, see above */
static LONG HalpKept(const volatile LONG *Number)
{
    return __atomic_load_n(Number, __ATOMIC_RELAXED);
}

static long HalpControlSet(LONG Set, int Operation, LONG Descriptor, ULONG Events, ULONG64 Cookie)
{
    struct epoll_event Event = {.events = Events | EPOLLONESHOT, .data.u64 = Cookie};

    return HalpCall(SYS_epoll_ctl, Set, Operation, Descriptor, &Event);
}

/* Adding fails for a member; anything else is removed again. */
static BOOLEAN HalpIsMember(LONG Set, LONG Descriptor)
{
    long Result = HalpControlSet(Set, EPOLL_CTL_ADD, Descriptor, 0, HAL_NO_COOKIE);

    if (Result == 0) {
        HalpControlSet(Set, EPOLL_CTL_DEL, Descriptor, 0, 0);
    }
    return Result == -EEXIST;
}

static VOID HalpCloseIfSame(volatile LONG *Number, const HAL_FILE_ID *Id)
{
    LONG Old = __atomic_exchange_n(Number, NO_DESCRIPTOR, __ATOMIC_RELAXED);

    if (Old != NO_DESCRIPTOR && HalIsFile(Old, Id)) {
        HalCloseDescriptor(Old);
    }
}

VOID HalpCloseKeeper(VOID)
{
    LONG Set = __atomic_exchange_n(&HalpKeeper.Set, NO_DESCRIPTOR, __ATOMIC_RELAXED);

    if (Set != NO_DESCRIPTOR && HalpIsMember(Set, HalpKept(&HalpKeeper.Guard))) {
        HalCloseDescriptor(Set);
    }
    HalpCloseIfSame(&HalpKeeper.Guard, &HalpKeeper.GuardId);
    HalpCloseIfSame(&HalpKeeper.GuardWriter, &HalpKeeper.GuardId);
    /* an even number from here on, also if the open fails; release: pairs with the acquire in HalpIsGeneration */
    __atomic_store_n(&HalpKeeper.Generation, (HalpKeeper.Generation | 1) + 1, __ATOMIC_RELEASE);
}

ULONG HalOpenKeeper(VOID)
{
    BOOLEAN Guarded = FALSE;
    int Ends[2];
    LONG Set;

    HalpCloseKeeper();
    Set = HalpKeepDescriptor((LONG)HalpCall(SYS_epoll_create1, EPOLL_CLOEXEC));
    if (Set < 0) {
        return 0;
    }
    HalpStoreId(Set, &HalpKeeper.SharedId);
    if (HalpCall(SYS_pipe2, Ends, O_CLOEXEC) == 0) {
        __atomic_store_n(&HalpKeeper.Guard, HalpKeepDescriptor(Ends[0]), __ATOMIC_RELAXED);
        __atomic_store_n(&HalpKeeper.GuardWriter, HalpKeepDescriptor(Ends[1]), __ATOMIC_RELAXED);
        Guarded = HalpStoreId(HalpKept(&HalpKeeper.Guard), &HalpKeeper.GuardId);
    }
    if (!Guarded ||
        HalpControlSet(Set, EPOLL_CTL_ADD, HalpKept(&HalpKeeper.Guard), 0, HAL_NO_COOKIE) != 0) {
        HalCloseDescriptor(Set);
        HalpCloseKeeper();
        return 0;
    }
    __atomic_store_n(&HalpKeeper.Set, Set, __ATOMIC_RELAXED);
    /* release: pairs with the acquire in HalpIsGeneration */
    return __atomic_add_fetch(&HalpKeeper.Generation, 1, __ATOMIC_RELEASE);
}

BOOLEAN HalIsKeeperIntact(VOID)
{
    return HalIsFile(HalpKept(&HalpKeeper.Guard), &HalpKeeper.GuardId) &&
           HalIsFile(HalpKept(&HalpKeeper.GuardWriter), &HalpKeeper.GuardId) &&
           HalpIsMember(HalpKept(&HalpKeeper.Set), HalpKept(&HalpKeeper.Guard));
}

static BOOLEAN HalpIsGeneration(ULONG Keeper)
{
    /* acquire: pairs with the releases above; the numbers are of this keeper or a later one */
    return __atomic_load_n(&HalpKeeper.Generation, __ATOMIC_ACQUIRE) == Keeper;
}

VOID HalAwaitKeeperLoss(ULONG Keeper)
{
    LONG Guard = HalpKept(&HalpKeeper.Guard);
    SSIZE_T Read = -EINTR;
    UCHAR Nothing;

    while (Read == -EINTR && HalpIsGeneration(Keeper) && HalIsFile(Guard, &HalpKeeper.GuardId)) {
        Read = HalpReadFile(Guard, &Nothing, sizeof(Nothing));
    }
}

HAL_MEMBERSHIP HalEnterDescriptor(LONG Descriptor, ULONG64 Cookie)
{
    switch (HalpControlSet(HalpKept(&HalpKeeper.Set), EPOLL_CTL_ADD, Descriptor, 0, Cookie)) {
    case 0:
    case -EEXIST: /* its file stayed open when the number was closed; arming sets the cookie */
        return HalDescriptorIsMember;
    case -EPERM:
        return HalDescriptorAlwaysReady;
    default:
        return HalDescriptorRefused;
    }
}

BOOLEAN HalIsMember(LONG Descriptor)
{
    return HalpIsMember(HalpKept(&HalpKeeper.Set), Descriptor);
}

BOOLEAN HalArmDescriptor(LONG Descriptor, ULONG Events, ULONG64 Cookie)
{
    return HalpControlSet(HalpKept(&HalpKeeper.Set), EPOLL_CTL_MOD, Descriptor, Events, Cookie) == 0;
}

VOID HalForgetDescriptor(LONG Descriptor)
{
    HalpControlSet(HalpKept(&HalpKeeper.Set), EPOLL_CTL_DEL, Descriptor, 0, 0);
}

BOOLEAN HalWaitForDescriptors(ULONG Keeper, PHAL_READY Ready, PULONG Count)
{
    struct epoll_event Events[HAL_MOST_READY];
    LONG Set = HalpKept(&HalpKeeper.Set);
    long Found;

    *Count = 0;
    /* The set, and so its members, may belong to the program by now. */
    if (!HalpIsGeneration(Keeper) || !HalpIsMember(Set, HalpKept(&HalpKeeper.Guard))) {
        return FALSE;
    }
    Found = HalpCall(SYS_epoll_pwait, Set, Events, HAL_MOST_READY, -1, NULL, 0);
    for (long Index = 0; Index < Found; Index += 1) {
        Ready[Index].Cookie = Events[Index].data.u64;
        Ready[Index].Events = Events[Index].events;
    }
    *Count = Found > 0 ? (ULONG)Found : 0;
    return TRUE;
}

LONG HalCreateSignalDescriptor(VOID)
{
    return HalpKeepDescriptor((LONG)HalpCall(SYS_eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK));
}

VOID HalSignalDescriptor(LONG Descriptor)
{
    eventfd_t One = 1;

    HalpWriteFile(Descriptor, &One, sizeof(One));
}

VOID HalDrainDescriptor(LONG Descriptor)
{
    eventfd_t Value;

    HalpReadFile(Descriptor, &Value, sizeof(Value));
}
