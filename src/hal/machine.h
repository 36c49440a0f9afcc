/* machine.h: the host's information about the machine: times of processes, topology, memory, stacks. */
#ifndef INTERLOCK_HAL_MACHINE_H
#define INTERLOCK_HAL_MACHINE_H

#include "hal.h"

/* Processes. */
typedef struct _HAL_PROCESS_TIMES {
    ULONGLONG CreateTime;            /* system time */
    ULONGLONG KernelTime;
    ULONGLONG UserTime;
} HAL_PROCESS_TIMES, *PHAL_PROCESS_TIMES;

BOOLEAN HalQueryProcessTimes(ULONG ProcessId, PHAL_PROCESS_TIMES Times); /* FALSE: no such process; nothing is stored */

/* Topology. A relation is a set of processors that share something. Processors are counted among those on which the
   process may run. */
typedef enum _HAL_RELATION_KIND { HalCore, HalCache, HalPackage, HalNode } HAL_RELATION_KIND;
typedef enum _HAL_CACHE_TYPE { HalCacheUnified, HalCacheInstruction, HalCacheData } HAL_CACHE_TYPE;

#define HAL_MOST_PROCESSORS 2560
#define HAL_PROCESSOR_WORDS (HAL_MOST_PROCESSORS / 64)

typedef struct _HAL_RELATION {
    HAL_RELATION_KIND Kind;
    ULONG Number;                    /* of a node */
    HAL_CACHE_TYPE Type;             /* of a cache, as are the members below */
    ULONG Level;
    ULONG LineSize;
    ULONG Size;
    ULONG Ways;                      /* 0: fully associative, or unknown */
    ULONG64 Processors[HAL_PROCESSOR_WORDS];
} HAL_RELATION, *PHAL_RELATION;

/* Every one of Processors processors is in a core, in a package and in a node. HalFree frees the array. FALSE: no
   memory. */
BOOLEAN HalQueryTopology(ULONG Processors, PHAL_RELATION *Relations, PULONG Count);

/* Memory and stacks. */
typedef struct _HAL_MEMORY_STATUS {
    ULONG64 TotalPhysical;
    ULONG64 AvailablePhysical;
    ULONG64 TotalSwap;
    ULONG64 AvailableSwap;
    ULONG Pressure;                  /* percent of the last 10 s in which a thread has stalled for memory */
} HAL_MEMORY_STATUS, *PHAL_MEMORY_STATUS;

VOID HalQueryMemoryStatus(PHAL_MEMORY_STATUS Status); /* zeros: the host does not tell */
/* Waits until the interval is over, or memory gets scarce where the host reports that. */
VOID HalAwaitMemoryPressure(ULONGLONG Interval);
VOID HalQueryStackLimits(PULONG_PTR Low, PULONG_PTR High); /* of the host thread's own stack */
VOID HalFlushWriteBuffers(VOID);     /* a full barrier on every running thread of the process */

#endif
