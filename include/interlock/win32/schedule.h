/*
 * win32/schedule.h: kernel32's view of processors and scheduling: affinity, priority classes and times of processes, the
 * topology of the machine, stack limits. Part of win32.h.
 */
#ifndef INTERLOCK_WIN32_SCHEDULE_H
#define INTERLOCK_WIN32_SCHEDULE_H

#include <interlock/win32/base.h>

INTERLOCK_BEGIN

/* Processes. Affinity and priority class. Only this process can be changed: another one is ERROR_NOT_SUPPORTED. */

#define PROCESS_MODE_BACKGROUND_BEGIN 0x00100000
#define PROCESS_MODE_BACKGROUND_END 0x00200000

/* Stores the processors on which the threads of a process may run, and those of the machine. Both are 0 if there are
   several groups of processors. Differs: virtual processors; another process may run on all of them. Since NT 3.5. */
WINBASEAPI BOOL WINAPI GetProcessAffinityMask(HANDLE hProcess, PDWORD_PTR lpProcessAffinityMask,
                                              PDWORD_PTR lpSystemAffinityMask);

/* Sets the processors on which the threads of this process may run, also that of each thread. Fails with
   ERROR_INVALID_PARAMETER unless the mask is a part of the machine's. Differs: applies to virtual processors; the host's
   scheduler is not affected. Since NT 3.5. */
WINBASEAPI BOOL WINAPI SetProcessAffinityMask(HANDLE hProcess, DWORD_PTR dwProcessAffinityMask);

/* Returns the priority class; 0 on failure. Differs: another process is normal. Since NT 3.1. */
WINBASEAPI DWORD WINAPI GetPriorityClass(HANDLE hProcess);

/* Sets the priority class, from which the priorities of all threads follow, or begins or ends background mode. Differs:
   the host's scheduler follows where the process has the right; realtime becomes high, as without the privilege. Since
   NT 3.1. */
WINBASEAPI BOOL WINAPI SetPriorityClass(HANDLE hProcess, DWORD dwPriorityClass);

/* Sets and queries whether priority boosts are disabled, for all threads and for those created later. Since NT 4.0. */
WINBASEAPI BOOL WINAPI SetProcessPriorityBoost(HANDLE hProcess, BOOL bDisablePriorityBoost);
WINBASEAPI BOOL WINAPI GetProcessPriorityBoost(HANDLE hProcess, PBOOL pDisablePriorityBoost);

/* Stores the times of creation and exit, and the processor time in kernel and user mode. Differs: of a process that has
   ended, the processor times of children only. Since NT 3.5. */
WINBASEAPI BOOL WINAPI GetProcessTimes(HANDLE hProcess, LPFILETIME lpCreationTime, LPFILETIME lpExitTime,
                                       LPFILETIME lpKernelTime, LPFILETIME lpUserTime);

/* Stores the number of open handles. Differs: of another process it is ERROR_NOT_SUPPORTED. Since XP. */
WINBASEAPI BOOL WINAPI GetProcessHandleCount(HANDLE hProcess, PDWORD pdwHandleCount);

/*
 * Topology. Virtual processor n stands for the n-th processor of the host on which the process may run; processors beyond
 * those are cores of their own.
 */

typedef enum _LOGICAL_PROCESSOR_RELATIONSHIP {
    RelationProcessorCore,
    RelationNumaNode,
    RelationCache,
    RelationProcessorPackage,
    RelationGroup,
    RelationAll = 0xffff
} LOGICAL_PROCESSOR_RELATIONSHIP;

#define LTP_PC_SMT 0x1

typedef enum _PROCESSOR_CACHE_TYPE { CacheUnified, CacheInstruction, CacheData, CacheTrace } PROCESSOR_CACHE_TYPE;

#define CACHE_FULLY_ASSOCIATIVE 0xFF

typedef struct _CACHE_DESCRIPTOR {
    BYTE Level;
    BYTE Associativity;
    WORD LineSize;
    DWORD Size;
    PROCESSOR_CACHE_TYPE Type;
} CACHE_DESCRIPTOR, *PCACHE_DESCRIPTOR;

typedef struct _SYSTEM_LOGICAL_PROCESSOR_INFORMATION {
    ULONG_PTR ProcessorMask;
    LOGICAL_PROCESSOR_RELATIONSHIP Relationship;
    __extension__ union {
        struct {
            BYTE Flags;
        } ProcessorCore;
        struct {
            DWORD NodeNumber;
        } NumaNode;
        CACHE_DESCRIPTOR Cache;
        ULONGLONG Reserved[2];
    };
} SYSTEM_LOGICAL_PROCESSOR_INFORMATION, *PSYSTEM_LOGICAL_PROCESSOR_INFORMATION;

typedef struct _PROCESSOR_RELATIONSHIP {
    BYTE Flags;
    BYTE EfficiencyClass;
    BYTE Reserved[20];
    WORD GroupCount;
    GROUP_AFFINITY GroupMask[1];
} PROCESSOR_RELATIONSHIP, *PPROCESSOR_RELATIONSHIP;

typedef struct _NUMA_NODE_RELATIONSHIP {
    DWORD NodeNumber;
    BYTE Reserved[18];
    WORD GroupCount;
    __extension__ union {
        GROUP_AFFINITY GroupMask;
        GROUP_AFFINITY GroupMasks[1];
    };
} NUMA_NODE_RELATIONSHIP, *PNUMA_NODE_RELATIONSHIP;

typedef struct _CACHE_RELATIONSHIP {
    BYTE Level;
    BYTE Associativity;
    WORD LineSize;
    DWORD CacheSize;
    PROCESSOR_CACHE_TYPE Type;
    BYTE Reserved[18];
    WORD GroupCount;
    __extension__ union {
        GROUP_AFFINITY GroupMask;
        GROUP_AFFINITY GroupMasks[1];
    };
} CACHE_RELATIONSHIP, *PCACHE_RELATIONSHIP;

typedef struct _PROCESSOR_GROUP_INFO {
    BYTE MaximumProcessorCount;
    BYTE ActiveProcessorCount;
    BYTE Reserved[38];
    KAFFINITY ActiveProcessorMask;
} PROCESSOR_GROUP_INFO, *PPROCESSOR_GROUP_INFO;

typedef struct _GROUP_RELATIONSHIP {
    WORD MaximumGroupCount;
    WORD ActiveGroupCount;
    BYTE Reserved[20];
    PROCESSOR_GROUP_INFO GroupInfo[1];
} GROUP_RELATIONSHIP, *PGROUP_RELATIONSHIP;

typedef struct _SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX {
    LOGICAL_PROCESSOR_RELATIONSHIP Relationship;
    DWORD Size;
    __extension__ union {
        PROCESSOR_RELATIONSHIP Processor;
        NUMA_NODE_RELATIONSHIP NumaNode;
        CACHE_RELATIONSHIP Cache;
        GROUP_RELATIONSHIP Group;
    };
} SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX, *PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX;

C_ASSERT(sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION) == 32);
C_ASSERT(sizeof(SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX) == 80);

/* Stores one record for each core, cache, package and node of group 0, and the length. Fails with
   ERROR_INSUFFICIENT_BUFFER and the length that is needed. Differs: as the host's sysfs has it; without one each
   processor is a core, and all are one package. Since XP. */
WINBASEAPI BOOL WINAPI GetLogicalProcessorInformation(PSYSTEM_LOGICAL_PROCESSOR_INFORMATION Buffer,
                                                      PDWORD ReturnedLength);

/* The same for one relationship or all, in records of different sizes, with all groups. Since 7. */
WINBASEAPI BOOL WINAPI GetLogicalProcessorInformationEx(LOGICAL_PROCESSOR_RELATIONSHIP RelationshipType,
                                                        PSYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX Buffer,
                                                        PDWORD ReturnedLength);

/* Stores the highest number of a node. Since XP. */
WINBASEAPI BOOL WINAPI GetNumaHighestNodeNumber(PULONG HighestNodeNumber);

/* Registers. */

typedef PCONTEXT LPCONTEXT;

/* Stores and sets the registers of a suspended thread, as far as ContextFlags says. Differs: as NtGetContextThread. Since
   NT 3.1. */
WINBASEAPI BOOL WINAPI GetThreadContext(HANDLE hThread, LPCONTEXT lpContext);
WINBASEAPI BOOL WINAPI SetThreadContext(HANDLE hThread, const CONTEXT *lpContext);

/* The calling thread, and all others. */

/* Makes the stores of every thread of the process visible: a full barrier on each processor that runs one of them.
   Differs: uses membarrier; waits 10 ms where the host refuses it. Since Vista. */
WINBASEAPI VOID WINAPI FlushProcessWriteBuffers(VOID);

/* Stores the lowest address of the calling thread's or fiber's stack, and the address behind it. Since 8. */
WINBASEAPI VOID WINAPI GetCurrentThreadStackLimits(PULONG_PTR LowLimit, PULONG_PTR HighLimit);

INTERLOCK_END

#endif
