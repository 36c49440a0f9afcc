/* wowaits.h: objects and waiters of a world without names, for tests of object.c and wait.c. */
#ifndef INTERLOCK_TESTS_WOWAITS_H
#define INTERLOCK_TESTS_WOWAITS_H

#include "wotest.h"

#define WORLD_SIZE (4 * 1024 * 1024)

/* A process record of its own for the view, and no other part of a process. */
static inline void attach(WO_VIEW *view)
{
    assert_true(WopLock(view));
    WopBegin(view);
    view->Self = WopAllocate(view, WoProcessRecord, sizeof(WO_PROCESS));
    assert_int_not_equal(view->Self, 0);
    PWO_PROCESS process = WopRecord(view, view->Self, WoProcessRecord);
    process->Key = view->Key;
    process->ProcessId = HalCurrentProcessId();
    WopCommit(view);
    WopUnlock(view);
}

static inline WO_INDEX create(WO_VIEW *view, WO_TYPE type, LONG state, LONG limit)
{
    WO_NEW new = {.Type = type, .State = state, .Limit = limit};
    assert_true(WopLock(view));
    WopBegin(view);
    WO_INDEX index = WopNewObject(view, &new);
    assert_int_not_equal(index, 0);
    PWO_OBJECT object = WopRecord(view, index, WoObjectRecord);
    object->References = 1;
    WopCommit(view);
    WopUnlock(view);
    return index;
}

static inline WO_INDEX create_waiter(WO_VIEW *view)
{
    WO_INDEX waiter;
    assert_int_equal(WoCreateWaiter(view, HalCurrentThreadId(), &waiter), STATUS_SUCCESS);
    return waiter;
}

static inline NTSTATUS try_one(WO_VIEW *view, WO_INDEX self, WO_INDEX object)
{
    return WoTryWait(view, self, &object, 1, WaitAny);
}

/* Sleeps until the wait is granted, or the timeout (in milliseconds, 0: none) has passed. */
static inline NTSTATUS finish_wait(WO_VIEW *view, WO_INDEX self, unsigned timeout)
{
    HAL_DEADLINE end = {timeout != 0 ? HalInterruptTime : HalNoDeadline,
                        HalDispatch.QueryInterruptTime() + timeout * 10000ull};
    volatile ULONG *word = WoWakeWord(view, self);
    NTSTATUS status;
    for (;;) {
        ULONG seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        HAL_DEADLINE due, until = end;
        if (WoIsGranted(view, self, &status))
            return WoEndWait(view, self);
        if (timeout != 0 && HalDispatch.QueryInterruptTime() >= end.Time) {
            status = WoEndWait(view, self);
            return status == STATUS_PENDING ? STATUS_TIMEOUT : status;
        }
        if (WoNextDue(view, self, &due) &&
            (until.Clock == HalNoDeadline || (due.Clock == until.Clock && due.Time < until.Time)))
            until = due;
        if (!__atomic_compare_exchange_n(word, &seen, seen | WO_ASLEEP, FALSE, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        HalWaitShared(word, seen | WO_ASLEEP, &until);
        WoExpireTimers(view, self);
    }
}

static inline NTSTATUS wait_for(WO_VIEW *view, WO_INDEX self, const WO_INDEX *objects, ULONG count, WO_WAIT_KIND kind,
                                unsigned timeout)
{
    NTSTATUS status = WoBeginWait(view, self, objects, count, kind);
    return status == STATUS_PENDING ? finish_wait(view, self, timeout) : status;
}

static inline LONG state_of(WO_VIEW *view, WO_INDEX object)
{
    WO_STATE state;
    assert_int_equal(WoQueryState(view, object, &state), STATUS_SUCCESS);
    return state.State;
}

/* It has no waiter, and it is thawed. */
static inline void assert_quiet(WO_VIEW *view, WO_INDEX object)
{
    PWO_OBJECT record = WopRecord(view, object, WoObjectRecord);
    assert_int_equal(record->WaitersWord, 0);
    assert_int_equal(record->Word & WO_W, 0);
}

#endif
