/*
 * sharedfile.c: files in memory that processes share.
 *
 * A new file gets its contents before it gets its name, so another process finds it complete or not at all. Only a thread
 * that holds the host's lock of a file removes the file's name, after it has made sure that the name is this file's: so no
 * file that took its place is removed. No descriptor stays open: a program may close those that it does not know.
 */
#include "halp.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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
