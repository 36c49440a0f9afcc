/* names.c: NT's words for states, reasons and types. */
#include "kd.h"

#include "trace/tracefile.h"

#define NAME(array, index)                                                                                             \
    ((index) < sizeof(array) / sizeof((array)[0]) && (array)[index] != NULL ? (array)[index] : "?")

const char *kd_thread_state_name(unsigned state)
{
    static const char *const names[] = {
        "Initialized", "Ready", "Running", "Standby", "Terminated", "Waiting", "Transition", "DeferredReady",
    };
    return NAME(names, state);
}

const char *kd_wait_reason_name(unsigned reason)
{
    return TraceWaitReasonName(reason);
}

const char *kd_wait_type_name(unsigned type)
{
    static const char *const names[] = {"WaitAll", "WaitAny", "WaitNotification", "WaitDequeue", "WaitDpc"};

    return type == KI_HINT_BLOCK ? "Hint" : type == KI_MANY_BLOCK ? "WaitAny" : NAME(names, type);
}

const char *kd_block_state_name(unsigned state)
{
    static const char *const names[] = {
        "WaitBlockBypassStart", "WaitBlockBypassComplete", "WaitBlockSuspendBypassStart",
        "WaitBlockSuspendBypassComplete", "WaitBlockActive", "WaitBlockInactive", "WaitBlockSuspended",
    };
    return NAME(names, state);
}

const char *kd_wait_state_name(unsigned state)
{
    static const char *const names[] = {
        "WaitInProgress", "WaitCommitted", "WaitAborted", "WaitSuspendInProgress", "WaitSuspended",
        "WaitResumeInProgress", "WaitResumeAborted",
    };
    return NAME(names, state);
}

const char *kd_object_type_name(unsigned type)
{
    static const char *const names[] = {
        [EventNotificationObject] = "NotificationEvent",
        [EventSynchronizationObject] = "SynchronizationEvent",
        [MutantObject] = "Mutant",
        [ProcessObject] = "Process",
        [QueueObject] = "Queue",
        [SemaphoreObject] = "Semaphore",
        [ThreadObject] = "Thread",
        [GateObject] = "Gate",
        [TimerNotificationObject] = "NotificationTimer",
        [TimerSynchronizationObject] = "SynchronizationTimer",
    };
    return NAME(names, type);
}

static const struct {
    const char *name;
    const char *title;
} kinds[KD_KINDS] = {
    [KD_EVENT] = {"event", "event"},
    [KD_SEMAPHORE] = {"semaphore", "semaphore"},
    [KD_MUTANT] = {"mutant", "mutant"},
    [KD_TIMER] = {"timer", "timer"},
    [KD_QUEUE] = {"queue", "queue"},
    [KD_GATE] = {"gate", "gate"},
    [KD_THREAD] = {"thread", "end of thread"},
    [KD_PROCESS] = {"process", "end of process"},
    [KD_PUSH_LOCK] = {"push_lock", "pushlock"},
    [KD_ADDRESS_PUSH_LOCK] = {"address_push_lock", "address-based pushlock"},
    [KD_FAST_MUTEX] = {"fast_mutex", "fast mutex"},
    [KD_GUARDED_MUTEX] = {"guarded_mutex", "guarded mutex"},
    [KD_RESOURCE] = {"resource", "resource"},
    [KD_FAST_RESOURCE] = {"fast_resource", "fast resource"},
    [KD_RUNDOWN] = {"rundown", "rundown protection"},
    [KD_KEYED_EVENT] = {"keyed_event", "keyed event, key"},
    [KD_SRW_LOCK] = {"srw_lock", "SRW lock"},
    [KD_CRITICAL_SECTION] = {"critical_section", "critical section"},
    [KD_RTL_RESOURCE] = {"rtl_resource", "RTL resource"},
    [KD_CONDITION_VARIABLE] = {"condition_variable", "condition variable"},
    [KD_ADDRESS_WAIT] = {"address", "address"},
    [KD_ALERT] = {"alert", "alert by id, hint"},
    [KD_SUSPENSION] = {"suspension", "resume, event"},
    [KD_UNKNOWN] = {"unknown", "object"},
};

const char *kd_kind_name(kd_kind kind)
{
    return kinds[kind].name;
}

const char *kd_kind_title(kd_kind kind)
{
    return kinds[kind].title;
}
