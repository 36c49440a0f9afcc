/* tracefile.c: the host's side of recording a trace: files, and names of threads and modules. */
#include "halp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH_SIZE 48
#define NANOSECONDS_PER_SECOND 1000000000ULL
#define PIECE_SIZE 4096
#define FILE_MODE 0666
#define MOST_LINKS 40
#define MOST_TRIES 100
#define PATIENCE_MS 10000 /* for a reader that does not read: the longest wait of an ending process */

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

/*
 * Files that a setting names.
 * 1. A regular file is replaced atomically: the new one is written beside it under another name, then renamed. Only
 *    files that were created here are removed.
 * 2. Anything else is written to as it is. A pipe without a reader, or whose reader does not read, does not prevent the
 *    process from starting or ending.
 * 3. Symbolic links are followed if they belong to this user or to root, as the kernel does in sticky directories.
 *    Another user's file is left alone.
 * 4. A file that is open while the program runs has a descriptor number that programs do not get. It is written to and closed
 *    only if that number still refers to it. A mapping stays valid if the program closes the file.
 * 5. SIGXFSZ and SIGPIPE are meant for what the program writes, not for this: they are suppressed.
 */

static BOOLEAN HalpFail(HAL_FILE_PROBLEM *Problem, PCSTR Text)
{
    Problem->Text = Text != NULL ? Text : strerror(errno);
    Problem->InUse = Text == NULL && errno == EWOULDBLOCK;
    return FALSE;
}

static VOID HalpKeepOpen(PHAL_OPEN_FILE File, int Descriptor)
{
    File->Descriptor = HalQueryFileId(Descriptor, &File->Id) ? HalpKeepDescriptor(Descriptor) : -1;
}

static BOOLEAN HalpIsOpen(const HAL_OPEN_FILE *File)
{
    return File->Descriptor >= 0 && HalIsFile(File->Descriptor, &File->Id);
}

static VOID HalpCloseFile(PHAL_OPEN_FILE File)
{
    if (HalpIsOpen(File)) {
        HalCloseDescriptor(File->Descriptor);
    }
    File->Descriptor = -1;
}

/* The descriptor that a name stands for. Opening such a name would start at the beginning of the file. */
static BOOLEAN HalpNamesDescriptor(PCSTR Path, PLONG Descriptor)
{
    static const struct {
        PCSTR Name;
        LONG Descriptor;
    } Standard[] = {{"/dev/stdin", 0}, {"/dev/stdout", 1}, {"/dev/stderr", 2}};
    static const PCSTR Folder[] = {"/dev/fd/", "/proc/self/fd/"};

    for (ULONG Index = 0; Index < ARRAYSIZE(Standard); Index++) {
        if (strcmp(Path, Standard[Index].Name) == 0) {
            *Descriptor = Standard[Index].Descriptor;
            return TRUE;
        }
    }
    for (ULONG Index = 0; Index < ARRAYSIZE(Folder); Index++) {
        SIZE_T Length = strlen(Folder[Index]);
        PSTR End;
        if (strncmp(Path, Folder[Index], Length) == 0) {
            unsigned long Number = strtoul(Path + Length, &End, 10);
            *Descriptor = (LONG)Number;
            return End != Path + Length && *End == '\0' && Number <= MAXLONG;
        }
    }
    return FALSE;
}

/* Replaces Path by the link's target. */
static BOOLEAN HalpFollowLink(PSTR Path)
{
    CHAR Target[HAL_LONGEST_PATH];
    SSIZE_T Length = readlink(Path, Target, sizeof(Target) - 1);
    PSTR Slash = strrchr(Path, '/');
    SIZE_T Folder = Length > 0 && Target[0] != '/' && Slash != NULL ? (SIZE_T)(Slash + 1 - Path) : 0;

    if (Length < 0) {
        return FALSE;
    }
    if (Folder + (SIZE_T)Length >= HAL_LONGEST_PATH) {
        errno = ENAMETOOLONG;
        return FALSE;
    }
    memcpy(Path + Folder, Target, (SIZE_T)Length);
    Path[Folder + (SIZE_T)Length] = '\0';
    return TRUE;
}

BOOLEAN HalFindOutput(PCSTR Path, PHAL_OUTPUT Output, HAL_FILE_PROBLEM *Problem)
{
    HALP_HOST_CALLS;
    struct stat Found = {.st_mode = S_IFLNK};
    LONG Descriptor;

    Output->Stream = FALSE;
    Output->File.Descriptor = -1;
    Output->Temporary[0] = '\0';
    if (snprintf(Output->Path, sizeof(Output->Path), "%s", Path) >= (int)sizeof(Output->Path)) {
        return HalpFail(Problem, "the name is too long");
    }
    for (ULONG Links = 0; S_ISLNK(Found.st_mode); Links++) {
        if (HalpNamesDescriptor(Output->Path, &Descriptor)) {
            Output->Stream = TRUE;
            Descriptor = fcntl(Descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
            HalpKeepOpen(&Output->File, Descriptor);
            return Output->File.Descriptor >= 0 || HalpFail(Problem, NULL);
        }
        if (lstat(Output->Path, &Found) != 0) {
            return errno == ENOENT || HalpFail(Problem, NULL);
        }
        if (!S_ISLNK(Found.st_mode)) {
            break;
        }
        if (Found.st_uid != geteuid() && Found.st_uid != 0) {
            return HalpFail(Problem, "it is a symbolic link of another user");
        }
        if (Links == MOST_LINKS || !HalpFollowLink(Output->Path)) {
            return HalpFail(Problem, Links == MOST_LINKS ? strerror(ELOOP) : NULL);
        }
    }
    if (S_ISDIR(Found.st_mode)) {
        return HalpFail(Problem, strerror(EISDIR));
    }
    Output->Stream = !S_ISREG(Found.st_mode);
    return Output->Stream || Found.st_uid == geteuid() || HalpFail(Problem, "it belongs to another user");
}

/* Signals that a write may cause are blocked, and those that became pending are discarded. */
typedef struct _HALP_HELD_BACK {
    sigset_t Before;
    sigset_t Pending;
} HALP_HELD_BACK;

static const int HalpSignalsOfWrites[] = {SIGPIPE, SIGXFSZ};

static VOID HalpHoldBackSignals(HALP_HELD_BACK *HeldBack)
{
    sigset_t Signals;

    sigemptyset(&Signals);
    for (ULONG Index = 0; Index < ARRAYSIZE(HalpSignalsOfWrites); Index++) {
        sigaddset(&Signals, HalpSignalsOfWrites[Index]);
    }
    sigpending(&HeldBack->Pending);
    pthread_sigmask(SIG_BLOCK, &Signals, &HeldBack->Before);
}

static VOID HalpDiscardSignals(const HALP_HELD_BACK *HeldBack)
{
    struct timespec Now = {0};
    int Error = errno;

    for (ULONG Index = 0; Index < ARRAYSIZE(HalpSignalsOfWrites); Index++) {
        sigset_t One;
        sigemptyset(&One);
        sigaddset(&One, HalpSignalsOfWrites[Index]);
        if (!sigismember(&HeldBack->Pending, HalpSignalsOfWrites[Index])) {
            sigtimedwait(&One, NULL, &Now);
        }
    }
    pthread_sigmask(SIG_SETMASK, &HeldBack->Before, NULL);
    errno = Error;
}

/* A new file in the same folder, where a rename is atomic. Temporary gets its name. */
static int HalpCreateBeside(PCSTR Path, PSTR Temporary)
{
    int File = -1;

    errno = EEXIST;
    for (ULONG Try = 0; File < 0 && errno == EEXIST && Try < MOST_TRIES; Try++) {
        if (snprintf(Temporary, HAL_LONGEST_PATH, "%s.%u-%u", Path, (ULONG)getpid(), Try) >= HAL_LONGEST_PATH) {
            errno = ENAMETOOLONG;
            return -1;
        }
        File = open(Temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    }
    return File;
}

static BOOLEAN HalpHasIdAt(PCSTR Path, const HAL_FILE_ID *Id)
{
    struct stat AtPath;

    return lstat(Path, &AtPath) == 0 && AtPath.st_dev == Id->Device && AtPath.st_ino == Id->File;
}

static BOOLEAN HalpIsFileAt(PCSTR Path, int File)
{
    HAL_FILE_ID Id;

    return HalQueryFileId(File, &Id) && HalpHasIdAt(Path, &Id);
}

/* Opens and locks the file at Path. A process that records into it holds the lock until it ends. */
static int HalpLockPresent(PCSTR Path)
{
    int File = open(Path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int Error = 0;

    if (File < 0) {
        return -1;
    }
    if (flock(File, LOCK_EX | LOCK_NB) != 0) {
        Error = errno;
    } else if (!HalpIsFileAt(Path, File)) {
        Error = ENOENT; /* replaced in between */
    }
    if (Error != 0) {
        close(File);
        errno = Error;
        return -1;
    }
    return File;
}

/* Reserves the room: a write to the mapping of a full file system would kill the process later. */
static PVOID HalpReserveAndMap(int File, SIZE_T Size)
{
    HALP_HELD_BACK HeldBack;

    HalpHoldBackSignals(&HeldBack);
    errno = posix_fallocate(File, 0, (off_t)Size);
    HalpDiscardSignals(&HeldBack);
    return errno == 0 ? mmap(NULL, Size, PROT_READ | PROT_WRITE, MAP_SHARED, File, 0) : MAP_FAILED;
}

/* Maps the new File, which is at Path, or, if Present (locked) is there, at Temporary. */
static PVOID HalpMapNewFile(PCSTR Path, PCSTR Temporary, int File, int Present, SIZE_T Size)
{
    PCSTR Own = Present < 0 ? Path : Temporary;
    struct stat Before;
    PVOID Memory;

    if (flock(File, LOCK_EX | LOCK_NB) != 0) {
        return MAP_FAILED; /* another process found it at Path and is about to replace it */
    }
    if (Present >= 0 && fstat(Present, &Before) == 0) {
        fchmod(File, Before.st_mode & 0777);
    }
    Memory = HalpReserveAndMap(File, Size);
    if (Memory != MAP_FAILED && Present >= 0 && rename(Temporary, Path) != 0) {
        int Error = errno;
        munmap(Memory, Size);
        Memory = MAP_FAILED;
        errno = Error;
    }
    if (Memory == MAP_FAILED && HalpIsFileAt(Own, File)) {
        int Error = errno;
        unlink(Own);
        errno = Error;
    }
    return Memory;
}

static PVOID HalpTryToMap(PCSTR Path, SIZE_T Size, int *Descriptor)
{
    CHAR Temporary[HAL_LONGEST_PATH] = "";
    int Present = -1;
    int File = open(Path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    PVOID Memory = MAP_FAILED;

    if (File < 0 && errno == EEXIST) {
        Present = HalpLockPresent(Path);
        File = Present >= 0 ? HalpCreateBeside(Path, Temporary) : -1;
    }
    if (File >= 0) {
        Memory = HalpMapNewFile(Path, Temporary, File, Present, Size);
    }
    int Error = errno;
    if (Memory == MAP_FAILED && File >= 0) {
        close(File);
    }
    if (Present >= 0) {
        close(Present);
    }
    *Descriptor = File;
    errno = Error;
    return Memory;
}

PVOID HalCreateMappedFile(PCSTR Path, SIZE_T Size, PHAL_OPEN_FILE File, HAL_FILE_PROBLEM *Problem)
{
    HALP_HOST_CALLS;
    PVOID Memory = MAP_FAILED;
    int Descriptor = -1;

    if (Path == NULL) {
        Descriptor = (int)syscall(SYS_memfd_create, "interlock", MFD_CLOEXEC);
        Memory = Descriptor >= 0 ? HalpReserveAndMap(Descriptor, Size) : MAP_FAILED;
    } else {
        errno = ENOENT; /* retry while files appear and disappear */
        for (ULONG Try = 0; Memory == MAP_FAILED && errno == ENOENT && Try < MOST_TRIES; Try++) {
            Memory = HalpTryToMap(Path, Size, &Descriptor);
        }
    }
    if (Memory == MAP_FAILED) {
        HalpFail(Problem, NULL);
        if (Path == NULL && Descriptor >= 0) {
            close(Descriptor);
        }
        return NULL;
    }
    HalpKeepOpen(File, Descriptor);
    return Memory;
}

VOID HalUnmapFile(PVOID Memory, SIZE_T Size, PHAL_OPEN_FILE File)
{
    HALP_HOST_CALLS;
    HalpCloseFile(File); /* first: the mapping keeps the file's identity its own */
    munmap(Memory, Size);
}

/* While the file is mapped no other one gets its identity, even if the program has closed it. */
VOID HalRemoveMappedFile(PCSTR Path, const HAL_OPEN_FILE *File)
{
    HALP_HOST_CALLS;
    if (HalpHasIdAt(Path, &File->Id)) {
        unlink(Path);
    }
}

BOOLEAN HalOpenOutput(PHAL_OUTPUT Output, HAL_FILE_PROBLEM *Problem)
{
    HALP_HOST_CALLS;
    int Descriptor;

    if (Output->File.Descriptor >= 0) {
        return HalpIsOpen(&Output->File) || HalpFail(Problem, "the program has closed it");
    }
    /* for a stream: neither waits for a pipe's reader nor acquires a controlling terminal */
    Descriptor = !Output->Stream ? HalpCreateBeside(Output->Path, Output->Temporary)
                                 : open(Output->Path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (Descriptor < 0) {
        Output->Temporary[0] = '\0';
        return HalpFail(Problem, errno == ENXIO ? "it has no reader" : NULL);
    }
    HalpKeepOpen(&Output->File, Descriptor);
    errno = EMFILE;
    return Output->File.Descriptor >= 0 || HalpFail(Problem, NULL);
}

/* FALSE: errno has the reason. PIPE_BUF at a time: a pipe that is ready takes that much without blocking. */
static BOOLEAN HalpWriteAll(int File, PCSTR Text, SIZE_T Length)
{
    while (Length != 0) {
        struct pollfd Output = {.fd = File, .events = POLLOUT};
        int Ready = poll(&Output, 1, PATIENCE_MS);
        SSIZE_T Written = Ready > 0 ? write(File, Text, Length < PIPE_BUF ? Length : PIPE_BUF) : Ready;

        if (Ready == 0) {
            errno = ETIMEDOUT;
            return FALSE;
        }
        if (Written < 0 && errno != EINTR && errno != EAGAIN) {
            return FALSE;
        }
        if (Written > 0) {
            Text += Written;
            Length -= (SIZE_T)Written;
        }
    }
    return TRUE;
}

BOOLEAN HalWriteOutput(PHAL_OUTPUT Output, PCSTR Text, SIZE_T Length, HAL_FILE_PROBLEM *Problem)
{
    HALP_HOST_CALLS;
    HALP_HELD_BACK HeldBack;
    BOOLEAN Written;

    HalpHoldBackSignals(&HeldBack);
    Written = HalpWriteAll(Output->File.Descriptor, Text, Length);
    HalpDiscardSignals(&HeldBack);
    return Written || HalpFail(Problem, errno == ETIMEDOUT ? "its reader does not read" : NULL);
}

BOOLEAN HalCompleteOutput(PHAL_OUTPUT Output, HAL_FILE_PROBLEM *Problem)
{
    HALP_HOST_CALLS;
    struct stat Before;
    BOOLEAN Done = TRUE;

    if (!Output->Stream) {
        if (lstat(Output->Path, &Before) == 0) {
            fchmod(Output->File.Descriptor, Before.st_mode & 0777);
        }
        Done = rename(Output->Temporary, Output->Path) == 0 || HalpFail(Problem, NULL);
    }
    if (Done) {
        Output->Temporary[0] = '\0';
    }
    HalDiscardOutput(Output);
    return Done;
}

VOID HalDiscardOutput(PHAL_OUTPUT Output)
{
    HALP_HOST_CALLS;
    if (Output->Temporary[0] != '\0') {
        unlink(Output->Temporary);
        Output->Temporary[0] = '\0';
    }
    HalpCloseFile(&Output->File);
}

/*
 * Keeps only mappings of files: a process with many threads has many others. Allocates nothing: in a bugcheck the heap
 * may be in any state.
 */
ULONG HalQueryModules(PSTR Buffer, ULONG Size)
{
    HALP_HOST_CALLS;
    int File = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    CHAR Piece[PIECE_SIZE];
    ULONG Length = 0;
    ULONG Line = 0; /* where the current one begins */
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
