/* Two threads that take two locks in opposite orders, for locks of each kind: what the report says, for command.py. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/rtl.h>

#define CROSSED(Name, Acquire, Release)                                                                                \
    static void Name##_forwards(void)                                                                                  \
    {                                                                                                                  \
        Acquire(&Name[0]);                                                                                             \
        Acquire(&Name[1]);                                                                                             \
        Release(&Name[1]);                                                                                             \
        Release(&Name[0]);                                                                                             \
    }                                                                                                                  \
    static void Name##_backwards(void)                                                                                 \
    {                                                                                                                  \
        Acquire(&Name[1]);                                                                                             \
        Acquire(&Name[0]);                                                                                             \
        Release(&Name[0]);                                                                                             \
        Release(&Name[1]);                                                                                             \
    }

static uint32_t word[2];

static void acquire_word(uint32_t *lock)
{
    while (__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE) != 0)
        LabWaitOnWord(lock, 1);
}

static void release_word(uint32_t *lock)
{
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
    LabWakeWord(lock, 1);
}
CROSSED(word, acquire_word, release_word)
LAB_SCENARIO(word, .Threads = {word_forwards, word_backwards});

static KMUTANT mutant[2];

static void setup_mutant(void)
{
    KeInitializeMutant(&mutant[0], FALSE);
    KeInitializeMutant(&mutant[1], FALSE);
}

static void acquire_mutant(PKMUTANT lock)
{
    KeWaitForSingleObject(lock, Executive, KernelMode, FALSE, NULL);
}

static void release_mutant(PKMUTANT lock)
{
    KeReleaseMutant(lock, IO_NO_INCREMENT, FALSE, FALSE);
}
CROSSED(mutant, acquire_mutant, release_mutant)
LAB_SCENARIO(mutant, .Setup = setup_mutant, .Threads = {mutant_forwards, mutant_backwards});

/* Each must be set by the thread that waits for the other. */
static KEVENT event[2];

static void setup_event(void)
{
    KeInitializeEvent(&event[0], NotificationEvent, FALSE);
    KeInitializeEvent(&event[1], NotificationEvent, FALSE);
}

static void pass_on(PKEVENT from, PKEVENT to)
{
    KeWaitForSingleObject(from, Executive, KernelMode, FALSE, NULL);
    KeSetEvent(to, IO_NO_INCREMENT, FALSE);
}

static void event_forwards(void)
{
    pass_on(&event[1], &event[0]);
}

static void event_backwards(void)
{
    pass_on(&event[0], &event[1]);
}
LAB_SCENARIO(event, .Setup = setup_event, .Threads = {event_forwards, event_backwards});

static void set_and_clear(void)
{
    KeSetEvent(&event[1], IO_NO_INCREMENT, FALSE);
    KeClearEvent(&event[1]);
}
LAB_SCENARIO(cleared, .Setup = setup_event, .Threads = {event_forwards, set_and_clear});

/* Each waits for the end of the other. */
static PKTHREAD thread[2];

static void wait_for_end(unsigned self)
{
    PKTHREAD other;

    __atomic_store_n(&thread[self], KeGetCurrentThread(), __ATOMIC_RELEASE);
    while ((other = __atomic_load_n(&thread[1 - self], __ATOMIC_ACQUIRE)) == NULL)
        ;
    KeWaitForSingleObject(other, Executive, KernelMode, FALSE, NULL);
}

static void thread_first(void)
{
    wait_for_end(0);
}

static void thread_second(void)
{
    wait_for_end(1);
}
LAB_SCENARIO(thread, .Threads = {thread_first, thread_second}, .Flags = LAB_RUN_EXIT);

static FAST_MUTEX fastmutex[2];

static void setup_fastmutex(void)
{
    ExInitializeFastMutex(&fastmutex[0]);
    ExInitializeFastMutex(&fastmutex[1]);
}
CROSSED(fastmutex, ExAcquireFastMutex, ExReleaseFastMutex)
LAB_SCENARIO(fastmutex, .Setup = setup_fastmutex, .Threads = {fastmutex_forwards, fastmutex_backwards});

static KGUARDED_MUTEX guarded[2];

static void setup_guarded(void)
{
    KeInitializeGuardedMutex(&guarded[0]);
    KeInitializeGuardedMutex(&guarded[1]);
}
CROSSED(guarded, KeAcquireGuardedMutex, KeReleaseGuardedMutex)
LAB_SCENARIO(guarded, .Setup = setup_guarded, .Threads = {guarded_forwards, guarded_backwards});

static ERESOURCE resource[2];

static void setup_resource(void)
{
    ExInitializeResourceLite(&resource[0]);
    ExInitializeResourceLite(&resource[1]);
}

static void acquire_resource(PERESOURCE lock)
{
    KeEnterCriticalRegion();
    ExAcquireResourceExclusiveLite(lock, TRUE);
}

static void release_resource(PERESOURCE lock)
{
    ExReleaseResourceLite(lock);
    KeLeaveCriticalRegion();
}
CROSSED(resource, acquire_resource, release_resource)
LAB_SCENARIO(resource, .Setup = setup_resource, .Threads = {resource_forwards, resource_backwards});

static EX_PUSH_LOCK pushlock[2];

static void acquire_pushlock(PEX_PUSH_LOCK lock)
{
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(lock);
}

static void release_pushlock(PEX_PUSH_LOCK lock)
{
    ExReleasePushLockExclusive(lock);
    KeLeaveCriticalRegion();
}
CROSSED(pushlock, acquire_pushlock, release_pushlock)
LAB_SCENARIO(pushlock, .Threads = {pushlock_forwards, pushlock_backwards});

static RTL_SRWLOCK srwlock[2];
CROSSED(srwlock, RtlAcquireSRWLockExclusive, RtlReleaseSRWLockExclusive)
LAB_SCENARIO(srwlock, .Threads = {srwlock_forwards, srwlock_backwards});

static RTL_CRITICAL_SECTION section[2];

static void setup_section(void)
{
    RtlInitializeCriticalSection(&section[0]);
    RtlInitializeCriticalSection(&section[1]);
}
CROSSED(section, RtlEnterCriticalSection, RtlLeaveCriticalSection)
LAB_SCENARIO(section, .Setup = setup_section, .Threads = {section_forwards, section_backwards});

static KSPIN_LOCK spinlock[2];

static void acquire_spinlock(PKSPIN_LOCK lock)
{
    KeAcquireSpinLockAtDpcLevel(lock);
}

static void release_spinlock(PKSPIN_LOCK lock)
{
    KeReleaseSpinLockFromDpcLevel(lock);
}

static void spinlock_raised(void (*cross)(void))
{
    KIRQL old;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    cross();
    KeLowerIrql(old);
}
CROSSED(spinlock, acquire_spinlock, release_spinlock)

static void spinlock_first(void)
{
    spinlock_raised(spinlock_forwards);
}

static void spinlock_second(void)
{
    spinlock_raised(spinlock_backwards);
}
LAB_SCENARIO(spinlock, .Threads = {spinlock_first, spinlock_second});
