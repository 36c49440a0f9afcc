/*
 * memorycondition.c: the events that say how much memory there is, \KernelObjects\LowMemoryCondition and
 * HighMemoryCondition. win32/memorystatus.c decides when they are set.
 */
#include "ntp.h"

#include "../ob/namespace.h"

static PKEVENT volatile NtpMemoryEvents[2]; /* NULL: no name was ever looked up */

static NTSTATUS NtpInitializeMemoryEvent(PVOID Object, PVOID Place)
{
    KeInitializeEvent(Object, NotificationEvent, FALSE);
    /* release: pairs with the acquire in NtpShowMemoryCondition */
    __atomic_store_n((PKEVENT volatile *)Place, Object, __ATOMIC_RELEASE);
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
            (OBP_BLUEPRINT){*ExEventObjectType, sizeof(KEVENT), NtpInitializeMemoryEvent, (PVOID)&NtpMemoryEvents[Index]};
        ObpRegisterSystemObject(&NtpMemoryConditions[Index]);
    }
}
KI_INITIALIZER(KiInitializeServices, NtpRegisterMemoryConditions);

VOID NtpShowMemoryCondition(BOOLEAN High, BOOLEAN Holds)
{
    PKEVENT Event = __atomic_load_n(&NtpMemoryEvents[High], __ATOMIC_ACQUIRE);
    if (Event != NULL && Holds) {
        KeSetEvent(Event, IO_NO_INCREMENT, FALSE);
    } else if (Event != NULL) {
        KeClearEvent(Event);
    }
}
