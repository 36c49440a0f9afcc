/* keyedevent.c: keyed events by handle. */
#include "ntp.h"

#include "../ex/exp.h"
#include "../ke/outside.h"
#include "../ob/share.h"

/* Global: the object stands for the keyed event that needs no handle. */
typedef struct _NTP_KEYED_EVENT {
    EX_KEYED_EVENT KeyedEvent;
    BOOLEAN Global;
} NTP_KEYED_EVENT, *PNTP_KEYED_EVENT;

static VOID NtpDescribeKeyedEvent(PVOID Object, POBP_NEW New)
{
    UNREFERENCED_PARAMETER(Object);
    New->World.Type = WoKeyedEvent;
}

static VOID NtpRepresentKeyedEvent(PVOID Proxy, POBP_SHARE Share)
{
    UNREFERENCED_PARAMETER(Share);
    ExpInitializeKeyedEvent(&((PNTP_KEYED_EVENT)Proxy)->KeyedEvent);
}

static const OBP_SHARING NtpKeyedEventSharing = {
    .Kinds = OBP_KIND(WoKeyedEvent),
    .BodySize = sizeof(NTP_KEYED_EVENT),
    .Describe = NtpDescribeKeyedEvent,
    .Represent = NtpRepresentKeyedEvent,
};

static OBJECT_TYPE NtpKeyedEventType = {
    .Name = "KeyedEvent",
    .GenericMapping = {STANDARD_RIGHTS_READ | KEYEDEVENT_WAIT, STANDARD_RIGHTS_WRITE | KEYEDEVENT_WAKE,
                       STANDARD_RIGHTS_EXECUTE, KEYEDEVENT_ALL_ACCESS},
    .ValidAccessMask = KEYEDEVENT_ALL_ACCESS | SYNCHRONIZE,
    .InvalidAttributes = OBJ_OPENLINK,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
    .Sharing = &NtpKeyedEventSharing,
};

OBP_REGISTER_TYPE(NtpKeyedEventType);

static NTSTATUS NtpInitializeKeyedEvent(PVOID Object, PVOID Context)
{
    PNTP_KEYED_EVENT KeyedEvent = Object;
    ExpInitializeKeyedEvent(&KeyedEvent->KeyedEvent);
    KeyedEvent->Global = Context != NULL;
    return STATUS_SUCCESS;
}

static OBP_SYSTEM_OBJECT NtpGlobalKeyedEvent = {
    .Path = u"\\KernelObjects\\CritSecOutOfMemoryEvent",
    .Blueprint = {&NtpKeyedEventType, sizeof(NTP_KEYED_EVENT), NtpInitializeKeyedEvent, &NtpGlobalKeyedEvent},
};

static VOID NtpRegisterGlobalKeyedEvent(VOID)
{
    ObpRegisterSystemObject(&NtpGlobalKeyedEvent);
}
KI_INITIALIZER(KiInitializeServices, NtpRegisterGlobalKeyedEvent);

NTSTATUS NtCreateKeyedEvent(PHANDLE KeyedEventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes,
                            ULONG Flags)
{
    if (!NtpClearHandle(KeyedEventHandle)) {
        return STATUS_ACCESS_VIOLATION;
    }
    if (Flags != 0) {
        return STATUS_INVALID_PARAMETER_4;
    }
    return NTP_SERVICE(ObpCreateHandle(&NtpKeyedEventType, sizeof(NTP_KEYED_EVENT), ObjectAttributes, DesiredAccess,
                                       NtpInitializeKeyedEvent, NULL, KeyedEventHandle));
}

NTSTATUS NtOpenKeyedEvent(PHANDLE KeyedEventHandle, ACCESS_MASK DesiredAccess, POBJECT_ATTRIBUTES ObjectAttributes)
{
    return NTP_SERVICE(ObpOpenHandle(&NtpKeyedEventType, ObjectAttributes, DesiredAccess, KeyedEventHandle));
}

typedef NTSTATUS NTP_MEET(PEX_KEYED_EVENT KeyedEvent, PVOID Key, KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                          PLARGE_INTEGER Timeout);

static NTSTATUS NtpMeetAtKey(NTP_MEET *Meet, HANDLE KeyedEventHandle, ACCESS_MASK Access, PVOID KeyValue,
                             BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    PVOID Object;
    PNTP_KEYED_EVENT KeyedEvent;
    NTSTATUS Status;
    if ((ULONG_PTR)KeyValue & 1) {
        return STATUS_INVALID_PARAMETER_1;
    }
    if (KeyedEventHandle == NULL) {
        return Meet(NULL, KeyValue, UserMode, Alertable, Timeout);
    }
    Status = ObReferenceObjectByHandle(KeyedEventHandle, Access, &NtpKeyedEventType, UserMode, &Object, NULL);
    if (NT_SUCCESS(Status)) {
        POBP_SHARE Share = ObpShareOf(Object);
        KeyedEvent = Object;
        Status = Share != NULL ? KiMeetOutside(&Share->Outside, (ULONG_PTR)KeyValue, Access == KEYEDEVENT_WAKE, Alertable,
                                               Timeout)
                               : Meet(KeyedEvent->Global ? NULL : &KeyedEvent->KeyedEvent, KeyValue, UserMode, Alertable,
                                      Timeout);
        ObpDereferenceObjectEx(Object, 1);
    }
    return Status;
}

NTSTATUS NtWaitForKeyedEvent(HANDLE KeyedEventHandle, PVOID KeyValue, BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    return NtpFinishWait(NTP_SERVICE(
        NtpMeetAtKey(ExpWaitForKeyedEvent, KeyedEventHandle, KEYEDEVENT_WAIT, KeyValue, Alertable, Timeout)));
}

NTSTATUS NtReleaseKeyedEvent(HANDLE KeyedEventHandle, PVOID KeyValue, BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    return NtpFinishWait(NTP_SERVICE(
        NtpMeetAtKey(ExpReleaseKeyedEvent, KeyedEventHandle, KEYEDEVENT_WAKE, KeyValue, Alertable, Timeout)));
}
