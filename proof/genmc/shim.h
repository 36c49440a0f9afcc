/*
 * shim.h: what the drivers have in place of the library's headers and of the host. A name that is defined here, or in a
 * driver before its line `//! take`, is not taken from src.
 *
 * GENMC is defined when GenMC runs the driver. Then a wait is a loop: GenMC cuts it, and with -check-liveness reports
 * one that cannot end. Elsewhere it is a futex, so the explorer reports a wakeup that is lost.
 */
#ifndef SHIM_H
#define SHIM_H

#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

typedef void VOID, *PVOID, *HANDLE;
typedef unsigned char UCHAR, BOOLEAN;
typedef char CCHAR, KPROCESSOR_MODE;
typedef uint16_t USHORT;
typedef int32_t LONG, NTSTATUS, KPRIORITY;
typedef uint32_t ULONG, ACCESS_MASK, LOGICAL;
typedef int64_t LONG64;
typedef uint64_t ULONG64, ULONGLONG;
typedef unsigned long ULONG_PTR;
typedef long LONG_PTR;

#define TRUE 1
#define FALSE 0
#define FORCEINLINE static inline __attribute__((unused))
#define DECLSPEC_NOINLINE __attribute__((unused))
#define DECLSPEC_ALIGN(bytes) __attribute__((aligned(bytes)))
#define DECLSPEC_NORETURN
#define NTSYSAPI static
#define UNREFERENCED_PARAMETER(parameter) ((void)(parameter))

enum { KernelMode, UserMode };

#define STATUS_SUCCESS ((NTSTATUS)0)
#define STATUS_WAIT_0 ((NTSTATUS)0)
#define STATUS_USER_APC ((NTSTATUS)0xc0)
#define STATUS_KERNEL_APC ((NTSTATUS)0x100)
#define STATUS_ALERTED ((NTSTATUS)0x101)
#define STATUS_TIMEOUT ((NTSTATUS)0x102)
#define STATUS_PENDING ((NTSTATUS)0x103)
#define STATUS_UNSUCCESSFUL ((NTSTATUS)0xc0000001)
#define STATUS_INVALID_HANDLE ((NTSTATUS)0xc0000008)
#define STATUS_INVALID_PARAMETER ((NTSTATUS)0xc000000d)
#define STATUS_INVALID_PARAMETER_2 ((NTSTATUS)0xc00000f0)

/* The library's own checks must not fail either. */
#define RtlFailFast(code) assert(!"fail fast " #code)
#define KeBugCheckEx(code, a, b, c, d) assert(!"bugcheck " #code)

/* The host. Wait returns when *word is not value, after a wakeup or without one; FALSE: the deadline has passed. */
#ifdef GENMC
static volatile ULONG shim_expired; /* set by the thread that plays the clock */

static inline BOOLEAN shim_wait(volatile ULONG *word, ULONG value, BOOLEAN timed)
{
    while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) {
        if (timed && __atomic_load_n(&shim_expired, __ATOMIC_RELAXED)) {
            return FALSE;
        }
    }
    return TRUE;
}

static inline void shim_wake(volatile ULONG *word)
{
    (void)word;
}

#define SHIM_PAUSE()
#else
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline BOOLEAN shim_wait(volatile ULONG *word, ULONG value, BOOLEAN timed)
{
    struct timespec soon = {0, 50000};
    return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, timed ? &soon : NULL, NULL, 0) == 0 || errno != ETIMEDOUT;
}

static inline void shim_wake(volatile ULONG *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

#define SHIM_PAUSE() sched_yield()
#endif

/* An event that one thread waits for, once per signal. */
typedef struct _KEVENT {
    volatile ULONG Signaled;
    ULONG64 Rest[2];
} KEVENT, *PKEVENT;

#define KeInitializeEvent(event, type, state) __atomic_store_n(&(event)->Signaled, 0, __ATOMIC_RELAXED)
#define KeSetEvent(event, increment, wait) shim_set_event(event)
#define KeWaitForSingleObject(event, reason, mode, alertable, timeout) shim_wait_for_event(event)

static inline void shim_set_event(PKEVENT event)
{
    volatile ULONG *word = &event->Signaled;
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    shim_wake(word); /* only the address: the waiter may have returned */
}

static inline void shim_wait_for_event(PKEVENT event)
{
    while (__atomic_load_n(&event->Signaled, __ATOMIC_ACQUIRE) == 0) {
        shim_wait(&event->Signaled, 0, FALSE);
    }
    __atomic_store_n(&event->Signaled, 0, __ATOMIC_RELAXED);
}

/* The kernel around the cores: no fork, no suspension, no verifier, no trace. */
typedef struct _KTHREAD KTHREAD, *PKTHREAD;

static __thread PKTHREAD shim_thread;

#define KiCurrentThread() shim_thread
#define KiEnterDispatcher(thread) ((void)(thread))
#define KiExitDispatcher(thread) ((void)(thread))
#define KiForkTag ((ULONG_PTR)0)
#define KI_FORK_TAG_MASK ((ULONG_PTR)0xffff << 48)
#define KiIsInherited(value) FALSE
#define KiIsTagOfChild(value) FALSE
#define KiDropInheritedQueue(word, value) ((void)(word))
#define KiRecordInheritedQueue(word, value, without) ((void)(word))
#define KiForeignQueue(word, value) assert(!"a queue of another process")
#define KiDropInheritedEntries(lock) ((void)(lock))
#define KiForkDepth 0u
#define KiVerifierEnabled FALSE

/* Queued blocks are registered for forks only. */
typedef struct _KI_QUEUED {
    volatile ULONG_PTR *Word;
    PVOID Block;
    VOID (*Inherit)(struct _KI_QUEUED *Queued);
} KI_QUEUED, *PKI_QUEUED;

#define KiRegisterQueued(thread, queued) ((void)(queued))
#define KiUnregisterQueued(thread, queued) ((void)(queued))

/* Runs the bodies ROUNDS times, each time in new threads; body i gets arguments[i]. */
#ifndef ROUNDS
#define ROUNDS 1
#endif
#define SHIM_MOST 5

typedef void *SHIM_BODY(void *argument);

static inline void shim_run(int count, SHIM_BODY *const *bodies, void (*setup)(void), void (*finish)(void))
{
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[SHIM_MOST];
        setup();
        for (int i = 0; i < count; i++) {
            int failed = pthread_create(&threads[i], NULL, bodies[i], (void *)(intptr_t)i);
            assert(failed == 0);
        }
        for (int i = 0; i < count; i++) {
            pthread_join(threads[i], NULL);
        }
        finish();
    }
}

#define SHIM_RUN(setup, finish, ...)                                                                                   \
    int main(void)                                                                                                     \
    {                                                                                                                  \
        static SHIM_BODY *const bodies[] = {__VA_ARGS__};                                                              \
        shim_run((int)(sizeof(bodies) / sizeof(*bodies)), bodies, setup, finish);                                      \
        return 0;                                                                                                      \
    }

#endif
