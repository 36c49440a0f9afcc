/* eventpair.c: event pairs by handle. */
#include "wait.h"

static OBJECT_TYPE NtpEventPairType = {
    .Name = "EventPair",
    .GenericMapping = {STANDARD_RIGHTS_READ | SYNCHRONIZE, STANDARD_RIGHTS_WRITE | SYNCHRONIZE,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE, EVENT_PAIR_ALL_ACCESS},
    .ValidAccessMask = EVENT_PAIR_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
};

OBP_REGISTER_TYPE(NtpEventPairType);

static NTSTATUS NtpInitializeEventPair(PVOID Object, PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    KeInitializeEventPair(Object);
    return STATUS_SUCCESS;
}

NTSTATUS NtCreateEventPair(PHANDLE EventPairHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpCreateHandle(&NtpEventPairType, sizeof(KEVENT_PAIR), ObjectAttributes, DesiredAccess,
                                       NtpInitializeEventPair, NULL, EventPairHandle));
}

NTSTATUS NtOpenEventPair(PHANDLE EventPairHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandle(&NtpEventPairType, ObjectAttributes, DesiredAccess, EventPairHandle));
}

static NTSTATUS NtpSetLow(PKEVENT_PAIR EventPair)
{
    KeSetLowEventPair(EventPair, EVENT_INCREMENT, FALSE);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpSetHigh(PKEVENT_PAIR EventPair)
{
    KeSetHighEventPair(EventPair, EVENT_INCREMENT, FALSE);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpWaitLow(PKEVENT_PAIR EventPair)
{
    return KeWaitForLowEventPair(EventPair, UserMode, FALSE, NULL);
}

static NTSTATUS NtpWaitHigh(PKEVENT_PAIR EventPair)
{
    return KeWaitForHighEventPair(EventPair, UserMode, FALSE, NULL);
}

static NTSTATUS NtpSetLowWaitHigh(PKEVENT_PAIR EventPair)
{
    return KeSetLowWaitHighThread(EventPair, UserMode);
}

static NTSTATUS NtpSetHighWaitLow(PKEVENT_PAIR EventPair)
{
    return KeSetHighWaitLowThread(EventPair, UserMode);
}

static NTSTATUS NtpUseEventPair(HANDLE EventPairHandle, NTSTATUS (*Use)(PKEVENT_PAIR EventPair))
{
    PVOID EventPair;
    NTSTATUS Status =
        ObReferenceObjectByHandle(EventPairHandle, SYNCHRONIZE, &NtpEventPairType, UserMode, &EventPair, NULL);
    if (NT_SUCCESS(Status)) {
        Status = Use(EventPair);
        ObpDereferenceObjectEx(EventPair, 1);
    }
    return Status;
}

NTSTATUS NtSetLowEventPair(HANDLE EventPairHandle)
{
    return NTP_SERVICE(NtpUseEventPair(EventPairHandle, NtpSetLow));
}

NTSTATUS NtSetHighEventPair(HANDLE EventPairHandle)
{
    return NTP_SERVICE(NtpUseEventPair(EventPairHandle, NtpSetHigh));
}

NTSTATUS NtWaitLowEventPair(HANDLE EventPairHandle)
{
    return NTP_SERVICE(NtpUseEventPair(EventPairHandle, NtpWaitLow));
}

NTSTATUS NtWaitHighEventPair(HANDLE EventPairHandle)
{
    return NTP_SERVICE(NtpUseEventPair(EventPairHandle, NtpWaitHigh));
}

NTSTATUS NtSetLowWaitHighEventPair(HANDLE EventPairHandle)
{
    return NTP_SERVICE(NtpUseEventPair(EventPairHandle, NtpSetLowWaitHigh));
}

NTSTATUS NtSetHighWaitLowEventPair(HANDLE EventPairHandle)
{
    return NTP_SERVICE(NtpUseEventPair(EventPairHandle, NtpSetHighWaitLow));
}
