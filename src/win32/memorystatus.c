/*
 * memorystatus.c: physical memory, and notifications about it.
 *
 * Notifications are two events in \KernelObjects, as on Windows. A thread of the library's own sets and resets them:
 * every second, and when the host reports that threads stall for memory. Each query does the same first, so its result
 * is never older than the call. The levels are those of Windows: memory is low below 32 MB for each 4 GB, at most 64
 * MB, and high above three times that. It is also low while threads have stalled for a tenth of the last ten seconds.
 */
#include <interlock/win32/base.h>

#include "../hal/machine.h"
#include "../ke/ki.h"
#include "../ke/ownthread.h"
#include "../nt/ntp.h"
#include "base.h"

#define BASE_GIGABYTE (1ULL << 30)
#define BASE_MEGABYTE (1ULL << 20)
#define BASE_LOW_PER_4GB (32 * BASE_MEGABYTE)
#define BASE_MOST_LOW (64 * BASE_MEGABYTE)
#define BASE_LOW_PRESSURE 10 /* percent */
#define BASE_CHECK_INTERVAL 10000000ULL
#define BASE_USER_SPACE 0x7FFFFFFE0000ULL

BOOL GlobalMemoryStatusEx(LPMEMORYSTATUSEX lpBuffer)
{
    HAL_MEMORY_STATUS Status;
    if (lpBuffer->dwLength != sizeof(*lpBuffer)) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    HalQueryMemoryStatus(&Status);
    lpBuffer->ullTotalPhys = Status.TotalPhysical;
    lpBuffer->ullAvailPhys = Status.AvailablePhysical;
    lpBuffer->ullTotalPageFile = Status.TotalPhysical + Status.TotalSwap;
    lpBuffer->ullAvailPageFile = Status.AvailablePhysical + Status.AvailableSwap;
    lpBuffer->ullTotalVirtual = BASE_USER_SPACE;
    lpBuffer->ullAvailVirtual = BASE_USER_SPACE;
    lpBuffer->ullAvailExtendedVirtual = 0;
    lpBuffer->dwMemoryLoad =
        Status.TotalPhysical != 0 ? (DWORD)(100 - Status.AvailablePhysical * 100 / Status.TotalPhysical) : 0;
    return TRUE;
}

/* Notifications. */

static VOID BaseShowCondition(BOOLEAN High, BOOLEAN Holds)
{
    HANDLE Event;
    if (NT_SUCCESS(NtpOpenMemoryCondition(High, EVENT_MODIFY_STATE, &Event))) {
        if (Holds) {
            NtSetEvent(Event, NULL);
        } else {
            NtClearEvent(Event);
        }
        NtClose(Event);
    }
}

static VOID BaseCheckMemory(VOID)
{
    HAL_MEMORY_STATUS Status;
    HalQueryMemoryStatus(&Status);
    ULONG64 Low = (Status.TotalPhysical / (4 * BASE_GIGABYTE) + 1) * BASE_LOW_PER_4GB;
    Low = Low < BASE_MOST_LOW ? Low : BASE_MOST_LOW;
    BOOLEAN Known = Status.TotalPhysical != 0;
    BOOLEAN Scarce = Status.AvailablePhysical < Low || Status.Pressure >= BASE_LOW_PRESSURE;
    BaseShowCondition(FALSE, Known && Scarce);
    BaseShowCondition(TRUE, Known && !Scarce && Status.AvailablePhysical > 3 * Low);
}

static VOID BaseWatchMemory(PVOID Context)
{
    UNREFERENCED_PARAMETER(Context);
    __atomic_store_n(&KiCurrentThread()->IsIdleThread, TRUE, __ATOMIC_RELAXED); /* the process may end while it runs */
    for (;;) {
        BaseCheckMemory();
        HalAwaitMemoryPressure(BASE_CHECK_INTERVAL);
    }
}

static const KI_OWN_KIND BaseMemoryKind = {
    .Name = "interlock-mem", .Routine = BaseWatchMemory, .StackSize = KI_OWN_THREAD_STACK};
static KI_OWN_THREAD BaseMemoryThread = {.Kind = &BaseMemoryKind};

HANDLE CreateMemoryResourceNotification(MEMORY_RESOURCE_NOTIFICATION_TYPE NotificationType)
{
    HANDLE Event = NULL;
    NTSTATUS Status;
    if ((ULONG)NotificationType > HighMemoryResourceNotification) {
        BaseSetLastError(ERROR_INVALID_PARAMETER);
        return NULL;
    }
    Status = KiEnsureOwnThread(&BaseMemoryThread);
    if (NT_SUCCESS(Status)) {
        Status = NtpOpenMemoryCondition(NotificationType == HighMemoryResourceNotification, EVENT_QUERY_STATE | SYNCHRONIZE, &Event);
        BaseCheckMemory();
    }
    return BaseBoolStatus(Status) ? Event : NULL;
}

BOOL QueryMemoryResourceNotification(HANDLE ResourceNotificationHandle, PBOOL ResourceState)
{
    EVENT_BASIC_INFORMATION Information;
    NTSTATUS Status;
    if (ResourceState == NULL) {
        return BaseBoolStatus(STATUS_INVALID_PARAMETER);
    }
    BaseCheckMemory();
    KiEnsureOwnThread(&BaseMemoryThread); /* a forked child has lost it */
    Status = NtQueryEvent(ResourceNotificationHandle, EventBasicInformation, &Information, sizeof(Information), NULL);
    if (NT_SUCCESS(Status)) {
        *ResourceState = Information.EventState != 0;
    }
    return BaseBoolStatus(Status);
}
