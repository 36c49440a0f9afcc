/* The test of toaster.c, which is a driver's source as it is: sends requests, cancels them in between, removes the device. */
#include "toaster.h"

#include <interlock/io.h>
#include <interlock/ke.h>
#include <interlock/verifier.h>

#include <stdio.h>
#include <stdlib.h>

#define ROUNDS 200
#define WRITES 3

#define CHECK(Condition)                                                                                               \
    do {                                                                                                               \
        if (!(Condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s\n", __LINE__, #Condition);                                                    \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static PIO_TEST_REQUEST Sent(PIO_TEST_REQUEST Request)
{
    CHECK(Request != NULL);
    return Request;
}

static VOID Cancel(PVOID Context)
{
    IoTestCancel((PIO_TEST_REQUEST)Context);
}

static NTSTATUS SendPnp(PDEVICE_OBJECT Device, UCHAR MinorFunction)
{
    KEVENT Done;
    IO_STATUS_BLOCK Iosb;
    KeInitializeEvent(&Done, NotificationEvent, FALSE);
    PIRP Irp = IoBuildSynchronousFsdRequest(IRP_MJ_PNP, Device, NULL, 0, NULL, &Done, &Iosb);
    CHECK(Irp != NULL);
    Irp->IoStatus.Status = STATUS_NOT_SUPPORTED;
    IoGetNextIrpStackLocation(Irp)->MinorFunction = MinorFunction;
    NTSTATUS Status = IoCallDriver(Device, Irp);
    if (Status == STATUS_PENDING) {
        KeWaitForSingleObject(&Done, Executive, KernelMode, FALSE, NULL);
        Status = Iosb.Status;
    }
    return Status;
}

static BOOLEAN EndedProperly(NTSTATUS Status)
{
    return Status == STATUS_SUCCESS || Status == STATUS_CANCELLED;
}

/* A read and three writes; another thread cancels one of the writes while this one cancels the read. Returns the number of
   cancelled writes. */
static ULONG Race(PFILE_OBJECT File, ULONG Which)
{
    PIO_TEST_REQUEST Writes[WRITES];
    CHAR Text[] = "toast", Buffer[16];
    ULONG Cancelled = 0;
    HANDLE Thread;
    PIO_TEST_REQUEST Read = Sent(IoTestRead(File, Buffer, sizeof(Buffer), 0));
    for (ULONG i = 0; i < WRITES; i++) {
        Writes[i] = Sent(IoTestWrite(File, Text, sizeof(Text), 0));
    }
    CHECK(NT_SUCCESS(PsCreateSystemThread(&Thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, Cancel, Writes[Which])));
    IoTestCancel(Read);
    ZwWaitForSingleObject(Thread, FALSE, NULL);
    ZwClose(Thread);
    for (ULONG i = 0; i < WRITES; i++) {
        NTSTATUS Status = IoTestFinish(Writes[i], NULL);
        CHECK(EndedProperly(Status));
        Cancelled += Status == STATUS_CANCELLED;
    }
    CHECK(EndedProperly(IoTestFinish(Read, NULL)));
    return Cancelled;
}

int main(void)
{
    UNICODE_STRING Link = RTL_CONSTANT_STRING(L"\\??\\Toaster");
    PDRIVER_OBJECT Driver;
    PFILE_OBJECT File;
    IO_STATUS_BLOCK Iosb;
    CHAR Text[] = "toast", Buffer[16];
    ULONG Cancelled = 0, Count = 0;

    CHECK(IoTestLoadDriver(DriverEntry, "Toaster", &Driver) == STATUS_SUCCESS);
    CHECK(IoTestOpenByName(&Link, &File) == STATUS_SUCCESS);
    VF_POOL_MARK Mark = VfMarkPool(0);
    CHECK(SendPnp(Driver->DeviceObject, IRP_MN_START_DEVICE) == STATUS_SUCCESS);
    CHECK(SendPnp(Driver->DeviceObject, IRP_MN_QUERY_CAPABILITIES) == STATUS_NOT_SUPPORTED);

    PIO_TEST_REQUEST Read = Sent(IoTestRead(File, Buffer, sizeof(Buffer), 0));
    PIO_TEST_REQUEST Write = Sent(IoTestWrite(File, Text, sizeof(Text), 0));
    CHECK(IoTestFinish(Write, &Iosb) == STATUS_SUCCESS && Iosb.Information == sizeof(Text));
    CHECK(IoTestFinish(Read, &Iosb) == STATUS_SUCCESS && Iosb.Information == sizeof(Text));
    CHECK(RtlCompareMemory(Buffer, Text, sizeof(Text)) == sizeof(Text));

    for (ULONG i = 0; i < ROUNDS; i++) {
        Cancelled += Race(File, i % WRITES);
    }
    CHECK(IoTestFinish(Sent(IoTestControl(File, IOCTL_TOASTER_COUNT, NULL, 0, &Count, sizeof(Count))), NULL) == STATUS_SUCCESS);
    CHECK(Count == WRITES * ROUNDS + 1 - Cancelled);
    CHECK(IoTestFinish(Sent(IoTestControl(File, IOCTL_TOASTER_COUNT, NULL, 0, NULL, 0)), NULL) == STATUS_BUFFER_TOO_SMALL);

    Read = Sent(IoTestRead(File, Buffer, sizeof(Buffer), 0));
    CHECK(!IoTestIsDone(Read));
    IoTestClose(File); /* the cleanup cancels it */
    CHECK(IoTestFinish(Read, NULL) == STATUS_CANCELLED);
    CHECK(SendPnp(Driver->DeviceObject, IRP_MN_REMOVE_DEVICE) == STATUS_SUCCESS);
    CHECK(SendPnp(Driver->DeviceObject, IRP_MN_QUERY_REMOVE_DEVICE) == STATUS_DELETE_PENDING);
    CHECK(IoTestUnloadDriver(Driver) == STATUS_SUCCESS);
    CHECK(VfCountPoolLeaks(&Mark) == 0);
    CHECK(KdCheckReleased() == 0);
    return 0;
}
