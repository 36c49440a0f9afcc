/* waitobjects.h: the objects of a wait by several handles. A waiter holds a reference on each object while it waits. */
#ifndef INTERLOCK_NT_WAITOBJECTS_H
#define INTERLOCK_NT_WAITOBJECTS_H

#include "ntp.h"

static inline VOID NtpDereferenceObjects(PVOID Objects[], ULONG Count)
{
    for (ULONG Index = 0; Index < Count; Index += 1) {
        ObpDereferenceObject(Objects[Index]);
    }
}

/* All or none. A pseudo handle cannot be waited for together with others. */
static inline NTSTATUS NtpReferenceObjects(HANDLE Handles[], ULONG Count, KPROCESSOR_MODE Mode, PVOID Objects[])
{
    ACCESS_MASK RequiredAccess = Mode != KernelMode ? SYNCHRONIZE : 0;
    for (ULONG Index = 0; Index < Count; Index += 1) {
        Objects[Index] = ObpTryReferenceByHandle(Handles[Index], RequiredAccess, NULL);
        if (__builtin_expect(Objects[Index] != NULL, TRUE)) {
            continue;
        }
        HANDLE Handle = Handles[Index];
        NTSTATUS Status = Handle == NtCurrentProcess() || Handle == NtCurrentThread()
                              ? STATUS_INVALID_HANDLE
                              : ObpReferenceObjectByHandle(Handle, SYNCHRONIZE, NULL, Mode, &Objects[Index], NULL);
        if (!NT_SUCCESS(Status)) {
            NtpDereferenceObjects(Objects, Index);
            return Status;
        }
    }
    return STATUS_SUCCESS;
}

#endif
