/* console.h: reading and writing descriptors, and signals as console events. */
#ifndef INTERLOCK_HAL_CONSOLE_H
#define INTERLOCK_HAL_CONSOLE_H

#include "hal.h"

typedef enum _HAL_DESCRIPTOR_KIND { HalUnknownFile, HalDiskFile, HalTerminal, HalCharacterFile, HalPipe } HAL_DESCRIPTOR_KIND;

HAL_DESCRIPTOR_KIND HalQueryDescriptorKind(LONG Descriptor);
/* At least one byte, unless Length is 0 or the file ends: 0 bytes, or STATUS_PIPE_BROKEN for a pipe. */
NTSTATUS HalReadDescriptor(LONG Descriptor, PVOID Buffer, ULONG Length, PULONG Done);
NTSTATUS HalWriteDescriptor(LONG Descriptor, const VOID *Buffer, ULONG Length, PULONG Done); /* all of it; no SIGPIPE */

/* Console events, and the signals that they come from: SIGINT, SIGQUIT, SIGHUP, SIGTERM. */
typedef enum _HAL_CONSOLE_EVENT {
    HalConsoleInterrupt,
    HalConsoleBreak,
    HalConsoleClose,
    HalConsoleShutdown,
    HalConsoleEvents
} HAL_CONSOLE_EVENT;

/* From now on the signals of this process are events, or have their previous meaning again. FALSE: the host refuses. */
BOOLEAN HalWatchConsole(BOOLEAN Watch);
HAL_CONSOLE_EVENT HalAwaitConsoleEvent(VOID);      /* by one thread */
VOID HalTakeDefaultAction(HAL_CONSOLE_EVENT Event); /* what the signal would have done; often ends the process */
/* To a process group, 0: that of the caller. FALSE: there is no such group. */
BOOLEAN HalSendConsoleEvent(ULONG Group, HAL_CONSOLE_EVENT Event);

#endif
