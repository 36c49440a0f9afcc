/* machine.c: times of processes, memory and stacks. */
#include "hal.h"
#include "halp.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define PATH_SIZE 48
#define TEXT_SIZE 4096
#define OUTWAIT_STORES 10000000 /* nanoseconds */
/* In a status line, after the name. */
#define FIELDS_BEFORE_TIMES 11
#define FIELDS_BEFORE_START 19

/* The host counts in ticks, and from its own start. */
static BOOLEAN HalpReadProcessTimes(ULONG ProcessId, PHAL_PROCESS_TIMES Times)
{
    ULONGLONG Tick = HALP_UNITS_PER_SECOND / (ULONGLONG)sysconf(_SC_CLK_TCK);
    CHAR Path[PATH_SIZE], Line[HALP_STATUS_SIZE];
    struct timespec SinceBoot;
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
    clock_gettime(CLOCK_BOOTTIME, &SinceBoot);
    Age = HalpUnitsOfTimespec(&SinceBoot) - strtoull(Field, NULL, 10) * Tick;
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
        Times->KernelTime = HalpUnitsOfTimeval(&Usage.ru_stime);
        Times->UserTime = HalpUnitsOfTimeval(&Usage.ru_utime);
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

/*
 * Which processors share a core, a cache, a package or a node, by the host's sysfs.
 *
 * The host numbers its processors; HALP_TOPOLOGY.Index counts those on which the process may run. Every set is listed by each
 * of its members, so a set is read from its first member and skipped for the others. Without sysfs each processor is a
 * core, and all of them are one package and one node.
 */

#define TOPOLOGY_PATH_SIZE 160
#define NAME_SIZE 96
#define LIST_SIZE 4096
#define HOST_PROCESSORS 16384
#define MOST_CACHES 8
#define MOST_NODES 1024
#define NOT_COUNTED MAXULONG

typedef struct _HALP_TOPOLOGY {
    PHAL_RELATION Relations;
    ULONG Count;
    ULONG Room;
    BOOLEAN NoMemory;
    ULONG Processors;                   /* how many are requested */
    ULONG Index[HOST_PROCESSORS];       /* of a processor of the host, or NOT_COUNTED */
} HALP_TOPOLOGY, *PHALP_TOPOLOGY;

/* FALSE: there is no such file. */
static BOOLEAN HalpReadText(PSTR Text, SIZE_T Size, PCSTR Path)
{
    int File = HalpOpenFile(Path, O_RDONLY);
    SSIZE_T Length;

    if (File < 0) {
        return FALSE;
    }
    Length = HalpReadFile(File, Text, Size - 1);
    HalCloseDescriptor(File);
    Text[Length > 0 ? Length : 0] = '\0';
    return Length > 0;
}

static BOOLEAN HalpReadProcessorFile(PSTR Text, SIZE_T Size, ULONG Processor, PCSTR Name)
{
    CHAR Path[TOPOLOGY_PATH_SIZE];

    snprintf(Path, TOPOLOGY_PATH_SIZE, "/sys/devices/system/cpu/cpu%u/%s", Processor, Name);
    return HalpReadText(Text, Size, Path);
}

static PHAL_RELATION HalpAddRelation(PHALP_TOPOLOGY Topology, HAL_RELATION_KIND Kind)
{
    PHAL_RELATION Relation;

    if (Topology->Count == Topology->Room) {
        ULONG Room = Topology->Room != 0 ? 2 * Topology->Room : 64;
        PHAL_RELATION Larger = HalAllocate(Room * sizeof(*Larger), sizeof(PVOID));

        if (Larger == NULL) {
            Topology->NoMemory = TRUE;
            return NULL;
        }
        if (Topology->Count != 0) {
            memcpy(Larger, Topology->Relations, Topology->Count * sizeof(*Larger));
        }
        HalFree(Topology->Relations);
        Topology->Relations = Larger;
        Topology->Room = Room;
    }
    Relation = &Topology->Relations[Topology->Count++];
    memset(Relation, 0, sizeof(*Relation));
    Relation->Kind = Kind;
    return Relation;
}

static VOID HalpIncludeProcessor(PHAL_RELATION Relation, ULONG Index)
{
    if (Index < HAL_MOST_PROCESSORS) {
        Relation->Processors[Index / 64] |= 1ULL << Index % 64;
    }
}

/* A list such as "0-3,8,10-11". Returns the first processor of the list that is counted, and includes all of them. */
static ULONG HalpIncludeList(PHALP_TOPOLOGY Topology, PHAL_RELATION Relation, PCSTR List)
{
    ULONG Lowest = NOT_COUNTED;
    char *Rest = (char *)List;

    while (*Rest >= '0' && *Rest <= '9') {
        unsigned long First = strtoul(Rest, &Rest, 10);
        unsigned long Last = *Rest == '-' ? strtoul(Rest + 1, &Rest, 10) : First;

        for (unsigned long Host = First; Host <= Last && Host < HOST_PROCESSORS; Host++) {
            if (Topology->Index[Host] != NOT_COUNTED) {
                HalpIncludeProcessor(Relation, Topology->Index[Host]);
                Lowest = Topology->Index[Host] < Lowest ? Topology->Index[Host] : Lowest;
            }
        }
        Rest += *Rest == ',';
    }
    return Lowest;
}

/* NULL: another processor is the first of this set, there is no such list, or there is no memory. */
static PHAL_RELATION HalpAddList(PHALP_TOPOLOGY Topology, HAL_RELATION_KIND Kind, ULONG Host, PCSTR Name)
{
    CHAR List[LIST_SIZE];
    PHAL_RELATION Relation;

    if (!HalpReadProcessorFile(List, LIST_SIZE, Host, Name)) {
        return NULL;
    }
    Relation = HalpAddRelation(Topology, Kind);
    if (Relation != NULL && HalpIncludeList(Topology, Relation, List) != Topology->Index[Host]) {
        Topology->Count -= 1;
        Relation = NULL;
    }
    return Relation;
}

/* Sizes end with K, M or G. */
static ULONG HalpReadCacheNumber(ULONG Host, ULONG Cache, PCSTR Name)
{
    CHAR Path[NAME_SIZE], Text[32];
    ULONG64 Number;
    char *Unit;

    snprintf(Path, NAME_SIZE, "cache/index%u/%s", Cache, Name);
    if (!HalpReadProcessorFile(Text, sizeof(Text), Host, Path)) {
        return 0;
    }
    Number = strtoull(Text, &Unit, 10);
    Number <<= *Unit == 'K' ? 10 : *Unit == 'M' ? 20 : *Unit == 'G' ? 30 : 0;
    return Number < MAXULONG ? (ULONG)Number : MAXULONG;
}

static HAL_CACHE_TYPE HalpReadCacheType(ULONG Host, ULONG Cache)
{
    CHAR Path[NAME_SIZE], Text[32];

    snprintf(Path, NAME_SIZE, "cache/index%u/type", Cache);
    if (!HalpReadProcessorFile(Text, sizeof(Text), Host, Path) || Text[0] == 'U') {
        return HalCacheUnified;
    }
    return Text[0] == 'I' ? HalCacheInstruction : HalCacheData;
}

static VOID HalpAddCaches(PHALP_TOPOLOGY Topology, ULONG Host)
{
    for (ULONG Cache = 0; Cache < MOST_CACHES; Cache++) {
        CHAR Path[NAME_SIZE];
        PHAL_RELATION Relation;

        snprintf(Path, NAME_SIZE, "cache/index%u/shared_cpu_list", Cache);
        Relation = HalpAddList(Topology, HalCache, Host, Path);
        if (Relation != NULL) {
            Relation->Type = HalpReadCacheType(Host, Cache);
            Relation->Level = HalpReadCacheNumber(Host, Cache, "level");
            Relation->LineSize = HalpReadCacheNumber(Host, Cache, "coherency_line_size");
            Relation->Size = HalpReadCacheNumber(Host, Cache, "size");
            Relation->Ways = HalpReadCacheNumber(Host, Cache, "ways_of_associativity");
        }
    }
}

static VOID HalpAddNodes(PHALP_TOPOLOGY Topology)
{
    CHAR Path[TOPOLOGY_PATH_SIZE], List[LIST_SIZE];

    for (ULONG Node = 0; Node < MOST_NODES; Node++) {
        PHAL_RELATION Relation;

        snprintf(Path, TOPOLOGY_PATH_SIZE, "/sys/devices/system/node/node%u/cpulist", Node);
        if (!HalpReadText(List, LIST_SIZE, Path)) {
            if (Node >= 64) {
                return; /* numbers have gaps, but not many */
            }
            continue;
        }
        Relation = HalpAddRelation(Topology, HalNode);
        if (Relation == NULL) {
            return;
        }
        Relation->Number = Node;
        if (HalpIncludeList(Topology, Relation, List) == NOT_COUNTED) {
            Topology->Count -= 1;
        }
    }
}

static BOOLEAN HalpIsCovered(PHALP_TOPOLOGY Topology, HAL_RELATION_KIND Kind, ULONG Index)
{
    for (ULONG Number = 0; Number < Topology->Count; Number++) {
        PHAL_RELATION Relation = &Topology->Relations[Number];

        if (Relation->Kind == Kind && (Relation->Processors[Index / 64] >> Index % 64 & 1) != 0) {
            return TRUE;
        }
    }
    return FALSE;
}

/* Processors about which the host has no information: a core each, in the first package and node. */
static VOID HalpCoverRest(PHALP_TOPOLOGY Topology, HAL_RELATION_KIND Kind)
{
    ULONG First = 0;

    while (Kind != HalCore && First < Topology->Count && Topology->Relations[First].Kind != Kind) {
        First += 1;
    }
    if (Kind != HalCore && First == Topology->Count) {
        HalpAddRelation(Topology, Kind);
    }
    for (ULONG Index = 0; Index < Topology->Processors && !Topology->NoMemory; Index++) {
        if (!HalpIsCovered(Topology, Kind, Index)) {
            PHAL_RELATION Relation =
                Kind == HalCore ? HalpAddRelation(Topology, HalCore) : &Topology->Relations[First];

            if (Relation != NULL) {
                HalpIncludeProcessor(Relation, Index);
            }
        }
    }
}

static VOID HalpCountProcessors(PHALP_TOPOLOGY Topology)
{
    unsigned long Mask[HOST_PROCESSORS / (8 * sizeof(unsigned long))] = {0};
    ULONG Counted = 0;

    HalpCall(SYS_sched_getaffinity, 0, sizeof(Mask), Mask);
    for (ULONG Host = 0; Host < HOST_PROCESSORS; Host++) {
        ULONG Bits = 8 * (ULONG)sizeof(unsigned long);
        BOOLEAN May = (Mask[Host / Bits] >> Host % Bits & 1) != 0 && Counted < Topology->Processors;

        Topology->Index[Host] = May ? Counted++ : NOT_COUNTED;
    }
}

static VOID HalpBuildTopology(PHALP_TOPOLOGY Topology)
{
    for (ULONG Host = 0; Host < HOST_PROCESSORS && !Topology->NoMemory; Host++) {
        if (Topology->Index[Host] != NOT_COUNTED) {
            HalpAddList(Topology, HalCore, Host, "topology/thread_siblings_list");
            HalpAddCaches(Topology, Host);
            HalpAddList(Topology, HalPackage, Host, "topology/core_siblings_list");
        }
    }
    HalpAddNodes(Topology);
    HalpCoverRest(Topology, HalCore);
    HalpCoverRest(Topology, HalPackage);
    HalpCoverRest(Topology, HalNode);
}

BOOLEAN HalQueryTopology(ULONG Processors, PHAL_RELATION *Relations, PULONG Count)
{
    HALP_HOST_CALLS;
    PHALP_TOPOLOGY Topology = HalAllocate(sizeof(*Topology), sizeof(PVOID));
    BOOLEAN Complete;

    if (Topology == NULL) {
        return FALSE;
    }
    Topology->Processors = Processors < HAL_MOST_PROCESSORS ? Processors : HAL_MOST_PROCESSORS;
    HalpCountProcessors(Topology);
    HalpBuildTopology(Topology);
    Complete = !Topology->NoMemory;
    if (Complete) {
        *Relations = Topology->Relations;
        *Count = Topology->Count;
    } else {
        HalFree(Topology->Relations);
    }
    HalFree(Topology);
    return Complete;
}
