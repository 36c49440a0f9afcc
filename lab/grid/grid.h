/*
 * grid.h: every primitive in the same shapes. A row of the grid is a primitive, a function that makes the object, the
 * operations, and a check of the end. Its columns are the shapes:
 *
 *     grid_X_2x3, grid_X_3x2, grid_X_4x1, grid_X_4x2   threads x operations of each
 *     grid_X_upset                                     two threads with one operation each, while a third one alerts one
 *                                                      of them, queues an APC to it, or suspends and resumes it
 *
 * In turn n, thread t makes operation t + n (GRID), or always operation t (GRID_ROLES), modulo the number of operations. An
 * operation never depends on a later one to return, so a schedule in which all threads block is a lost wakeup. Scenarios
 * name no model: scripts/proof runs them under sc and under c11, and docs/proof.md has the results.
 *
 * The machine has a processor for each thread. With fewer, each thread that raises its IRQL may have to wait for one, which multiplies
 * the states of every primitive by those of the processors. Threads that compete for processors are in lab/scenarios, on two.
 */
#ifndef LAB_GRID_H
#define LAB_GRID_H

#include <interlock/lab.h>

#include <ntifs.h>

#include "ke/ki.h"

typedef void grid_operation(void);

/* The shape of the running scenario. */
static unsigned grid_threads, grid_turns;
static PKTHREAD grid_users[LAB_MAXIMUM_THREADS];

static void grid_make(void (*make)(void), unsigned threads, unsigned turns)
{
    grid_threads = threads;
    grid_turns = turns;
    KiSetProcessDisableBoost(TRUE); /* whether an earlier boost still lasts would be part of each state */
    if (make != NULL)
        make();
}

/*
 * What the last wait has left in the thread: the next one overwrites it before it reads it, and no other thread reads it in between.
 * In the register these are the bits with which the wait was issued, and its state, which count only while the wait is active.
 */
#define GRID_ISSUED                                                                                                   \
    (KI_WAIT_STATE_MASK | KI_WAIT_ALERTABLE | KI_WAIT_USER_MODE | KI_WAIT_SPECIAL_APC_OK | KI_WAIT_NORMAL_APC_OK |    \
     KI_WAIT_ALERT_BY_ID | KI_WAIT_SUSPENDED_USER_MODE | KI_WAIT_SUSPENDED_TIMER | KI_WAIT_LIGHT | KI_WAIT_EXIT_OK)

static __attribute__((noinline, unused)) void grid_forget_wait(void)
{
    PKTHREAD thread = KeGetCurrentThread();

    LabForgetBits(&thread->WaitRegister, GRID_ISSUED);
    LabForget(&thread->WakeWord, sizeof(thread->WakeWord));
    LabForget(&thread->PendingBoost, sizeof(thread->PendingBoost)); /* boosts are disabled */
    LabForget(&thread->WaitStatus, sizeof(thread->WaitStatus));
    LabForget(&thread->WaitBlockList, sizeof(thread->WaitBlockList));
    LabForget(&thread->WaitBlockCount, sizeof(thread->WaitBlockCount));
    LabForget(&thread->WaitReason, sizeof(thread->WaitReason));
    LabForget(&thread->WaitMode, sizeof(thread->WaitMode));
    LabForget(&thread->WaitIrql, sizeof(thread->WaitIrql));
    LabForget(&thread->Alertable, sizeof(thread->Alertable));
    LabForget(&thread->Timer.DueTime, sizeof(thread->Timer.DueTime));
    LabForget(&thread->WaitDeadline, sizeof(thread->WaitDeadline));
    LabForget(thread->WaitBlock, sizeof(thread->WaitBlock));
}

static void grid_run(grid_operation *const *operations, unsigned count, BOOLEAN roles)
{
    unsigned self = LabCurrentThread();

    PKTHREAD thread = KeGetCurrentThread();
    __atomic_store_n(&grid_users[self], thread, __ATOMIC_RELEASE);
    for (unsigned turn = 0; turn < grid_turns; turn++) {
        operations[(roles ? self : self + turn) % count]();
        grid_forget_wait();
    }
}

static VOID grid_kernel_routine(PKAPC apc, PKNORMAL_ROUTINE *normal, PVOID *context, PVOID *first, PVOID *second)
{
    UNREFERENCED_PARAMETER(apc);
    UNREFERENCED_PARAMETER(normal);
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(first);
    UNREFERENCED_PARAMETER(second);
    LabAssert(KeGetCurrentIrql() == APC_LEVEL);
}

static VOID grid_normal_routine(PVOID context, PVOID first, PVOID second)
{
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(first);
    UNREFERENCED_PARAMETER(second);
    LabAssert(KeGetCurrentIrql() == PASSIVE_LEVEL);
}

static void grid_queue_apc(PKTHREAD thread, PKNORMAL_ROUTINE normal, KPROCESSOR_MODE mode)
{
    static KAPC apc;
    KeInitializeApc(&apc, thread, OriginalApcEnvironment, grid_kernel_routine, NULL, normal, mode, NULL);
    KeInsertQueueApc(&apc, NULL, NULL, IO_NO_INCREMENT);
}

/* A thread that has not begun cannot be upset. */
static __attribute__((unused)) void grid_upset(void)
{
    PKTHREAD thread = __atomic_load_n(&grid_users[LabChoose(2)], __ATOMIC_ACQUIRE);

    if (thread == NULL)
        return;
    switch (LabChoose(5)) {
    case 0:
        KeAlertThread(thread, KernelMode);
        break;
    case 1:
        grid_queue_apc(thread, NULL, KernelMode);
        break;
    case 2:
        grid_queue_apc(thread, grid_normal_routine, KernelMode);
        break;
    case 3:
        grid_queue_apc(thread, grid_normal_routine, UserMode);
        break;
    default:
        KeSuspendThread(thread);
        KeResumeThread(thread);
    }
}

#define GRID_SHAPE(Primitive, Shape, Users, Turns, Processors_, Make, Check, ...)                         \
    static void Primitive##_##Shape##_make(void)                                                          \
    {                                                                                                     \
        grid_make(Make, Users, Turns);                                                                    \
    }                                                                                                     \
    LAB_SCENARIO(grid_##Primitive##_##Shape, .Setup = Primitive##_##Shape##_make, .Finish = Check,        \
                 .Processors = Processors_, .Threads = {__VA_ARGS__})

#define GRID_ROW(Primitive, Roles, Make, Check, ...)                                                      \
    static void Primitive##_user(void)                                                                    \
    {                                                                                                     \
        static grid_operation *const operations[] = {__VA_ARGS__};                                        \
        grid_run(operations, sizeof(operations) / sizeof(operations[0]), Roles);                          \
    }                                                                                                     \
    GRID_SHAPE(Primitive, 2x3, 2, 3, 2, Make, Check, Primitive##_user, Primitive##_user);                 \
    GRID_SHAPE(Primitive, 3x2, 3, 2, 3, Make, Check, Primitive##_user, Primitive##_user,                  \
               Primitive##_user);                                                                         \
    GRID_SHAPE(Primitive, 4x1, 4, 1, 4, Make, Check, Primitive##_user, Primitive##_user,                  \
               Primitive##_user, Primitive##_user);                                                       \
    GRID_SHAPE(Primitive, 4x2, 4, 2, 4, Make, Check, Primitive##_user, Primitive##_user,                  \
               Primitive##_user, Primitive##_user)

#define GRID(Primitive, Make, Check, ...) GRID_ROW(Primitive, FALSE, Make, Check, __VA_ARGS__)
#define GRID_ROLES(Primitive, Make, Check, ...) GRID_ROW(Primitive, TRUE, Make, Check, __VA_ARGS__)
#define GRID_UPSET(Primitive, Make, Check)                                                                \
    GRID_SHAPE(Primitive, upset, 2, 1, 3, Make, Check, Primitive##_user, Primitive##_user, grid_upset)

/* What a lock protects. Another owner at the same time is a race, and an assertion where states are compared: what decides that is
   atomic, so a reduced search knows that its order matters. With a lock that works the order is the lock's. */
static int grid_value, grid_writers;

/* Not inline, and always the same value: neither a count nor what a register has left is another state. */
static __attribute__((noinline, unused)) void grid_write(void)
{
    grid_forget_wait();
    LabAssert(__atomic_fetch_add(&grid_writers, 1, __ATOMIC_RELAXED) == 0);
    grid_value = 0;
    __asm__ volatile("" : : "r"(&grid_value) : "memory"); /* the store is made */
    LabAssert(__atomic_fetch_sub(&grid_writers, 1, __ATOMIC_RELAXED) == 1);
}

static __attribute__((noinline, unused)) void grid_read(void)
{
    grid_forget_wait();
    LabAssert(__atomic_load_n(&grid_writers, __ATOMIC_RELAXED) == 0);
    __asm__ volatile("" : : "r"(grid_value));
    LabAssert(__atomic_load_n(&grid_writers, __ATOMIC_RELAXED) == 0);
}

#endif
