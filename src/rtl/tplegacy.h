/* tplegacy.h: what work items, registered waits and timer queues share. They are objects of the pool like any other. */
#ifndef INTERLOCK_TPLEGACY_H
#define INTERLOCK_TPLEGACY_H

#include "tpp.h"

#include "../nt/ntp.h"

/* A completion event: none; INVALID_HANDLE_VALUE, the caller waits; or one to set when the last callback is over. */
typedef struct _RTLP_COMPLETION {
    BOOLEAN Wait;
    PKEVENT Event; /* with a reference, or NULL */
} RTLP_COMPLETION, *PRTLP_COMPLETION;

NTSTATUS RtlpOpenCompletion(HANDLE Event, PRTLP_COMPLETION Completion);
VOID RtlpSignalCompletion(PKEVENT Event);       /* gives the reference back; NULL: nothing */
VOID RtlpFormatEnviron(PTP_CALLBACK_ENVIRON Environ, ULONG Flags);
NTSTATUS RtlpEndObject(PTPP_OBJECT Object, BOOLEAN Wait); /* no callback begins any more; STATUS_PENDING: one runs */

#endif
