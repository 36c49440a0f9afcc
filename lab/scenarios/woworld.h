/* woworld.h: a world in plain memory, with two processes, and proxies of its objects in either. */
#ifndef INTERLOCK_LAB_WOWORLD_H
#define INTERLOCK_LAB_WOWORLD_H

#include <interlock/lab.h>

#include <ntddk.h>

#include "ke/wait.h"
#include "wo/wop.h"

#define WORLD_SIZE (sizeof(WO_WORLD) + 24 * 2048)
#define PROCESSES 2

typedef struct proxy {
    union {
        KEVENT event;
        KSEMAPHORE semaphore;
        KMUTANT mutant;
        KTIMER timer;
    };
    KI_OUTSIDE outside;
} proxy;

static UCHAR world_memory[WORLD_SIZE] __attribute__((aligned(4096)));
static WO_VIEW views[PROCESSES];

static inline void make_process(WO_VIEW *view, ULONG id)
{
    view->World = (PWO_WORLD)world_memory;
    view->Mapped = WORLD_SIZE;
    view->Key = HalQueryProcessKey(id);
    LabAssert(WopLock(view));
    LabAssert(WopEnterRing(view) == STATUS_SUCCESS);
    WopUnlock(view);
}

static inline void make_world(void)
{
    WopInitializeWorld((PWO_WORLD)world_memory, WORLD_SIZE);
    for (ULONG i = 0; i < PROCESSES; i++)
        make_process(&views[i], i + 1);
}

/* A new object, and what each process knows it by. */
static inline void make_object(proxy proxies[PROCESSES], WO_TYPE type, UCHAR kernel_type, LONG state, LONG limit)
{
    WO_NEW new = {.Type = type, .State = state, .Limit = limit};
    WO_INDEX index;
    LabAssert(WoCreateObject(&views[0], &new, &index) == STATUS_SUCCESS);
    for (ULONG i = 0; i < PROCESSES; i++) {
        proxies[i].outside = (KI_OUTSIDE){&views[i], index};
        KiMakeOutside(&proxies[i].event.Header, kernel_type, &proxies[i].outside);
    }
}

static inline void make_event(proxy proxies[PROCESSES], BOOLEAN automatic)
{
    make_object(proxies, automatic ? WoSynchronizationEvent : WoNotificationEvent,
                automatic ? EventSynchronizationObject : EventNotificationObject, 0, 0);
}

static inline NTSTATUS wait_for(PVOID object, LONGLONG timeout)
{
    LARGE_INTEGER time = {.QuadPart = timeout};
    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, timeout != 0 ? &time : NULL);
}

/* No waiters, nothing frozen, nothing in progress. */
static inline void assert_quiet(proxy *p)
{
    PWO_OBJECT object = WopRecord(&views[0], p->outside.Index, WoObjectRecord);
    LabAssert(object->WaitersWord == 0);
    LabAssert((object->Word & WO_W) == 0);
    LabAssert(views[0].World->Lock == 0 && views[0].World->Phase == WoPhaseIdle && views[0].World->Intention == 0);
}

#endif
