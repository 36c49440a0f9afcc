/* machine.c: times of processes, memory and stacks. */
#include "machine.h"

#include "halp.h"
#include "kernelabi.h"

#include <unistd.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define PATH_SIZE 48
#define TEXT_SIZE 4096
#define OUTWAIT_STORES 10000000 /* nanoseconds */
/* In a status line, after the name. */
#define FIELDS_BEFORE_TIMES 11
#define FIELDS_BEFORE_START 19

static ULONGLONG HalpUnitsSinceBoot(VOID)
{
    struct timespec Now;

    clock_gettime(CLOCK_BOOTTIME, &Now);
    return (ULONGLONG)Now.tv_sec * HALP_UNITS_PER_SECOND + (ULONGLONG)Now.tv_nsec / HALP_NANOSECONDS_PER_UNIT;
}

static ULONGLONG HalpUnitsOfTime(const struct timeval *Time)
{
    return (ULONGLONG)Time->tv_sec * HALP_UNITS_PER_SECOND + (ULONGLONG)Time->tv_usec * 10;
}

/* The host counts in ticks, and from its own start. */
static BOOLEAN HalpReadProcessTimes(ULONG ProcessId, PHAL_PROCESS_TIMES Times)
{
    ULONGLONG Tick = HALP_UNITS_PER_SECOND / (ULONGLONG)sysconf(_SC_CLK_TCK);
    CHAR Path[PATH_SIZE], Line[HALP_STATUS_SIZE];
    ULONGLONG Age;
    char *Field;

    snprintf(Path, PATH_SIZE, "/proc/%u/stat", ProcessId);
    Field = HalpReadStatus(Path, Line, FIELDS_BEFORE_TIMES);
    if (Field == NULL) {
        return FALSE;
    }
    Times->UserTime = strtoull(Field, &Field, 10) * Tick;
    Times->KernelTime = strtoull(Field, &Field, 10) * Tick;
    for (ULONG Skipped = FIELDS_BEFORE_TIMES + 2; Skipped < FIELDS_BEFORE_START; Skipped++) {
        Field = strchr(Field + 1, ' ');
    }
    Age = HalpUnitsSinceBoot() - strtoull(Field, NULL, 10) * Tick;
    Times->CreateTime = HalDispatch.QuerySystemTime() - Age;
    return TRUE;
}

BOOLEAN HalQueryProcessTimes(ULONG ProcessId, PHAL_PROCESS_TIMES Times)
{
    HALP_HOST_CALLS;
    struct rusage Usage;

    if (!HalpReadProcessTimes(ProcessId, Times)) {
        return FALSE;
    }
    if (ProcessId == HalCurrentProcessId() && getrusage(RUSAGE_SELF, &Usage) == 0) {
        Times->KernelTime = HalpUnitsOfTime(&Usage.ru_stime);
        Times->UserTime = HalpUnitsOfTime(&Usage.ru_utime);
    }
    return TRUE;
}

/* A line "Name:   123 kB" as bytes; 0: there is none. */
static ULONG64 HalpBytesOfLine(PCSTR Text, PCSTR Name)
{
    PCSTR Line = strstr(Text, Name);

    return Line != NULL ? strtoull(Line + strlen(Name), NULL, 10) * 1024 : 0;
}

/* Empty: there is no such file. */
static VOID HalpReadWhole(PCSTR Path, CHAR Text[TEXT_SIZE])
{
    SSIZE_T Length = -1;
    int File = HalpOpenFile(Path, O_RDONLY);

    if (File >= 0) {
        Length = HalpReadFile(File, Text, TEXT_SIZE - 1);
        HalCloseDescriptor(File);
    }
    Text[Length > 0 ? Length : 0] = '\0';
}

VOID HalQueryMemoryStatus(PHAL_MEMORY_STATUS Status)
{
    HALP_HOST_CALLS;
    CHAR Text[TEXT_SIZE];
    PCSTR Pressure;

    HalpReadWhole("/proc/pressure/memory", Text);
    Pressure = strstr(Text, "some avg10=");
    Status->Pressure = Pressure != NULL ? (ULONG)strtoul(Pressure + strlen("some avg10="), NULL, 10) : 0;
    HalpReadWhole("/proc/meminfo", Text);
    Status->TotalPhysical = HalpBytesOfLine(Text, "MemTotal:");
    Status->AvailablePhysical = HalpBytesOfLine(Text, "MemAvailable:");
    Status->TotalSwap = HalpBytesOfLine(Text, "SwapTotal:");
    Status->AvailableSwap = HalpBytesOfLine(Text, "SwapFree:");
}

/* Threads stall for 150 ms in 2 s; below 6.5 the host permits it to privileged processes only. A trigger lives as
   long as its descriptor. */
static const CHAR HalpPressureTrigger[] = "some 150000 2000000";

static LONG HalpOpenPressure(VOID)
{
    LONG File = HalpOpenFile("/proc/pressure/memory", O_RDWR | O_NONBLOCK);

    if (File >= 0 && HalpWriteFile(File, HalpPressureTrigger, sizeof(HalpPressureTrigger)) < 0) {
        HalCloseDescriptor(File);
        File = -1;
    }
    return File;
}

VOID HalAwaitMemoryPressure(ULONGLONG Interval)
{
    struct pollfd Poll = {.fd = HalpOpenPressure(), .events = POLLPRI};
    struct timespec Time = {.tv_sec = (time_t)(Interval / HALP_UNITS_PER_SECOND),
                            .tv_nsec = (long)(Interval % HALP_UNITS_PER_SECOND * HALP_NANOSECONDS_PER_UNIT)};

    HalpCall(SYS_ppoll, &Poll, Poll.fd >= 0, &Time, NULL, 0);
    if (Poll.fd >= 0) {
        HalCloseDescriptor(Poll.fd);
    }
}

VOID HalQueryStackLimits(PULONG_PTR Low, PULONG_PTR High)
{
    HALP_HOST_CALLS;
    pthread_attr_t Attributes;
    PVOID Stack = NULL;
    SIZE_T Size = 0;

    if (pthread_getattr_np(pthread_self(), &Attributes) == 0) {
        pthread_attr_getstack(&Attributes, &Stack, &Size);
        pthread_attr_destroy(&Attributes);
    }
    *Low = (ULONG_PTR)Stack;
    *High = (ULONG_PTR)Stack + Size;
}

VOID HalpOutwaitStores(VOID)
{
    struct timespec Rest = {.tv_nsec = OUTWAIT_STORES};

    while (HalpCall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &Rest, &Rest) == -EINTR) {
    }
}

VOID HalFlushWriteBuffers(VOID)
{
    if (!HalBarrierAllThreads() && HalpCall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0) {
        HalpOutwaitStores();
    }
}
