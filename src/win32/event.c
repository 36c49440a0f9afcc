/* event.c: events. */
#include <interlock/win32/event.h>

#include "base.h"

HANDLE CreateEventExW(LPSECURITY_ATTRIBUTES lpEventAttributes, LPCWSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess)
{
    BASE_OBJECT_ATTRIBUTES Object;
    HANDLE Event = NULL;
    NTSTATUS Status = STATUS_INVALID_PARAMETER;
    if ((dwFlags & ~(CREATE_EVENT_MANUAL_RESET | CREATE_EVENT_INITIAL_SET)) == 0) {
        Status = BaseFormatObjectAttributes(&Object, lpEventAttributes, lpName);
    }
    if (NT_SUCCESS(Status)) {
        Status = NtCreateEvent(&Event, dwDesiredAccess, &Object.Attributes,
                               dwFlags & CREATE_EVENT_MANUAL_RESET ? NotificationEvent : SynchronizationEvent,
                               (dwFlags & CREATE_EVENT_INITIAL_SET) != 0);
    }
    return BaseCreatedHandle(Status, Event);
}

HANDLE CreateEventExA(LPSECURITY_ATTRIBUTES lpEventAttributes, LPCSTR lpName, DWORD dwFlags, DWORD dwDesiredAccess)
{
    BASE_WIDE_NAME Buffer;
    LPCWSTR Wide;
    NTSTATUS Status = BaseWidenName(lpName, Buffer, &Wide);
    return NT_SUCCESS(Status) ? CreateEventExW(lpEventAttributes, Wide, dwFlags, dwDesiredAccess)
                              : BaseCreatedHandle(Status, NULL);
}

static DWORD BaseEventFlags(BOOL ManualReset, BOOL InitialState)
{
    return (ManualReset ? CREATE_EVENT_MANUAL_RESET : 0) | (InitialState ? CREATE_EVENT_INITIAL_SET : 0);
}

HANDLE CreateEventW(LPSECURITY_ATTRIBUTES lpEventAttributes, BOOL bManualReset, BOOL bInitialState, LPCWSTR lpName)
{
    return CreateEventExW(lpEventAttributes, lpName, BaseEventFlags(bManualReset, bInitialState), EVENT_ALL_ACCESS);
}

HANDLE CreateEventA(LPSECURITY_ATTRIBUTES lpEventAttributes, BOOL bManualReset, BOOL bInitialState, LPCSTR lpName)
{
    return CreateEventExA(lpEventAttributes, lpName, BaseEventFlags(bManualReset, bInitialState), EVENT_ALL_ACCESS);
}

HANDLE OpenEventW(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCWSTR lpName)
{
    BASE_OBJECT_ATTRIBUTES Object;
    HANDLE Event = NULL;
    NTSTATUS Status = BaseFormatOpenAttributes(&Object, bInheritHandle, lpName);
    if (NT_SUCCESS(Status)) {
        Status = NtOpenEvent(&Event, dwDesiredAccess, &Object.Attributes);
    }
    return BaseOpenedHandle(Status, Event);
}

HANDLE OpenEventA(DWORD dwDesiredAccess, BOOL bInheritHandle, LPCSTR lpName)
{
    BASE_WIDE_NAME Buffer;
    LPCWSTR Wide;
    NTSTATUS Status = BaseWidenName(lpName, Buffer, &Wide);
    return NT_SUCCESS(Status) ? OpenEventW(dwDesiredAccess, bInheritHandle, Wide) : BaseOpenedHandle(Status, NULL);
}

BOOL SetEvent(HANDLE hEvent)
{
    return BaseBoolStatus(NtSetEvent(hEvent, NULL));
}

BOOL ResetEvent(HANDLE hEvent)
{
    return BaseBoolStatus(NtClearEvent(hEvent));
}

BOOL PulseEvent(HANDLE hEvent)
{
    return BaseBoolStatus(NtPulseEvent(hEvent, NULL));
}
