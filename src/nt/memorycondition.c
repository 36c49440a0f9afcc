/*
 * memorycondition.c: the events for scarce and for plentiful memory, \KernelObjects\LowMemoryCondition and
 * HighMemoryCondition. win32/memorystatus.c decides when they are set. A file of its own: a program that is linked with the static
 * library and does not ask for them has no such objects.
 */
#include "ntp.h"

#include "../ob/namespace.h"

static NTSTATUS NtpInitializeMemoryEvent(PVOID Object, PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    KeInitializeEvent(Object, NotificationEvent, FALSE);
    return STATUS_SUCCESS;
}

static UNICODE_STRING NtpMemoryNames[] = {
    RTL_CONSTANT_STRING(u"\\KernelObjects\\LowMemoryCondition"),
    RTL_CONSTANT_STRING(u"\\KernelObjects\\HighMemoryCondition"),
};
static OBP_SYSTEM_OBJECT NtpMemoryConditions[RTL_NUMBER_OF(NtpMemoryNames)];

static VOID NtpRegisterMemoryConditions(VOID)
{
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(NtpMemoryConditions); Index += 1) {
        NtpMemoryConditions[Index].Path = NtpMemoryNames[Index].Buffer;
        NtpMemoryConditions[Index].Blueprint =
            (OBP_BLUEPRINT){*ExEventObjectType, sizeof(KEVENT), NtpInitializeMemoryEvent, NULL};
        ObpRegisterSystemObject(&NtpMemoryConditions[Index]);
    }
}
KI_INITIALIZER(KiInitializeServices, NtpRegisterMemoryConditions);

NTSTATUS NtpOpenMemoryCondition(BOOLEAN High, ACCESS_MASK DesiredAccess, PHANDLE Event)
{
    OBJECT_ATTRIBUTES Attributes;
    InitializeObjectAttributes(&Attributes, &NtpMemoryNames[High], 0, NULL, NULL);
    return NtOpenEvent(Event, DesiredAccess, &Attributes);
}
