/*
 * transfer.c: reading and writing descriptor objects.
 *
 * The object stays referenced while its descriptor is in use. The thread is not in a service meanwhile: it may block
 * indefinitely, and can be terminated. Then its reference is lost.
 */
#include "ntp.h"

#include "../io/watch.h"

static NTSTATUS NtpReferenceDescriptor(HANDLE Handle, PVOID *Object, PLONG Descriptor)
{
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status = ObReferenceObjectByHandle(Handle, 0, &IopDescriptorType, UserMode, Object, NULL);
    if (NT_SUCCESS(Status)) {
        *Descriptor = IopDescriptorOfObject(*Object);
        if (*Descriptor < 0) {
            ObDereferenceObject(*Object);
            Status = STATUS_FILE_CLOSED;
        }
    }
    return Status;
}

static VOID NtpReleaseDescriptor(PVOID Object)
{
    NTP_SERVICE_UNTIL_RETURN();
    ObDereferenceObject(Object);
}

NTSTATUS NtpReadDescriptor(HANDLE Handle, PVOID Buffer, ULONG Length, PULONG Done)
{
    PVOID Object;
    LONG Descriptor;
    NTSTATUS Status = NtpReferenceDescriptor(Handle, &Object, &Descriptor);
    *Done = 0;
    if (NT_SUCCESS(Status)) {
        Status = HalReadDescriptor(Descriptor, Buffer, Length, Done);
        NtpReleaseDescriptor(Object);
    }
    return Status;
}

NTSTATUS NtpWriteDescriptor(HANDLE Handle, const VOID *Buffer, ULONG Length, PULONG Done)
{
    PVOID Object;
    LONG Descriptor;
    NTSTATUS Status = NtpReferenceDescriptor(Handle, &Object, &Descriptor);
    *Done = 0;
    if (NT_SUCCESS(Status)) {
        Status = HalWriteDescriptor(Descriptor, Buffer, Length, Done);
        NtpReleaseDescriptor(Object);
    }
    return Status;
}

NTSTATUS NtpQueryDescriptorKind(HANDLE Handle, HAL_DESCRIPTOR_KIND *Kind)
{
    PVOID Object;
    LONG Descriptor;
    NTSTATUS Status = NtpReferenceDescriptor(Handle, &Object, &Descriptor);
    if (NT_SUCCESS(Status)) {
        *Kind = HalQueryDescriptorKind(Descriptor);
        NtpReleaseDescriptor(Object);
    }
    return Status;
}
