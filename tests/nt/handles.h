/* handles.h: objects of the tests' own types behind handles, and threads that wait for handles on request. */
#ifndef INTERLOCK_TESTS_HANDLES_H
#define INTERLOCK_TESTS_HANDLES_H

#include "../ke/waittest.h"

#include <interlock/nt.h>

#include "ob/obp.h"

#define ALL_ACCESS (STANDARD_RIGHTS_ALL | 0x3)

/* The header is not at the start of the body, to check that a wait finds it. */
typedef struct padded_object {
    ULONG64 padding[2];
    union {
        DISPATCHER_HEADER header;
        KEVENT event;
        KSEMAPHORE semaphore;
        KMUTANT mutant;
    };
} padded_object;

static ULONG deleted_objects;

static void count_deleted(PVOID object)
{
    (void)object;
    __atomic_add_fetch(&deleted_objects, 1, __ATOMIC_SEQ_CST);
}

static OBJECT_TYPE padded_type = {
    .Name = "Padded",
    .ValidAccessMask = ALL_ACCESS,
    .WaitOffset = FIELD_OFFSET(padded_object, header),
    .DeleteProcedure = count_deleted,
};

static OBJECT_TYPE constant_type = {
    .Name = "Constant",
    .ValidAccessMask = ALL_ACCESS,
    .WaitOffset = OBP_ALWAYS_SIGNALED,
    .DeleteProcedure = count_deleted,
};

static inline ULONG live_objects(void)
{
    return __atomic_load_n(&padded_type.TotalNumberOfObjects, __ATOMIC_SEQ_CST) +
           __atomic_load_n(&constant_type.TotalNumberOfObjects, __ATOMIC_SEQ_CST);
}

/* Another handle of the same object. */
static inline HANDLE open_object(PVOID object, ACCESS_MASK access)
{
    HANDLE handle;
    check(NT_SUCCESS(ObOpenObjectByPointer(object, 0, NULL, access, ObGetObjectType(object), UserMode, &handle)));
    return handle;
}

/* The caller's reference becomes the handle's. */
static inline HANDLE hand_over(PVOID object, ACCESS_MASK access)
{
    HANDLE handle = open_object(object, access);
    ObDereferenceObject(object);
    return handle;
}

static inline padded_object *new_padded(void)
{
    padded_object *object = ObpCreateObject(&padded_type, sizeof(*object));
    check(object != NULL);
    return object;
}

static inline HANDLE make_event(EVENT_TYPE type, BOOLEAN state, PKEVENT *event)
{
    padded_object *object = new_padded();
    KeInitializeEvent(&object->event, type, state);
    if (event != NULL) {
        *event = &object->event;
    }
    return hand_over(object, ALL_ACCESS);
}

static inline HANDLE make_mutant_object(BOOLEAN owned, PKMUTANT *mutant)
{
    padded_object *object = new_padded();
    KeInitializeMutant(&object->mutant, owned);
    *mutant = &object->mutant;
    return hand_over(object, ALL_ACCESS);
}

static inline HANDLE make_constant(void)
{
    PVOID object = ObpCreateObject(&constant_type, 1);
    check(object != NULL);
    return hand_over(object, ALL_ACCESS);
}

static inline PVOID object_of(HANDLE handle)
{
    PVOID object;
    check(NT_SUCCESS(ObReferenceObjectByHandle(handle, 0, NULL, KernelMode, &object, NULL)));
    ObDereferenceObject(object);
    return object;
}

static inline HANDLE same_object(HANDLE handle, ACCESS_MASK access)
{
    return open_object(object_of(handle), access);
}

/* A handle of user mode in place of a kernel handle. */
static inline HANDLE user_handle(HANDLE kernel)
{
    HANDLE user;
    check(NT_SUCCESS(
        ZwDuplicateObject(NtCurrentProcess(), kernel, NtCurrentProcess(), &user, 0, 0, DUPLICATE_SAME_ACCESS)));
    check(ZwClose(kernel) == STATUS_SUCCESS);
    return user;
}

static inline void close_handle(HANDLE handle)
{
    check(ObCloseHandle(handle, UserMode) == STATUS_SUCCESS);
}

static inline HANDLE closed_handle(void)
{
    HANDLE handle = make_constant();
    close_handle(handle);
    return handle;
}

static inline NTSTATUS poll_handle(HANDLE handle)
{
    return NtWaitForSingleObject(handle, FALSE, NO_TIME);
}

/* A wait by handle as arguments, for an actor. */
typedef struct handle_waiter {
    actor actor;
    ULONG count; /* 1: NtWaitForSingleObject */
    HANDLE handle[MAXIMUM_WAIT_OBJECTS];
    WAIT_TYPE type;
    BOOLEAN alertable;
    PLARGE_INTEGER timeout;
    NTSTATUS status;
} handle_waiter;

static inline void perform_handle_wait(void *argument)
{
    handle_waiter *w = argument;
    w->status = w->count == 1 ? NtWaitForSingleObject(w->handle[0], w->alertable, w->timeout)
                              : NtWaitForMultipleObjects(w->count, w->handle, w->type, w->alertable, w->timeout);
}

static inline void start_handle_waiter(handle_waiter *w)
{
    memset(w, 0, sizeof(*w));
    start_actor(&w->actor);
}

/* Returns when the thread sleeps. */
static inline void begin_handle_wait(handle_waiter *w)
{
    tell(&w->actor, perform_handle_wait, w);
    await(is_committed(w->actor.thread));
}

static inline NTSTATUS end_handle_wait(handle_waiter *w)
{
    await(is_idle(&w->actor));
    return w->status;
}

/* User APCs that count. */
static __thread ULONG apcs_run;

static inline void apc_kernel_routine(struct _KAPC *apc, PKNORMAL_ROUTINE *routine, PVOID *context, PVOID *argument1,
                                      PVOID *argument2)
{
    (void)apc, (void)routine, (void)context, (void)argument1, (void)argument2;
}

static inline void count_apc(PVOID context, PVOID argument1, PVOID argument2)
{
    (void)context, (void)argument1, (void)argument2;
    apcs_run += 1;
}

static inline void queue_user_apc(PKAPC apc, PKTHREAD thread, PKNORMAL_ROUTINE routine, PVOID context)
{
    KeInitializeApc(apc, thread, OriginalApcEnvironment, apc_kernel_routine, NULL, routine, UserMode, context);
    check(KeInsertQueueApc(apc, NULL, NULL, 0));
}

#endif
