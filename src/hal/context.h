/* context.h: the registers of a thread that an interrupt has stopped. */
#ifndef INTERLOCK_HAL_CONTEXT_H
#define INTERLOCK_HAL_CONTEXT_H

#include <interlock/exception.h>

#include "hal.h"

/* In Callbacks.Interrupt: the registers of the interrupted code, restored when the callback returns; else NULL. */
extern __thread PVOID HalInterruptFrame __attribute__((tls_model("initial-exec")));

/* Of a stopped thread, as Context->ContextFlags says. STATUS_NOT_SUPPORTED: not on this machine. */
NTSTATUS HalReadFrame(PVOID Frame, PCONTEXT Context);
/* A new instruction without a new stack pointer begins a function: the stack is aligned for that, below the red zone. */
NTSTATUS HalWriteFrame(PVOID Frame, const CONTEXT *Context);
/* The place that new registers lead to, from those that were shown, with a stack as above. STATUS_NO_YIELD_PERFORMED, a
   success: they are the same, or no place is among them. */
VOID HalNotePlace(const CONTEXT *Context, PHAL_PLACE Place);
NTSTATUS HalQueryPlace(const HAL_PLACE *Shown, const CONTEXT *New, PHAL_PLACE Place);
DECLSPEC_NORETURN VOID HalContinueAt(const HAL_PLACE *Place); /* leaves the frames of the callers behind */

#endif
