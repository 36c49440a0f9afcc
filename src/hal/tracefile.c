/* tracefile.c: what recording a trace takes of the host: files, names of threads and addresses, stacks. */
#include "halp.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#if __has_include(<execinfo.h>)
#include <execinfo.h>
#define HOST_UNWINDS 1
#endif

#define PATH_SIZE 48
#define NANOSECONDS_PER_SECOND 1000000000ULL
#define DEEPEST_STACK 64
#define PIECE_SIZE 4096
#define FILE_MODE 0666

ULONG64 HalQueryNanoseconds(VOID)
{
    struct timespec Now;

    clock_gettime(CLOCK_MONOTONIC, &Now);
    return (ULONG64)Now.tv_sec * NANOSECONDS_PER_SECOND + (ULONG64)Now.tv_nsec;
}

BOOLEAN HalMakeAbsolutePath(PCSTR Path, PSTR Buffer, SIZE_T Size)
{
    HALP_HOST_CALLS;
    SIZE_T Length = 0;
    int Written;

    if (Path[0] != '/') {
        if (getcwd(Buffer, Size) == NULL) {
            return FALSE;
        }
        Length = strlen(Buffer);
        Written = snprintf(Buffer + Length, Size - Length, "/%s", Path);
    } else {
        Written = snprintf(Buffer, Size, "%s", Path);
    }
    return Written >= 0 && (SIZE_T)Written < Size - Length;
}

/* Room is reserved at once: a file system that is full later would end the process when it writes to the memory. */
static PVOID HalpMapNewFile(int File, SIZE_T Size)
{
    PVOID Memory;

    if (flock(File, LOCK_EX | LOCK_NB) != 0 || ftruncate(File, 0) != 0) {
        return MAP_FAILED;
    }
    errno = posix_fallocate(File, 0, (off_t)Size);
    if (errno != 0) {
        return MAP_FAILED;
    }
    Memory = mmap(NULL, Size, PROT_READ | PROT_WRITE, MAP_SHARED, File, 0);
    return Memory;
}

PVOID HalCreateMappedFile(PCSTR Path, SIZE_T Size, PLONG Descriptor, HAL_FILE_PROBLEM *Problem)
{
    HALP_HOST_CALLS;
    int File = open(Path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    PVOID Memory = File >= 0 ? HalpMapNewFile(File, Size) : MAP_FAILED;

    Problem->Text = "";
    Problem->InUse = FALSE;
    if (Memory != MAP_FAILED) {
        *Descriptor = File;
        return Memory;
    }
    Problem->Text = strerror(errno);
    Problem->InUse = errno == EWOULDBLOCK;
    if (File >= 0) {
        if (!Problem->InUse) {
            unlink(Path);
        }
        close(File);
    }
    return NULL;
}

VOID HalUnmapFile(PVOID Memory, SIZE_T Size, LONG Descriptor)
{
    HALP_HOST_CALLS;
    munmap(Memory, Size);
    close(Descriptor);
}

VOID HalRemoveFile(PCSTR Path)
{
    HALP_HOST_CALLS;
    unlink(Path);
}

LONG HalCreateOutput(PCSTR Path, HAL_FILE_PROBLEM *Problem)
{
    HALP_HOST_CALLS;
    int File = open(Path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);

    Problem->Text = File < 0 ? strerror(errno) : "";
    Problem->InUse = FALSE;
    return File;
}

BOOLEAN HalWriteOutput(LONG Descriptor, PCSTR Text, SIZE_T Length)
{
    HALP_HOST_CALLS;
    while (Length != 0) {
        SSIZE_T Written = write(Descriptor, Text, Length);

        if (Written < 0 && errno != EINTR) {
            return FALSE;
        }
        if (Written > 0) {
            Text += Written;
            Length -= (SIZE_T)Written;
        }
    }
    return TRUE;
}

/*
 * Lines of memory that is no file's say nothing about names; they are most of them where there are many threads.
 * Nothing is allocated: a process that ends by a bugcheck may have its heap in any state.
 */
ULONG HalQueryModules(PSTR Buffer, ULONG Size)
{
    HALP_HOST_CALLS;
    int File = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    CHAR Piece[PIECE_SIZE];
    ULONG Length = 0;
    ULONG Line = 0; /* where the one that is being read begins */
    SSIZE_T Read;
    SSIZE_T Index;

    while (File >= 0 && (Read = read(File, Piece, sizeof(Piece))) > 0) {
        for (Index = 0; Index < Read && Length < Size; Index++) {
            Buffer[Length++] = Piece[Index];
            if (Piece[Index] == '\n') {
                Line = memchr(Buffer + Line, '/', Length - Line) != NULL ? Length : Line;
                Length = Line;
            }
        }
    }
    if (File >= 0) {
        close(File);
    }
    return Line;
}

VOID HalQueryProgramName(PSTR Buffer, SIZE_T Size)
{
    snprintf(Buffer, Size, "%s", program_invocation_short_name);
}

VOID HalQueryThreadName(ULONG ThreadId, PSTR Buffer, SIZE_T Size)
{
    HALP_HOST_CALLS;
    CHAR Path[PATH_SIZE];
    SSIZE_T Length = 0;
    int File;

    snprintf(Path, sizeof(Path), "/proc/self/task/%u/comm", ThreadId);
    File = open(Path, O_RDONLY | O_CLOEXEC);
    if (File >= 0) {
        Length = read(File, Buffer, Size - 1);
        close(File);
    }
    if (Length > 0) {
        Buffer[Buffer[Length - 1] == '\n' ? Length - 1 : Length] = '\0';
    }
}

BOOLEAN HalQueryAddressName(ULONG64 Address, PSTR Buffer, SIZE_T Size)
{
    HALP_HOST_CALLS;
    Dl_info Place;
    PCSTR Slash;

    if (dladdr((PVOID)Address, &Place) == 0 || Place.dli_fname == NULL) {
        return FALSE;
    }
    Slash = strrchr(Place.dli_fname, '/');
    Slash = Slash != NULL ? Slash + 1 : Place.dli_fname;
    if (Place.dli_sname == NULL) {
        snprintf(Buffer, Size, "%s+0x%lx", Slash, (ULONG_PTR)Address - (ULONG_PTR)Place.dli_fbase);
    } else if ((ULONG_PTR)Place.dli_saddr == Address) {
        snprintf(Buffer, Size, "%s!%s", Slash, Place.dli_sname);
    } else {
        snprintf(Buffer, Size, "%s!%s+0x%lx", Slash, Place.dli_sname,
                 (ULONG_PTR)Address - (ULONG_PTR)Place.dli_saddr);
    }
    return TRUE;
}

#ifdef HOST_UNWINDS

DECLSPEC_NOINLINE ULONG HalCaptureStack(ULONG FramesToSkip, PULONG64 Frames, ULONG Count)
{
    HALP_HOST_CALLS;
    PVOID Found[DEEPEST_STACK];
    ULONG Skip = FramesToSkip + 1;
    ULONG Wanted = Count + Skip < DEEPEST_STACK ? Count + Skip : DEEPEST_STACK;
    ULONG Depth = (ULONG)backtrace(Found, (int)Wanted);
    ULONG Frame;

    for (Frame = 0; Frame + Skip < Depth; Frame++) {
        Frames[Frame] = (ULONG64)Found[Frame + Skip];
    }
    return Frame;
}

#else

ULONG HalCaptureStack(ULONG FramesToSkip, PULONG64 Frames, ULONG Count)
{
    (VOID)FramesToSkip;
    (VOID)Frames;
    (VOID)Count;
    return 0;
}

#endif
