/* workitem.c: RtlQueueWorkItem. */
#include "tplegacy.h"

static VOID RtlpExecuteWorkItem(PTPP_OBJECT Object, PTP_CALLBACK_INSTANCE Instance, ULONG Result)
{
    UNREFERENCED_PARAMETER(Instance);
    UNREFERENCED_PARAMETER(Result);
    ((WORKERCALLBACKFUNC)Object->Callback)(Object->Context);
}

static const TPP_TYPE RtlpWorkItemType = {.Size = sizeof(TP_WORK), .Execute = RtlpExecuteWorkItem};

NTSTATUS RtlQueueWorkItem(WORKERCALLBACKFUNC Function, PVOID Context, ULONG Flags)
{
    TP_CALLBACK_ENVIRON Environ;
    RtlpFormatEnviron(&Environ, Flags);
    if (Flags >> 16 != 0) {
        TpSetPoolMaxThreads(&TppDefaultPool, Flags >> 16);
    }
    return TppSubmitOnce(&RtlpWorkItemType, (PVOID)Function, Context, &Environ);
}
