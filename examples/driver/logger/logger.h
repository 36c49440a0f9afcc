/*++

Module Name:

    logger.h

Abstract:

    A log of fixed size records for a driver. Records are added at up to DISPATCH_LEVEL. A timer flushes them to the
    client's routine at PASSIVE_LEVEL.

Environment:

    Kernel mode

--*/

#pragma once

#include <ntddk.h>

#define LOGGER_TAG 'rgoL'
#define LOGGER_TEXT_LENGTH 48

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct _LOGGER_RECORD {
    LIST_ENTRY ListEntry;
    LARGE_INTEGER TimeStamp;
    ULONG Sequence;
    ULONG Length;
    WCHAR Text[LOGGER_TEXT_LENGTH];
} LOGGER_RECORD, *PLOGGER_RECORD;

_Function_class_(LOGGER_SINK)
_IRQL_requires_(PASSIVE_LEVEL)
_IRQL_requires_same_
typedef VOID
LOGGER_SINK(
    _In_ PVOID Context,
    _In_ CONST LOGGER_RECORD *Record
    );
typedef LOGGER_SINK *PLOGGER_SINK;

typedef struct _LOGGER {
    KSPIN_LOCK Lock;
    _Guarded_by_(Lock) LIST_ENTRY Records;
    _Guarded_by_(Lock) ULONG Count;
    _Guarded_by_(Lock) BOOLEAN FlushQueued;
    _Guarded_by_(Lock) BOOLEAN Stopping;
    ULONG Limit;
    volatile LONG Sequence;
    volatile LONG Dropped;
    EX_RUNDOWN_REF Rundown;
    NPAGED_LOOKASIDE_LIST Lookaside;
    KTIMER FlushTimer;
    KDPC FlushDpc;
    WORK_QUEUE_ITEM FlushItem;
    FAST_MUTEX SinkMutex;
    PLOGGER_SINK Sink;
    PVOID SinkContext;
} LOGGER, *PLOGGER;

_IRQL_requires_max_(PASSIVE_LEVEL)
_Must_inspect_result_
NTSTATUS
LoggerCreate(
    _In_ PLOGGER_SINK Sink,
    _In_opt_ PVOID SinkContext,
    _In_range_(1, 65536) ULONG Limit,
    _In_ ULONG FlushMilliseconds,
    _Outptr_ PLOGGER *Logger
    );

_IRQL_requires_max_(DISPATCH_LEVEL)
NTSTATUS
LoggerWrite(
    _Inout_ PLOGGER Logger,
    _In_ PCUNICODE_STRING Text
    );

_IRQL_requires_max_(PASSIVE_LEVEL)
VOID
LoggerFlush(
    _Inout_ PLOGGER Logger
    );

_IRQL_requires_max_(PASSIVE_LEVEL)
VOID
LoggerDelete(
    _In_ __drv_freesMem(Mem) PLOGGER Logger
    );

#if defined(__cplusplus)
}
#endif
