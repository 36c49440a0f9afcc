/* fiber.h: stacks that a host thread can switch to. Theory in fiber.c. */
#ifndef INTERLOCK_HAL_FIBER_H
#define INTERLOCK_HAL_FIBER_H

#include "hal.h"

typedef struct _HAL_FIBER {
    PVOID StackPointer;              /* where the registers are, while no thread runs the fiber */
    PVOID Host;                      /* the host's own context instead, where it is needed */
    PVOID Stack;                     /* the lowest usable address; NULL: it is a host thread's own stack */
    SIZE_T StackSize;
    BOOLEAN SwitchFloat;             /* the floating-point control word is the fiber's own */
    ULONG64 FloatControl;
    BOOLEAN Ends;                    /* it will not run again: set before the last switch from it */
    PVOID AddressSanitizer;          /* its fake stack, and */
    const VOID *StackBottom;         /* what it considers the stack of the fiber */
    SIZE_T StackRoom;
    PVOID ThreadSanitizer;           /* its record of the fiber */
    DECLSPEC_NORETURN VOID (*Start)(PVOID Context);
    PVOID StartContext;
} HAL_FIBER, *PHAL_FIBER;

/* The running thread as a fiber. */
VOID HalInitializeThreadFiber(PHAL_FIBER Fiber, BOOLEAN SwitchFloat);
/* A new stack; Start runs on it after the first switch, and begins with HalFinishSwitch. */
NTSTATUS HalCreateFiber(PHAL_FIBER Fiber, SIZE_T StackSize, BOOLEAN SwitchFloat,
                        DECLSPEC_NORETURN VOID (*Start)(PVOID Context), PVOID Context);
VOID HalDeleteFiber(PHAL_FIBER Fiber); /* no thread runs it */
/* Returns when a thread switches to From again, perhaps another one. The caller calls HalFinishSwitch then. */
VOID HalSwitchFiber(PHAL_FIBER From, PHAL_FIBER To);
VOID HalFinishSwitch(PHAL_FIBER Current, PHAL_FIBER Previous);
BOOLEAN HalIsOnStack(const HAL_FIBER *Fiber); /* does the caller run on its stack? FALSE for a host thread's own */

#endif
