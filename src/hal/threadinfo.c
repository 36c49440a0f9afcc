/* threadinfo.c: what the host knows about a thread, mostly asked for by another one. */
#include "halp.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#define HOST_NAME_SIZE 16
#define PATH_SIZE 48
#define STATUS_SIZE 4096 /* the masks of the processors, of any length, come behind those of signals */
/* The fields of a stat line behind the name: state is the first of them. */
#define FIELDS_BEFORE_TIMES 11
#define UNITS_PER_SECOND 10000000ULL
/* The host's number for the processor time of one thread: its id inverted, three bits that say so. */
#define THREAD_CLOCK(ThreadId) ((clockid_t)(~(ULONG)(ThreadId) << 3 | 6))

static VOID HalpMakeThreadPath(CHAR Path[PATH_SIZE], ULONG ThreadId, PCSTR File)
{
    snprintf(Path, PATH_SIZE, "/proc/self/task/%u/%s", ThreadId, File);
}

VOID HalSetThreadName(ULONG ThreadId, PCSTR Name)
{
    CHAR Path[PATH_SIZE];
    int File;

    HalpMakeThreadPath(Path, ThreadId, "comm");
    File = HalpOpenFile(Path, O_WRONLY);
    if (File >= 0) {
        /* a thread that has just ended keeps the name it had */
        HalpWriteFile(File, Name, strnlen(Name, HOST_NAME_SIZE - 1));
        HalCloseDescriptor(File);
    }
}

static ULONGLONG HalpUnitsOfTimeval(const struct timeval *Time)
{
    return (ULONGLONG)Time->tv_sec * UNITS_PER_SECOND + (ULONGLONG)Time->tv_usec * 10;
}

static VOID HalpQueryOwnTimes(PULONGLONG KernelTime, PULONGLONG UserTime)
{
    struct rusage Usage;

    if (getrusage(RUSAGE_THREAD, &Usage) == 0) {
        *KernelTime = HalpUnitsOfTimeval(&Usage.ru_stime);
        *UserTime = HalpUnitsOfTimeval(&Usage.ru_utime);
    }
}

static BOOLEAN HalpReadTicks(ULONG ThreadId, PULONGLONG Kernel, PULONGLONG User)
{
    CHAR Path[PATH_SIZE], Line[HALP_STATUS_SIZE];
    char *Field;

    HalpMakeThreadPath(Path, ThreadId, "stat");
    Field = HalpReadStatus(Path, Line, FIELDS_BEFORE_TIMES);
    if (Field == NULL) {
        return FALSE;
    }
    *User = strtoull(Field, &Field, 10);
    *Kernel = strtoull(Field, NULL, 10);
    return TRUE;
}

BOOLEAN HalIsThreadAsleep(ULONG ThreadId)
{
    HALP_HOST_CALLS;
    CHAR Path[PATH_SIZE], Line[HALP_STATUS_SIZE];
    const char *State;

    HalpMakeThreadPath(Path, ThreadId, "stat");
    State = HalpReadStatus(Path, Line, 0);
    return State != NULL && (strncmp(State, " S", 2) == 0 || strncmp(State, " D", 2) == 0);
}

/* The lines about the thread, ended; FALSE: there is no such thread, or the host does not say. */
static BOOLEAN HalpReadStatusLines(ULONG ThreadId, CHAR Text[STATUS_SIZE])
{
    CHAR Path[PATH_SIZE];
    SSIZE_T Length = -1;
    int File;

    HalpMakeThreadPath(Path, ThreadId, "status");
    File = HalpOpenFile(Path, O_RDONLY);
    if (File >= 0) {
        Length = HalpReadFile(File, Text, STATUS_SIZE - 1);
        HalCloseDescriptor(File);
    }
    if (Length > 0) {
        Text[Length] = '\0';
    }
    return Length > 0;
}

/* A line of hexadecimal digits, the first signal in the lowest bit. */
static BOOLEAN HalpHasSignal(PCSTR Text, PCSTR Line, int Signal)
{
    PCSTR Found = strstr(Text, Line);

    return Found != NULL && (strtoull(Found + strlen(Line), NULL, 16) >> (Signal - 1) & 1) != 0;
}

/*
 * A sanitizer has handlers of its own and calls ours when it sees fit: there a signal that the thread does not block is
 * on its way even if the host has delivered it.
 */
BOOLEAN HalpIsSignalOnItsWay(ULONG ThreadId, int Signal)
{
    HALP_HOST_CALLS;
    CHAR Text[STATUS_SIZE];
    BOOLEAN OnItsWay = HalpReadStatusLines(ThreadId, Text) && strstr(Text, "\nSigBlk:") != NULL &&
                       !HalpHasSignal(Text, "\nSigBlk:", Signal);

#ifndef HALP_THREAD_SANITIZER
    OnItsWay = OnItsWay && HalpHasSignal(Text, "\nSigPnd:", Signal);
#endif
    return OnItsWay;
}

/* The host gives the sum exactly and the two parts in ticks: they are scaled to the sum. */
static VOID HalpQueryTimesOf(ULONG ThreadId, PULONGLONG KernelTime, PULONGLONG UserTime)
{
    ULONGLONG Kernel, User, Sum;
    struct timespec Time;

    if (!HalpReadTicks(ThreadId, &Kernel, &User) || clock_gettime(THREAD_CLOCK(ThreadId), &Time) != 0) {
        return;
    }
    Sum = (ULONGLONG)Time.tv_sec * UNITS_PER_SECOND + (ULONGLONG)Time.tv_nsec / 100;
    if (Kernel + User != 0) {
        *KernelTime = (ULONGLONG)((__extension__ (unsigned __int128)Sum) * Kernel / (Kernel + User));
    }
    *UserTime = Sum - *KernelTime;
}

VOID HalQueryThreadTimes(ULONG ThreadId, PULONGLONG KernelTime, PULONGLONG UserTime)
{
    HALP_HOST_CALLS;

    *KernelTime = 0;
    *UserTime = 0;
    if (ThreadId == HalCurrentThreadId()) {
        HalpQueryOwnTimes(KernelTime, UserTime);
    } else {
        HalpQueryTimesOf(ThreadId, KernelTime, UserTime);
    }
}

VOID HalSetError(HAL_ERROR Error)
{
    static const int Numbers[] = {
        [HalErrorInvalid] = EINVAL, [HalErrorAccess] = EACCES, [HalErrorMemory] = ENOMEM, [HalErrorAgain] = EAGAIN};

    errno = Numbers[Error];
}
