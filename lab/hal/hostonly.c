/*
 * hostonly.c: functions of the library that the explored copy lacks (INTERLOCK_HOST): they fork, count memory that the
 * explorer does not restore, or look up exported names. A program that contains a call of one links; the call ends the
 * run with its name.
 */
#include "labhal.h"

#include <interlock/ex.h>
#include <interlock/verifier.h>

#include "../posix/posix.h"

#define LABHAL_HOST_ONLY(Result, Function, ...)                                                                        \
    Result Function(__VA_ARGS__)                                                                                       \
    {                                                                                                                  \
        lab_posix_unsupported(#Function, LABHAL_CALLER);                                                               \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter" /* no call returns */

LABHAL_HOST_ONLY(PVOID, MmGetSystemRoutineAddress, PUNICODE_STRING SystemRoutineName)
LABHAL_HOST_ONLY(ULONG, VfExpectBugCheckInChild, PVF_ROUTINE Routine, PVOID Context, PVF_BUGCHECK BugCheck)
LABHAL_HOST_ONLY(BOOLEAN, VfQueryPoolTag, ULONG Tag, PVF_POOL_USE NonPaged, PVF_POOL_USE Paged)
LABHAL_HOST_ONLY(VF_POOL_MARK, VfMarkPool, ULONG Tag)
LABHAL_HOST_ONLY(ULONG64, VfCountPoolLeaks, const VF_POOL_MARK *Mark)
LABHAL_HOST_ONLY(ULONG64, VfCountTagLeaks, ULONG Tag)
LABHAL_HOST_ONLY(BOOLEAN, VfBeginFaults, VOID)
LABHAL_HOST_ONLY(BOOLEAN, VfNextFault, VOID)
LABHAL_HOST_ONLY(VOID, VfEndFaults, VOID)
LABHAL_HOST_ONLY(VOID, VfQueryFault, PVF_FAULT Fault)
