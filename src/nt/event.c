/* event.c: events and event pairs by handle. */
#include <interlock/io.h>

#include "ntp.h"

#include "../ob/borrow.h"
#include "../ob/share.h"

static VOID NtpDescribeEvent(PVOID Object, POBP_NEW New)
{
    PKEVENT Event = Object;
    BOOLEAN Notification = KI_TYPE(KiReadHeader(&Event->Header)) == EventNotificationObject;
    New->World.Type = Notification ? WoNotificationEvent : WoSynchronizationEvent;
    New->World.State = KeReadStateEvent(Event);
}

static const OBP_SHARING NtpEventSharing = {
    .Kinds = OBP_KIND(WoNotificationEvent) | OBP_KIND(WoSynchronizationEvent),
    .BodySize = sizeof(KEVENT),
    .Describe = NtpDescribeEvent,
};

static OBJECT_TYPE NtpEventType = {
    .Name = "Event",
    .GenericMapping = {STANDARD_RIGHTS_READ | EVENT_QUERY_STATE, STANDARD_RIGHTS_WRITE | EVENT_MODIFY_STATE,
                       STANDARD_RIGHTS_EXECUTE | SYNCHRONIZE, EVENT_ALL_ACCESS},
    .ValidAccessMask = EVENT_ALL_ACCESS,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = FIELD_OFFSET(KEVENT, Header),
    .Sharing = &NtpEventSharing,
};

OBP_REGISTER_TYPE(NtpEventType);

static POBJECT_TYPE NtpEventTypePointer = &NtpEventType;
POBJECT_TYPE *ExEventObjectType = &NtpEventTypePointer;

typedef struct _NTP_EVENT_SETTING {
    EVENT_TYPE Type;
    BOOLEAN State;
} NTP_EVENT_SETTING;

static NTSTATUS NtpInitializeEvent(PVOID Object, PVOID Context)
{
    NTP_EVENT_SETTING *Setting = Context;
    KeInitializeEvent(Object, Setting->Type, Setting->State);
    return STATUS_SUCCESS;
}

static NTSTATUS NtpCreateEvent(KPROCESSOR_MODE Mode, PHANDLE EventHandle, ACCESS_MASK DesiredAccess,
                               POBJECT_ATTRIBUTES ObjectAttributes, EVENT_TYPE EventType, BOOLEAN InitialState)
{
    NTP_EVENT_SETTING Setting = {EventType, InitialState != FALSE};
    OBP_BLUEPRINT Blueprint = {&NtpEventType, sizeof(KEVENT), NtpInitializeEvent, &Setting};
    if (!NtpClearHandle(EventHandle)) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (EventType != NotificationEvent && EventType != SynchronizationEvent) {
        return STATUS_INVALID_PARAMETER;
    }
    return ObpCreateHandleAs(Mode, &Blueprint, ObjectAttributes, DesiredAccess, EventHandle);
}

NTSTATUS NtCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                       EVENT_TYPE EventType, BOOLEAN InitialState)
{
    return NTP_SERVICE(NtpCreateEvent(UserMode, EventHandle, DesiredAccess, ObjectAttributes, EventType, InitialState));
}

NTSTATUS ZwCreateEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                       EVENT_TYPE EventType, BOOLEAN InitialState)
{
    return NTP_SERVICE(
        NtpCreateEvent(KernelMode, EventHandle, DesiredAccess, ObjectAttributes, EventType, InitialState));
}

/* The handle keeps the event alive; the caller gets no reference. */
static PKEVENT NtpCreateDriverEvent(PUNICODE_STRING EventName, PHANDLE EventHandle, EVENT_TYPE EventType)
{
    OBJECT_ATTRIBUTES Attributes;
    PVOID Event;
    InitializeObjectAttributes(&Attributes, EventName, OBJ_OPENIF | OBJ_KERNEL_HANDLE, NULL, NULL);
    if (!NT_SUCCESS(ZwCreateEvent(EventHandle, EVENT_ALL_ACCESS, &Attributes, EventType, TRUE)) ||
        !NT_SUCCESS(ObReferenceObjectByHandle(*EventHandle, 0, &NtpEventType, KernelMode, &Event, NULL))) {
        return NULL;
    }
    ObpDereferenceObject(Event);
    return Event;
}

PKEVENT IoCreateNotificationEvent(PUNICODE_STRING EventName, PHANDLE EventHandle)
{
    return NtpCreateDriverEvent(EventName, EventHandle, NotificationEvent);
}

PKEVENT IoCreateSynchronizationEvent(PUNICODE_STRING EventName, PHANDLE EventHandle)
{
    return NtpCreateDriverEvent(EventName, EventHandle, SynchronizationEvent);
}

NTSTATUS NtOpenEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandleAs(UserMode, &NtpEventType, ObjectAttributes, DesiredAccess, EventHandle));
}

NTSTATUS ZwOpenEvent(PHANDLE EventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandleAs(KernelMode, &NtpEventType, ObjectAttributes, DesiredAccess, EventHandle));
}

static LONG NtpSet(PKEVENT Event)
{
    return KeSetEvent(Event, EVENT_INCREMENT, FALSE);
}

static LONG NtpPulse(PKEVENT Event)
{
    return KePulseEvent(Event, EVENT_INCREMENT, FALSE);
}

/* Set, reset, clear and pulse. */
FORCEINLINE NTSTATUS NtpChangeEvent(KPROCESSOR_MODE Mode, HANDLE EventHandle, LONG (*Change)(PKEVENT Event),
                                    PLONG PreviousState)
{
    PVOID Event;
    LONG Previous;
    NTSTATUS Status = ObpReferenceByHandle(EventHandle, EVENT_MODIFY_STATE, &NtpEventType, Mode, &Event);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    Previous = Change(Event);
    ObpDereferenceObject(Event);
    if (Previous == KI_OUTSIDE_LOST) {
        return STATUS_FILE_CORRUPT_ERROR;
    }
    if (PreviousState != NULL) {
        *PreviousState = Previous;
    }
    return STATUS_SUCCESS;
}

FORCEINLINE BOOLEAN NtpTrySetBorrowedEvent(PKTHREAD Thread, ACCESS_MASK RequiredAccess, HANDLE EventHandle,
                                           PLONG Previous)
{
    PVOID Event = ObpTryBorrowByHandle(Thread, EventHandle, RequiredAccess, &NtpEventType);
    if (Event == NULL) {
        return FALSE;
    }
    BOOLEAN Set = KiTrySetEventAtOnce(Event, Previous) || KiTrySetOutsideAtOnce(Event, Previous);
    ObpEndBorrowing(Thread);
    return Set;
}

FORCEINLINE NTSTATUS NtpSetEvent(KPROCESSOR_MODE Mode, HANDLE EventHandle, PLONG PreviousState)
{
    PKTHREAD Thread = KiCurrentThread();
    LONG Previous;
    if (!NtpTrySetBorrowedEvent(Thread, Mode != KernelMode ? EVENT_MODIFY_STATE : 0, EventHandle, &Previous)) {
        return NTP_SERVICE(NtpChangeEvent(Mode, EventHandle, NtpSet, PreviousState));
    }
    if (PreviousState != NULL) {
        *PreviousState = Previous;
    }
    return STATUS_SUCCESS;
}

NTSTATUS NtSetEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return NtpSetEvent(UserMode, EventHandle, PreviousState);
}

NTSTATUS ZwSetEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return NtpSetEvent(KernelMode, EventHandle, PreviousState);
}

NTSTATUS NtResetEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return NTP_SERVICE(NtpChangeEvent(UserMode, EventHandle, KeResetEvent, PreviousState));
}

NTSTATUS ZwResetEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return NTP_SERVICE(NtpChangeEvent(KernelMode, EventHandle, KeResetEvent, PreviousState));
}

NTSTATUS NtClearEvent(HANDLE EventHandle)
{
    return NTP_SERVICE(NtpChangeEvent(UserMode, EventHandle, KeResetEvent, NULL));
}

NTSTATUS ZwClearEvent(HANDLE EventHandle)
{
    return NTP_SERVICE(NtpChangeEvent(KernelMode, EventHandle, KeResetEvent, NULL));
}

NTSTATUS NtPulseEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return NTP_SERVICE(NtpChangeEvent(UserMode, EventHandle, NtpPulse, PreviousState));
}

NTSTATUS ZwPulseEvent(HANDLE EventHandle, PLONG PreviousState)
{
    return NTP_SERVICE(NtpChangeEvent(KernelMode, EventHandle, NtpPulse, PreviousState));
}

static EVENT_TYPE NtpEventTypeOf(PKEVENT Event)
{
    return KI_TYPE(KiReadHeader(&Event->Header)) == EventNotificationObject ? NotificationEvent : SynchronizationEvent;
}

NTSTATUS NtSetEventBoostPriority(HANDLE EventHandle)
{
    PVOID Event;
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status =
        ObReferenceObjectByHandle(EventHandle, EVENT_MODIFY_STATE, &NtpEventType, UserMode, &Event, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    PKI_OUTSIDE Outside = KiOutsideOf(&((PKEVENT)Event)->Header);
    LONG Previous;
    if (NtpEventTypeOf(Event) != SynchronizationEvent) {
        Status = STATUS_OBJECT_TYPE_MISMATCH;
    } else if (Outside != NULL) {
        Status = KiOutsideOperations->ChangeEvent(Outside, KiOutsideSet, &Previous);
    } else {
        KeSetEventBoostPriority(Event, NULL);
    }
    ObpDereferenceObjectEx(Event, 1);
    return Status;
}

NTSTATUS NtQueryEvent(HANDLE EventHandle, EVENT_INFORMATION_CLASS EventInformationClass, PVOID EventInformation,
                      ULONG EventInformationLength, PULONG ReturnLength)
{
    PEVENT_BASIC_INFORMATION Information = EventInformation;
    PVOID Event;
    NTP_SERVICE_UNTIL_RETURN();
    NTSTATUS Status = NtpCheckQuery(EventInformationClass == EventBasicInformation, EventInformation,
                                    EventInformationLength, sizeof(*Information));
    if (NT_SUCCESS(Status)) {
        Status = ObReferenceObjectByHandle(EventHandle, EVENT_QUERY_STATE, &NtpEventType, UserMode, &Event, NULL);
    }
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    PKI_OUTSIDE Outside = KiOutsideOf(&((PKEVENT)Event)->Header);
    Information->EventType = NtpEventTypeOf(Event);
    if (Outside == NULL) {
        Information->EventState = KeReadStateEvent(Event);
    } else {
        KI_OUTSIDE_STATE State;
        Status = KiOutsideOperations->QueryState(Outside, KiCurrentThread(), &State);
        Information->EventState = State.State;
    }
    ObpDereferenceObjectEx(Event, 1);
    NtpReturnLength(ReturnLength, sizeof(*Information));
    return Status;
}

/* Event pairs. */

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

typedef enum _NTP_PAIR_USE {
    NtpSetLow,
    NtpSetHigh,
    NtpWaitLow,
    NtpWaitHigh,
    NtpSetLowWaitHigh,
    NtpSetHighWaitLow
} NTP_PAIR_USE;

static NTSTATUS NtpUseEventPair(HANDLE EventPairHandle, NTP_PAIR_USE Use)
{
    PVOID EventPair;
    NTSTATUS Status =
        ObReferenceObjectByHandle(EventPairHandle, SYNCHRONIZE, &NtpEventPairType, UserMode, &EventPair, NULL);
    if (!NT_SUCCESS(Status)) {
        return Status;
    }
    switch (Use) {
    case NtpSetLow:
        KeSetLowEventPair(EventPair, EVENT_INCREMENT, FALSE);
        break;
    case NtpSetHigh:
        KeSetHighEventPair(EventPair, EVENT_INCREMENT, FALSE);
        break;
    case NtpWaitLow:
        Status = KeWaitForLowEventPair(EventPair, UserMode, FALSE, NULL);
        break;
    case NtpWaitHigh:
        Status = KeWaitForHighEventPair(EventPair, UserMode, FALSE, NULL);
        break;
    case NtpSetLowWaitHigh:
        Status = KeSetLowWaitHighThread(EventPair, UserMode);
        break;
    case NtpSetHighWaitLow:
        Status = KeSetHighWaitLowThread(EventPair, UserMode);
        break;
    }
    ObpDereferenceObjectEx(EventPair, 1);
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
