/*
 * memorycondition.c: the events that say how much memory there is, \KernelObjects\LowMemoryCondition and
 * HighMemoryCondition. win32/memorystatus.c decides when they are set.
 */
#include "ntp.h"

#include <interlock/rtl.h>

#include "../ob/namespace.h"

static NTSTATUS NtpInitializeMemoryEvent(PVOID Object, PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    KeInitializeEvent(Object, NotificationEvent, FALSE);
    return STATUS_SUCCESS;
}

static OBP_SYSTEM_OBJECT NtpMemoryConditions[] = {
    {.Path = u"\\KernelObjects\\LowMemoryCondition"},
    {.Path = u"\\KernelObjects\\HighMemoryCondition"},
};

static VOID NtpRegisterMemoryConditions(VOID)
{
    for (ULONG Index = 0; Index < RTL_NUMBER_OF(NtpMemoryConditions); Index += 1) {
        NtpMemoryConditions[Index].Blueprint =
            (OBP_BLUEPRINT){*ExEventObjectType, sizeof(KEVENT), NtpInitializeMemoryEvent, NULL};
        ObpRegisterSystemObject(&NtpMemoryConditions[Index]);
    }
}
KI_INITIALIZER(KiInitializeServices, NtpRegisterMemoryConditions);

NTSTATUS NtpOpenMemoryCondition(BOOLEAN High, ACCESS_MASK DesiredAccess, PHANDLE Event)
{
    UNICODE_STRING Name;
    OBJECT_ATTRIBUTES Attributes;
    RtlInitUnicodeString(&Name, NtpMemoryConditions[High].Path);
    InitializeObjectAttributes(&Attributes, &Name, 0, NULL, NULL);
    return NtOpenEvent(Event, DesiredAccess, &Attributes);
}
