/*
 * sharedfile.c: files in memory that processes share.
 *
 * A new file gets its contents before it gets its name, so another process finds it complete or not at all. Only a thread
 * that holds the host's lock of a file removes the file's name, after it has verified that the name belongs to this
 * file: so a file that replaced it is not removed. No descriptor stays open: a program may close those that it does not
 * know.
 */
#include "halp.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define LOCK_TRIES 1000
#define LOCK_INTERVAL (HALP_UNITS_PER_SECOND / 1000)

/* Below 0: the error, negated. */
static int HalpOpenShared(PCSTR Path, struct stat *Status)
{
    int File = HalpOpenFile(Path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (File >= 0 && fstat(File, Status) != 0) {
        int Error = errno;
        HalCloseDescriptor(File);
        return -Error;
    }
    return File;
}

static BOOLEAN HalpIsSharedFile(const struct stat *Status, const HAL_FILE_ID *Id)
{
    return S_ISREG(Status->st_mode) && Status->st_dev == Id->Device && Status->st_ino == Id->File;
}

/* Reserves the room: a write to the mapping of a full file system would kill the process later. */
static BOOLEAN HalpReserve(int File, ULONG64 Size)
{
    long Result = HalpCall(SYS_fallocate, File, 0, 0, (off_t)Size);
    if (Result == -EOPNOTSUPP || Result == -ENOSYS) {
        Result = HalpCall(SYS_ftruncate, File, (off_t)Size);
    }
    return Result == 0;
}

BOOLEAN HalGrowSharedFile(PCSTR Path, const HAL_FILE_ID *Id, ULONG64 Size)
{
    HALP_HOST_CALLS;
    struct stat Status;
    int File = HalpOpenShared(Path, &Status);
    BOOLEAN Grown = File >= 0 && HalpIsSharedFile(&Status, Id) && HalpReserve(File, Size);
    if (File >= 0) {
        HalCloseDescriptor(File);
    }
    return Grown;
}

/* A file of this user, which no other user can use; or one that an administrator created for all users. */
static BOOLEAN HalpIsTrusted(const struct stat *Status, BOOLEAN Machine)
{
    mode_t Mode = Status->st_mode & 07777;
    return S_ISREG(Status->st_mode) && (Machine ? Status->st_uid == 0 && Mode == 0666
                                                : Status->st_uid == geteuid() && Mode == 0600);
}

static NTSTATUS HalpStatusOfOpen(int Error)
{
    switch (Error) {
    case ENOENT:
    case ENOTDIR:
        return STATUS_OBJECT_NAME_NOT_FOUND;
    case ENOMEM:
    case ENFILE:
    case EMFILE:
    case ENOSPC:
        return STATUS_INSUFFICIENT_RESOURCES;
    default: /* ELOOP: a symbolic link; ENXIO, EISDIR: no file */
        return STATUS_ACCESS_DENIED;
    }
}

/* Memory that was writable stays so: threads may do this at the same time. */
VOID HalMakeSharedWritable(PVOID Memory, SIZE_T Size)
{
    HalpCall(SYS_mprotect, Memory, Size, PROT_READ | PROT_WRITE);
}

/* A leak checker reads all memory that can be written: valgrind's takes minutes for a gigabyte without a file behind it. By the
   bare call: the thread sanitizer would clear its records of all of the address space, which takes a second. */
static PVOID HalpMapShared(int File, ULONG64 Size, SIZE_T AddressSpace)
{
    long Result = HalpCall(SYS_mmap, NULL, AddressSpace, PROT_READ, MAP_SHARED | MAP_NORESERVE, File, 0);
    if (Result < 0 && Result > -4096) {
        return NULL;
    }
    HalMakeSharedWritable((PVOID)Result, Size < AddressSpace ? (SIZE_T)Size : AddressSpace);
    return (PVOID)Result;
}

static NTSTATUS HalpMapPresent(const HAL_SHARED_FILE *Wanted, PHAL_SHARED_MAPPING Mapping)
{
    struct stat Status;
    int File = HalpOpenShared(Wanted->Path, &Status);
    NTSTATUS Result = STATUS_SUCCESS;
    if (File < 0) {
        return HalpStatusOfOpen(-File);
    }
    if (!HalpIsTrusted(&Status, Wanted->Machine)) {
        Result = STATUS_ACCESS_DENIED;
    } else {
        Mapping->File = (HAL_FILE_ID){Status.st_dev, Status.st_ino};
        Mapping->Size = (ULONG64)Status.st_size;
        Mapping->Memory = HalpMapShared(File, Mapping->Size, Wanted->AddressSpace);
        Result = Mapping->Memory != NULL ? STATUS_SUCCESS : STATUS_INSUFFICIENT_RESOURCES;
    }
    HalCloseDescriptor(File);
    return Result;
}

/* A file without a name, or, if the host has none, with the temporary one. */
static int HalpCreateUnnamed(PCSTR Path, CHAR Temporary[HAL_LONGEST_PATH])
{
    PCSTR End = strrchr(Path, '/');
    int File;
    Temporary[0] = '\0';
    snprintf(Temporary, HAL_LONGEST_PATH, "%.*s", (int)(End - Path), Path);
    File = open(Temporary, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    Temporary[0] = '\0';
    if (File < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        if (snprintf(Temporary, HAL_LONGEST_PATH, "%s.%d-%ld", Path, getpid(), HalpCall(SYS_gettid)) >= HAL_LONGEST_PATH) {
            errno = ENAMETOOLONG;
            return -1;
        }
        File = open(Temporary, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    }
    return File;
}

static BOOLEAN HalpGiveName(int File, PCSTR Path, PCSTR Temporary)
{
    CHAR Source[HAL_LONGEST_PATH];
    snprintf(Source, sizeof(Source), "/proc/self/fd/%d", File);
    return linkat(AT_FDCWD, Temporary[0] != '\0' ? Temporary : Source, AT_FDCWD, Path, AT_SYMLINK_FOLLOW) == 0;
}

/* STATUS_OBJECT_NAME_COLLISION: another process was faster. */
static NTSTATUS HalpMapNew(const HAL_SHARED_FILE *Wanted, PHAL_SHARED_MAPPING Mapping)
{
    CHAR Temporary[HAL_LONGEST_PATH];
    struct stat Status;
    int File = HalpCreateUnnamed(Wanted->Path, Temporary);
    NTSTATUS Result = STATUS_INSUFFICIENT_RESOURCES;
    if (File < 0) {
        return HalpStatusOfOpen(errno);
    }
    if (fchmod(File, Wanted->Machine ? 0666 : 0600) == 0 && HalpReserve(File, Wanted->Size) && fstat(File, &Status) == 0) {
        Mapping->File = (HAL_FILE_ID){Status.st_dev, Status.st_ino};
        Mapping->Size = Wanted->Size;
        Mapping->Memory = HalpMapShared(File, Mapping->Size, Wanted->AddressSpace);
    }
    if (Mapping->Memory != NULL) {
        Wanted->Initialize(Mapping->Memory, Wanted->Size);
        if (HalpGiveName(File, Wanted->Path, Temporary)) {
            Result = STATUS_SUCCESS;
        } else {
            Result = errno == EEXIST ? STATUS_OBJECT_NAME_COLLISION : HalpStatusOfOpen(errno);
            HalUnmapSharedFile(Mapping->Memory, Wanted->AddressSpace);
            Mapping->Memory = NULL;
        }
    }
    if (Temporary[0] != '\0') {
        unlink(Temporary);
    }
    close(File);
    return Result;
}

NTSTATUS HalMapSharedFile(const HAL_SHARED_FILE *Wanted, PHAL_SHARED_MAPPING Mapping)
{
    HALP_HOST_CALLS;
    NTSTATUS Status = STATUS_OBJECT_NAME_COLLISION;
    Mapping->Memory = NULL;
    for (ULONG Try = 0; Status == STATUS_OBJECT_NAME_COLLISION && Try < LOCK_TRIES; Try += 1) {
        Status = HalpMapPresent(Wanted, Mapping);
        if (Status == STATUS_OBJECT_NAME_NOT_FOUND && Wanted->Initialize != NULL) {
            Status = HalpMapNew(Wanted, Mapping);
        }
    }
    return Status;
}

BOOLEAN HalIsSharedFile(PCSTR Path, BOOLEAN Machine)
{
    HALP_HOST_CALLS;
    struct stat Status;
    int File = HalpOpenShared(Path, &Status);
    BOOLEAN Trusted = File >= 0 && HalpIsTrusted(&Status, Machine);
    if (File >= 0) {
        HalCloseDescriptor(File);
    }
    return Trusted;
}

VOID HalUnmapSharedFile(PVOID Memory, SIZE_T AddressSpace)
{
    HalpCall(SYS_munmap, Memory, AddressSpace);
}

VOID HalRemoveSharedFile(PCSTR Path, const HAL_FILE_ID *Id)
{
    HALP_HOST_CALLS;
    struct stat Status;
    int File = HalpOpenShared(Path, &Status);
    BOOLEAN Locked = FALSE;
    if (File < 0) {
        return;
    }
    for (ULONG Try = 0; HalpIsSharedFile(&Status, Id) && !Locked && Try < LOCK_TRIES; Try += 1) {
        Locked = HalpCall(SYS_flock, File, LOCK_EX | LOCK_NB) == 0;
        if (!Locked) {
            HalpSleep(LOCK_INTERVAL);
        }
    }
    if (Locked && lstat(Path, &Status) == 0 && HalpIsSharedFile(&Status, Id)) {
        unlink(Path);
    }
    HalCloseDescriptor(File);
}

/* XDG_RUNTIME_DIR is the user's own. /dev/shm is shared by all users: the checks of the file protect it. */
VOID HalQuerySharedPlace(PHAL_SHARED_PLACE Place)
{
    HALP_HOST_CALLS;
    PCSTR Own = HalGetEnvironment("XDG_RUNTIME_DIR");
    struct stat Status;
    BOOLEAN Usable = Own != NULL && Own[0] == '/' && stat(Own, &Status) == 0 && S_ISDIR(Status.st_mode) &&
                     Status.st_uid == geteuid() && access(Own, W_OK | X_OK) == 0 &&
                     strlen(Own) < sizeof(Place->Directory);
    snprintf(Place->Directory, sizeof(Place->Directory), "%s", Usable ? Own : HAL_COMMON_MEMORY);
    Place->User = geteuid();
    Place->Namespace = stat("/proc/self/ns/pid", &Status) == 0 ? Status.st_ino : 0;
}

/* The start of a child. The pipe ends when the child has closed its end, or has died, or there never was one. */
BOOLEAN HalOpenBirth(LONG Ends[2])
{
    int Pipe[2];
    if (HalpCall(SYS_pipe2, Pipe, O_CLOEXEC) != 0) {
        return FALSE;
    }
    Ends[0] = Pipe[0];
    Ends[1] = Pipe[1];
    return TRUE;
}

BOOLEAN HalAwaitBirth(LONG Ends[2], ULONG Milliseconds)
{
    HALP_HOST_CALLS;
    HalCloseDescriptor(Ends[1]);
    struct pollfd Reader = {.fd = Ends[0], .events = POLLIN};
    int Ready;
    do {
        Ready = poll(&Reader, 1, (int)Milliseconds);
    } while (Ready < 0 && errno == EINTR);
    HalCloseDescriptor(Ends[0]);
    return Ready > 0;
}

/* A small file of lines that several runs of a program share. */

#define LONGEST_LINE 8192
#define STATE_MODE 0666

/* Longer lines are skipped. FALSE: there is no such file. */
BOOLEAN HalReadLines(PCSTR Path, VOID (*Use)(PCSTR Line))
{
    CHAR Text[LONGEST_LINE];
    SIZE_T Used = 0;
    BOOLEAN Skips = FALSE;
    SSIZE_T Got;
    int File = HalpOpenFile(Path, O_RDONLY);

    if (File < 0) {
        return FALSE;
    }
    while ((Got = HalpReadFile(File, Text + Used, sizeof(Text) - 1 - Used)) > 0 || Got == -EINTR) {
        PSTR Line = Text, End;

        Used += Got > 0 ? (SIZE_T)Got : 0;
        Text[Used] = '\0';
        while ((End = strchr(Line, '\n')) != NULL) {
            *End = '\0';
            if (!Skips) {
                Use(Line);
            }
            Skips = FALSE;
            Line = End + 1;
        }
        Used -= (SIZE_T)(Line - Text);
        memmove(Text, Line, Used);
        if (Used == sizeof(Text) - 1) {
            Skips = TRUE;
            Used = 0;
        }
    }
    HalCloseDescriptor(File);
    return TRUE;
}

/* With one write, so that lines of several processes stay whole. */
BOOLEAN HalAppendText(PCSTR Path, PCSTR Text)
{
    SIZE_T Length = strlen(Text);
    int File = (int)HalpCall(SYS_openat, AT_FDCWD, Path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, STATE_MODE);
    BOOLEAN Written = File >= 0 && HalpWriteFile(File, Text, Length) == (SSIZE_T)Length;

    if (File >= 0) {
        HalCloseDescriptor(File);
    }
    return Written;
}
