/* process.c: other processes, forked children, and this process's environment and time zone. */
#include "hal.h"
#include "halp.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

#define PATH_SIZE 48
/* In a status line: between the name and the start time. */
#define FIELDS_BEFORE_START 19

extern char **environ;

NTSTATUS HalOpenProcess(ULONG ProcessId, PLONG Descriptor)
{
    pid_t Process = (pid_t)ProcessId;
    *Descriptor = Process > 0 ? HalpKeepDescriptor((LONG)HalpCall(SYS_pidfd_open, Process, 0)) : -1;
    return *Descriptor >= 0 ? STATUS_SUCCESS : HalpStatusOfRefusal(*Descriptor, STATUS_INVALID_CID);
}

/* The name in parentheses may contain anything: fields are counted from the last parenthesis. */
char *HalpReadStatus(PCSTR Path, CHAR Line[HALP_STATUS_SIZE], ULONG FieldsBefore)
{
    int File = HalpOpenFile(Path, O_RDONLY);
    SSIZE_T Length = File >= 0 ? HalpReadFile(File, Line, HALP_STATUS_SIZE - 1) : -1;
    char *Field;

    if (File >= 0) {
        HalCloseDescriptor(File);
    }
    if (Length <= 0) {
        return NULL;
    }
    Line[Length] = '\0';
    Field = strrchr(Line, ')');
    for (ULONG Skipped = 0; Field != NULL && Skipped <= FieldsBefore; Skipped++) {
        Field = strchr(Field + 1, ' ');
    }
    return Field;
}

ULONG64 HalQueryProcessStart(ULONG ProcessId)
{
    HALP_HOST_CALLS;
    CHAR Path[PATH_SIZE], Line[HALP_STATUS_SIZE];
    char *Field;

    snprintf(Path, PATH_SIZE, "/proc/%u/stat", ProcessId);
    Field = HalpReadStatus(Path, Line, FIELDS_BEFORE_START);
    return Field != NULL ? strtoull(Field, NULL, 10) : 0;
}

/* What NT would report for a process that a signal killed. */
static ULONG HalpExitCodeOfSignal(int Signal)
{
    switch (Signal) {
    case SIGSEGV:
    case SIGBUS:
        return (ULONG)STATUS_ACCESS_VIOLATION;
    case SIGILL:
        return (ULONG)STATUS_ILLEGAL_INSTRUCTION;
    case SIGFPE:
        return (ULONG)STATUS_INTEGER_DIVIDE_BY_ZERO;
    case SIGTRAP:
        return (ULONG)STATUS_BREAKPOINT;
    case SIGINT:
        return (ULONG)STATUS_CONTROL_C_EXIT;
    case SIGABRT:
        return 3;
    default:
        return 1;
    }
}

static long HalpWaitForChild(idtype_t Kind, LONG Child, siginfo_t *Info, int Options)
{
    long Result;

    do {
        Result = HalpCall(SYS_waitid, Kind, Child, Info, Options, NULL);
    } while (Result == -EINTR);
    return Result;
}

BOOLEAN HalQueryProcessExit(LONG Process, BOOLEAN Reap, PULONG ExitCode)
{
    siginfo_t Info = {0};
    long Result = HalpWaitForChild((idtype_t)P_PIDFD, Process, &Info, WEXITED | WNOHANG | (Reap ? 0 : WNOWAIT));

    if (Result != 0 || Info.si_pid == 0) {
        return FALSE;
    }
    *ExitCode = Info.si_code == CLD_EXITED ? (ULONG)Info.si_status : HalpExitCodeOfSignal(Info.si_status);
    return TRUE;
}

VOID HalAwaitProcess(LONG Process)
{
    siginfo_t Info;

    HalpWaitForChild((idtype_t)P_PIDFD, Process, &Info, WEXITED | WNOWAIT);
}

NTSTATUS HalRequestOfProcess(LONG Process, HAL_PROCESS_REQUEST Request)
{
    int Signal = Request == HalSuspendProcess ? SIGSTOP : Request == HalResumeProcess ? SIGCONT : SIGKILL;
    long Result = HalpCall(SYS_pidfd_send_signal, Process, Signal, NULL, 0);

    if (Result == 0) {
        return STATUS_SUCCESS;
    }
    return Result == -EPERM ? STATUS_ACCESS_DENIED : STATUS_PROCESS_IS_TERMINATING;
}

DECLSPEC_NORETURN VOID HalExitProcess(ULONG ExitCode, BOOLEAN AtOnce)
{
    if (AtOnce) {
        _exit((int)ExitCode);
    }
    /* Exit handlers write files: a pending cancellation would end this thread in place of the process. */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    exit((int)ExitCode);
}

/* Starts a program stopped: a shell stops itself, and becomes the program when it is resumed. */
static const char HalpStopScript[] = "kill -STOP $$; exec \"$@\"";

static NTSTATUS HalpStatusOfSpawn(int Error)
{
    switch (Error) {
    case ENOENT:
    case ENOTDIR:
        return STATUS_OBJECT_NAME_NOT_FOUND;
    case EACCES:
    case EPERM:
        return STATUS_ACCESS_DENIED;
    case ENOEXEC:
        return STATUS_INVALID_IMAGE_FORMAT;
    case E2BIG:
        return STATUS_NAME_TOO_LONG;
    default:
        return STATUS_INSUFFICIENT_RESOURCES;
    }
}

/* The child's environment with Spawn->Variable in place of another one of that name. NULL: no memory. */
static char **HalpBuildEnvironment(const HAL_SPAWN *Spawn)
{
    char **Old = Spawn->Environment != NULL ? Spawn->Environment : environ;
    size_t Name = strcspn(Spawn->Variable, "=") + 1;
    size_t Count = 0, Kept = 0;

    while (Old[Count] != NULL) {
        Count += 1;
    }
    char **New = malloc((Count + 2) * sizeof(*New));
    if (New == NULL) {
        return NULL;
    }
    for (size_t Index = 0; Index < Count; Index += 1) {
        if (strncmp(Old[Index], Spawn->Variable, Name) != 0) {
            New[Kept++] = Old[Index];
        }
    }
    New[Kept++] = (char *)Spawn->Variable;
    New[Kept] = NULL;
    return New;
}

static int HalpSpawnWith(pid_t *Process, PCSTR Path, PSTR *Arguments, const HAL_SPAWN *Spawn, char **Environment)
{
    posix_spawn_file_actions_t Actions;
    posix_spawnattr_t Attributes;
    sigset_t All, None;
    int Error = posix_spawn_file_actions_init(&Actions);

    if (Error != 0) {
        return Error;
    }
    Error = posix_spawnattr_init(&Attributes);
    if (Error == 0) {
        /* The child starts with default signal actions and an empty mask. */
        sigfillset(&All);
        sigemptyset(&None);
        posix_spawnattr_setsigdefault(&Attributes, &All);
        posix_spawnattr_setsigmask(&Attributes, &None);
        Error = posix_spawnattr_setflags(&Attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
        if (Error == 0 && Spawn->Directory != NULL) {
            Error = posix_spawn_file_actions_addchdir_np(&Actions, Spawn->Directory);
        }
        for (int Number = 0; Number < 3 && Error == 0; Number += 1) {
            if (Spawn->Standard[Number] >= 0) {
                Error = posix_spawn_file_actions_adddup2(&Actions, Spawn->Standard[Number], Number);
            }
        }
        if (Error == 0) {
            Error = posix_spawnp(Process, Path, &Actions, &Attributes, Arguments, Environment);
        }
        posix_spawnattr_destroy(&Attributes);
    }
    posix_spawn_file_actions_destroy(&Actions);
    return Error;
}

static int HalpSpawn(pid_t *Process, PCSTR Path, PSTR *Arguments, const HAL_SPAWN *Spawn)
{
    char **Built = Spawn->Variable != NULL ? HalpBuildEnvironment(Spawn) : NULL;
    int Error = ENOMEM;

    if (Built != NULL || Spawn->Variable == NULL) {
        char **Plain = Spawn->Environment != NULL ? Spawn->Environment : environ;
        Error = HalpSpawnWith(Process, Path, Arguments, Spawn, Built != NULL ? Built : Plain);
    }
    free(Built);
    return Error;
}

static NTSTATUS HalpSpawnStopped(pid_t *Process, const HAL_SPAWN *Spawn)
{
    siginfo_t Info;
    SIZE_T Count = 0;
    int Error;
    while (Spawn->Arguments[Count] != NULL) {
        Count += 1;
    }
    if (strchr(Spawn->Path, '/') != NULL && access(Spawn->Path, X_OK) != 0) {
        return HalpStatusOfSpawn(errno);
    }
    PSTR *Arguments = malloc((Count + 5) * sizeof(*Arguments));
    if (Arguments == NULL) {
        return STATUS_NO_MEMORY;
    }
    Arguments[0] = (PSTR) "sh";
    Arguments[1] = (PSTR) "-c";
    Arguments[2] = (PSTR)HalpStopScript;
    Arguments[3] = (PSTR) "sh";
    memcpy(&Arguments[4], Spawn->Arguments, (Count + 1) * sizeof(*Arguments));
    Arguments[4] = (PSTR)Spawn->Path;
    Error = HalpSpawn(Process, "/bin/sh", Arguments, Spawn);
    free(Arguments);
    if (Error != 0) {
        return HalpStatusOfSpawn(Error);
    }
    /* A resume before the stop would be lost. */
    HalpWaitForChild(P_PID, *Process, &Info, WSTOPPED | WEXITED | WNOWAIT);
    return STATUS_SUCCESS;
}

NTSTATUS HalSpawnProcess(const HAL_SPAWN *Spawn, PULONG ProcessId, PLONG Descriptor)
{
    HALP_HOST_CALLS;
    pid_t Process = 0;
    NTSTATUS Status = STATUS_SUCCESS;
    if (Spawn->Stopped) {
        Status = HalpSpawnStopped(&Process, Spawn);
    } else {
        int Error = HalpSpawn(&Process, Spawn->Path, Spawn->Arguments, Spawn);
        Status = Error == 0 ? STATUS_SUCCESS : HalpStatusOfSpawn(Error);
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    *ProcessId = (ULONG)Process;
    /* Only we reap it, so the id is still this process's. */
    if (!NT_SUCCESS(HalOpenProcess(*ProcessId, Descriptor))) {
        siginfo_t Info;

        HalpCall(SYS_kill, Process, SIGKILL);
        HalpWaitForChild(P_PID, Process, &Info, WEXITED);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    return STATUS_SUCCESS;
}

/* A forked child that runs a routine and sends a result back through a pipe. */

#define EXIT_CODES 256

static BOOLEAN HalpReadResult(int Input, PVOID Result, SIZE_T Size)
{
    SIZE_T Used = 0;

    while (Used < Size) {
        SSIZE_T Got = HalpReadFile(Input, (PCHAR)Result + Used, Size - Used);
        if (Got > 0) {
            Used += (SIZE_T)Got;
        } else if (Got != -EINTR) {
            return FALSE;
        }
    }
    return TRUE;
}

static ULONG HalpReapChild(pid_t Process)
{
    siginfo_t Info = {.si_code = 0};
    long Error;

    do {
        Error = HalpCall(SYS_waitid, P_PID, Process, &Info, WEXITED, NULL);
    } while (Error == -EINTR);
    if (Error < 0) {
        return 0; /* the program ignores its children */
    }
    return Info.si_code == CLD_EXITED ? EXIT_CODES + (ULONG)Info.si_status : (ULONG)Info.si_status;
}

BOOLEAN HalRunChild(PHAL_CHILD Child, VOID (*Routine)(PVOID), PVOID Context, PVOID Result, SIZE_T Size)
{
    int Ends[2];
    pid_t Process;
    BOOLEAN Complete;

    Child->ExitStatus = 0;
    if (HalpCall(SYS_pipe2, Ends, O_CLOEXEC) < 0) {
        return FALSE;
    }
    Child->Output = Ends[1];
    {
        HALP_HOST_CALLS;
        fflush(NULL); /* or the child would write it again */
        Process = fork();
    }
    if (Process == 0) {
        HalCloseDescriptor(Ends[0]);
        HalpCall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL); /* a parent that is killed does not leave it behind */
        signal(SIGABRT, SIG_DFL);                       /* a test framework's handler would run the parent's next test */
        Routine(Context);
        _exit(0);
    }
    HalCloseDescriptor(Ends[1]);
    Complete = Process > 0 && HalpReadResult(Ends[0], Result, Size);
    HalCloseDescriptor(Ends[0]);
    if (Process > 0) {
        Child->ExitStatus = HalpReapChild(Process);
    }
    return Complete;
}

VOID HalFinishChild(const HAL_CHILD *Child, const VOID *Result, SIZE_T Size)
{
    SIZE_T Used = 0;

    while (Used < Size) {
        SSIZE_T Written = HalpWriteFile(Child->Output, (const CHAR *)Result + Used, Size - Used);
        if (Written > 0) {
            Used += (SIZE_T)Written;
        } else if (Written != -EINTR) {
            break;
        }
    }
    _exit(0);
}

/* The program's variables and files. */

extern char **environ;

static volatile ULONG HalpEnvironmentLock; /* see HalpLockMasked */

SIZE_T HalQueryVariable(PCSTR Name, PSTR Buffer, SIZE_T Size)
{
    HALP_HOST_CALLS;
    SIZE_T Length = HAL_NO_VARIABLE;
    sigset_t Before;
    PCSTR Value;

    HalpLockMasked(&HalpEnvironmentLock, &Before);
    Value = getenv(Name);
    if (Value != NULL) {
        Length = strlen(Value);
        if (Length < Size) {
            memcpy(Buffer, Value, Length + 1);
        }
    }
    HalpUnlockMasked(&HalpEnvironmentLock, &Before);
    return Length;
}

BOOLEAN HalSetVariable(PCSTR Name, PCSTR Value)
{
    HALP_HOST_CALLS;
    sigset_t Before;
    int Result;

    HalpLockMasked(&HalpEnvironmentLock, &Before);
    Result = Value != NULL ? setenv(Name, Value, 1) : unsetenv(Name);
    HalpUnlockMasked(&HalpEnvironmentLock, &Before);
    return Result == 0;
}

/* With the lock held. */
static PSTR HalpCopyStrings(PSIZE_T Size)
{
    PSTR Block, Next;

    *Size = 1;
    for (char **Entry = environ; Entry != NULL && *Entry != NULL; Entry++) {
        *Size += strlen(*Entry) + 1;
    }
    Next = Block = HalAllocate(*Size, 1);
    for (char **Entry = environ; Block != NULL && Entry != NULL && *Entry != NULL; Entry++) {
        SIZE_T Length = strlen(*Entry) + 1;

        memcpy(Next, *Entry, Length);
        Next += Length;
    }
    return Block;
}

PSTR HalCopyVariables(PSIZE_T Size)
{
    HALP_HOST_CALLS;
    sigset_t Before;
    PSTR Block;

    HalpLockMasked(&HalpEnvironmentLock, &Before);
    Block = HalpCopyStrings(Size);
    HalpUnlockMasked(&HalpEnvironmentLock, &Before);
    return Block;
}

static SIZE_T HalpStorePath(PCSTR Path, PSTR Buffer, SIZE_T Size)
{
    SIZE_T Length = strlen(Path);

    if (Length >= Size) {
        return 0;
    }
    memcpy(Buffer, Path, Length + 1);
    return Length;
}

/* A library that is linked statically is in the program's file. */
SIZE_T HalQueryModulePath(HAL_MODULE Module, PSTR Buffer, SIZE_T Size)
{
    HALP_HOST_CALLS;
    CHAR Path[PATH_MAX];
    Dl_info Place;
    ssize_t Length;

    if (Module == HalLibrary && dladdr((PVOID)HalQueryModulePath, &Place) != 0 && Place.dli_fname[0] == '/' &&
        realpath(Place.dli_fname, Path) != NULL) {
        return HalpStorePath(Path, Buffer, Size);
    }
    Length = readlink("/proc/self/exe", Path, sizeof(Path) - 1);
    Path[Length > 0 ? Length : 0] = '\0';
    return HalpStorePath(Path, Buffer, Size);
}

/* The time zone. */

#define HALP_HOUR 3600
#define HALP_DAY (24 * HALP_HOUR)

BOOLEAN HalBreakDownTime(LONGLONG Seconds, BOOLEAN Local, struct tm *Fields)
{
    HALP_HOST_CALLS;
    time_t Time = (time_t)Seconds;

    tzset();
    return (Local ? localtime_r(&Time, Fields) : gmtime_r(&Time, Fields)) != NULL;
}

static BOOLEAN HalpDaylightAt(time_t Time, struct tm *Fields)
{
    return localtime_r(&Time, Fields) != NULL && Fields->tm_isdst > 0;
}

/* The first second of the new season; Before and After are in different ones. */
static time_t HalpFindChange(time_t Before, time_t After)
{
    struct tm Fields;
    BOOLEAN Daylight = HalpDaylightAt(Before, &Fields);

    while (After - Before > 1) {
        time_t Middle = Before + (After - Before) / 2;
        if (HalpDaylightAt(Middle, &Fields) == Daylight) {
            Before = Middle;
        } else {
            After = Middle;
        }
    }
    return After;
}

static VOID HalpDescribeSeason(PHAL_SEASON Season, const struct tm *Fields)
{
    Season->Offset = (LONG)Fields->tm_gmtoff;
    Season->Known = TRUE;
    snprintf(Season->Name, sizeof(Season->Name), "%s", Fields->tm_zone != NULL ? Fields->tm_zone : "");
}

/* A year of days: the two seasons, and the local time on the clock of the other one when each begins. */
VOID HalQueryTimeZone(LONGLONG Now, PHAL_TIME_ZONE Zone)
{
    HALP_HOST_CALLS;
    time_t Day, First;
    struct tm Fields;
    BOOLEAN Before;

    RtlZeroMemory(Zone, sizeof(*Zone));
    tzset();
    Zone->Daylight = HalpDaylightAt((time_t)Now, &Fields);
    HalpDescribeSeason(&Zone->Seasons[Zone->Daylight], &Fields);
    First = (time_t)Now - (time_t)Fields.tm_yday * HALP_DAY - Fields.tm_hour * HALP_HOUR;
    Before = HalpDaylightAt(First, &Fields);
    for (Day = First; Day < First + 366 * (time_t)HALP_DAY; Day += HALP_DAY) {
        BOOLEAN After = HalpDaylightAt(Day + HALP_DAY, &Fields);
        if (After != Before) {
            LONG Clock;
            time_t Change = HalpFindChange(Day, Day + HALP_DAY);
            HalpDaylightAt(Change - 1, &Fields);
            HalpDescribeSeason(&Zone->Seasons[Before], &Fields);
            Clock = Zone->Seasons[Before].Offset;
            HalpDaylightAt(Change, &Fields);
            HalpDescribeSeason(&Zone->Seasons[After], &Fields);
            Zone->Seasons[After].Begins = (LONGLONG)Change + Clock;
        }
        Before = After;
    }
}
