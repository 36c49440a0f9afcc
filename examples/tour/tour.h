/* tour.h: starting and joining threads, as a driver does. */
#ifndef INTERLOCK_TOUR_H
#define INTERLOCK_TOUR_H

#include <ntddk.h>

#include <stdio.h>
#include <stdlib.h>

#include "expect.h"

static inline PVOID start_thread(PKSTART_ROUTINE routine, PVOID context)
{
    HANDLE handle;
    PVOID thread;

    if (!NT_SUCCESS(PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, routine, context)) ||
        !NT_SUCCESS(ObReferenceObjectByHandle(handle, SYNCHRONIZE, *PsThreadType, KernelMode, &thread, NULL))) {
        fprintf(stderr, "cannot start a thread\n");
        exit(1);
    }
    ZwClose(handle);
    return thread;
}

static inline void join_thread(PVOID thread)
{
    KeWaitForSingleObject(thread, Executive, KernelMode, FALSE, NULL);
    ObDereferenceObject(thread);
}

static inline NTSTATUS wait_for(PVOID object)
{
    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, NULL);
}

static inline void sleep_for(LONGLONG milliseconds)
{
    LARGE_INTEGER interval = {.QuadPart = -10000 * milliseconds};

    KeDelayExecutionThread(KernelMode, FALSE, &interval);
}

#endif
