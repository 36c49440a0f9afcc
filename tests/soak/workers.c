/*
 * workers.c: the threads that do the steps. There are three kinds, and they end in four ways: they return, they exit in
 * the middle, they end as owners of a mutant, or another thread terminates them.
 *
 * A slot is the place of one worker. Its lock keeps the handle and the id unchanged for the disturbers; the worker
 * itself never takes it.
 */
#include "soak.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STEPS_OF_A_LIFE 400
#define EXIT_BY_ITSELF  7
#define EXIT_BY_OTHERS  8
#define LIFE_LIMIT      256
#define MANY_ENDED      600

enum { CREATED, ADOPTED, SYSTEM, KINDS };

/* What a worker has taken but not recorded when it is terminated would be lost: so it is terminated only where it
   allows that.
 */
enum { IMMUNE, MORTAL, DOOMED };

typedef struct slot {
    pthread_mutex_t lock;
    HANDLE thread; /* NULL: the slot is empty */
    HANDLE id;
    unsigned kind;
    pthread_t host_thread; /* of an adopted one */
    HANDLE arrived;        /* an adopted thread has published its handle */
    volatile LONG fate;
    volatile LONG host_id;
    volatile LONG doing;   /* a family + 1; 0: between two steps */
    volatile LONG64 since; /* the tick count when it began */
    uint64_t seed;
} slot;

static slot slots[LIFE_LIMIT];
static volatile LONG stopping;
static volatile LONG begun, ended, ended_by_others, doomed;
static ULONGLONG last_execution;
static HANDLE never; /* an event that is never set */

soak_settings soak = {.workers = 12, .seconds = 60};

/* The life of a worker. */

static bool change_fate(slot *of, LONG from, LONG to)
{
    return __atomic_compare_exchange_n(&of->fate, &from, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* Here it may be terminated: asleep, in a wait for any, as the owner of a mutant. */
static void be_mortal(slot *self, test_random *random)
{
    HANDLE some[2] = {never, mutant_of_the_mortal()};
    DWORD result;

    store(&self->fate, MORTAL);
    SleepEx(random_below(random, 3), TRUE);
    result = WaitForMultipleObjectsEx(2, some, FALSE, random_below(random, 3), TRUE);
    if (result == WAIT_OBJECT_0 + 1 || result == WAIT_ABANDONED_0 + 1)
        require(ReleaseMutex(some[1]));
    if (!change_fate(self, MORTAL, IMMUNE))
        for (;;)
            Sleep(INFINITE);
}

static void do_a_step(slot *self, test_random *random)
{
    unsigned family = soak_choose_family(random);

    store(&self->since, (LONG64)GetTickCount64());
    store(&self->doing, (LONG)family + 1);
    stand_still_begin();
    soak_step(family, random);
    stand_still_end();
    store(&self->doing, 0);
}

static void live(slot *self)
{
    test_random random;
    unsigned steps;

    random_seed(&random, self->seed);
    store(&self->host_id, (LONG)syscall(SYS_gettid));
    storage_of_a_life_begins();
    steps = 1 + random_below(&random, STEPS_OF_A_LIFE);
    for (unsigned i = 0; i < steps && !load(&stopping); i++) {
        do_a_step(self, &random);
        if (self->kind != SYSTEM && one_in(&random, 32))
            be_mortal(self, &random);
    }
    if (one_in(&random, 4))
        die_as_owner(&random);
    storage_expects_end();
    store(&self->host_id, 0);
    add(&ended, 1);
}

static DWORD WINAPI live_as_created(LPVOID argument)
{
    slot *self = argument;

    live(self);
    if (self->seed % 2)
        ExitThread(EXIT_BY_ITSELF);
    return EXIT_BY_ITSELF;
}

static void live_as_system(PVOID argument)
{
    live(argument);
    PsTerminateSystemThread(EXIT_BY_ITSELF);
}

static void *live_as_adopted(void *argument)
{
    slot *self = argument;

    require(DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), &self->thread, 0, FALSE,
                            DUPLICATE_SAME_ACCESS));
    require(SetEvent(self->arrived));
    live(self);
    return NULL;
}

/* Start and end of workers. Only the keeper calls these functions. */

static void start_adopted(slot *place)
{
    pthread_attr_t attributes;

    require(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, SMALL_STACK * 2) == 0);
    require(pthread_create(&place->host_thread, &attributes, live_as_adopted, place) == 0);
    pthread_attr_destroy(&attributes);
    require(WaitForSingleObject(place->arrived, INFINITE) == WAIT_OBJECT_0);
}

static void start_worker(slot *place, test_random *random)
{
    DWORD flags = one_in(random, 4) ? CREATE_SUSPENDED : 0;

    pthread_mutex_lock(&place->lock);
    place->kind = random_below(random, KINDS);
    place->seed = random_next(random);
    store(&place->fate, IMMUNE);
    if (place->kind == CREATED) {
        place->thread = CreateThread(NULL, SMALL_STACK, live_as_created, place, flags, NULL);
        require(place->thread != NULL);
    } else if (place->kind == SYSTEM) {
        HANDLE kernel;
        require(PsCreateSystemThread(&kernel, THREAD_ALL_ACCESS, NULL, NULL, NULL, live_as_system, place) == 0);
        require(ZwDuplicateObject(NtCurrentProcess(), kernel, NtCurrentProcess(), &place->thread, 0, 0,
                                  DUPLICATE_SAME_ACCESS) == 0);
        require(ZwClose(kernel) == 0);
    } else {
        start_adopted(place);
    }
    place->id = ULongToHandle(GetThreadId(place->thread));
    pthread_mutex_unlock(&place->lock);
    if (place->kind == CREATED && flags)
        require(ResumeThread(place->thread) >= 1);
    add(&begun, 1);
}

/* Only glibc notices the end of a thread that it did not end itself, and a sanitizer continues to use its stack. */
static void leave_to_host(pthread_t thread, bool was_ended)
{
#ifdef __GLIBC__
    bool unnoticed = was_ended && test_slowdown() != 1;
#else
    bool unnoticed = was_ended;
#endif

    require((unnoticed ? pthread_detach(thread) : pthread_join(thread, NULL)) == 0);
}

static void bury_worker(slot *place)
{
    DWORD code = 0;

    require(GetExitCodeThread(place->thread, &code));
    require(place->kind == ADOPTED ? code == 0 || code == EXIT_BY_OTHERS
                                   : code == EXIT_BY_ITSELF || code == EXIT_BY_OTHERS);
    require((code == EXIT_BY_OTHERS) == (load(&place->fate) == DOOMED));
    if (code == EXIT_BY_OTHERS)
        add(&ended_by_others, 1);
    pthread_mutex_lock(&place->lock);
    require(CloseHandle(place->thread));
    place->thread = NULL;
    pthread_mutex_unlock(&place->lock);
    if (place->kind == ADOPTED)
        leave_to_host(place->host_thread, code == EXIT_BY_OTHERS);
}

/* Not many: the host's stack of an ended thread is lost, and a sanitizer never forgets the thread. */
static void end_worker(slot *place)
{
    ULONGLONG pause = load(&doomed) < MANY_ENDED ? 1000 : 10000;

    if (GetTickCount64() - last_execution < pause || !change_fate(place, MORTAL, DOOMED))
        return;
    last_execution = GetTickCount64();
    require(TerminateThread(place->thread, EXIT_BY_OTHERS));
    add(&doomed, 1);
}

void workers_keep(test_random *random)
{
    for (unsigned i = 0; i < soak.workers; i++) {
        slot *place = &slots[i];

        if (place->thread == NULL) {
            if (!load(&stopping))
                start_worker(place, random);
        } else if (WaitForSingleObject(place->thread, 0) == WAIT_OBJECT_0) {
            bury_worker(place);
        } else {
            end_worker(place);
        }
    }
}

void workers_start(void)
{
    require(soak.workers >= 1 && soak.workers <= LIFE_LIMIT);
    never = CreateEventA(NULL, TRUE, FALSE, NULL);
    require(never != NULL);
    for (unsigned i = 0; i < soak.workers; i++) {
        require(pthread_mutex_init(&slots[i].lock, NULL) == 0);
        slots[i].arrived = CreateEventA(NULL, FALSE, FALSE, NULL);
        require(slots[i].arrived != NULL);
    }
}

void workers_stop(void)
{
    store(&stopping, 1);
}

bool workers_have_ended(void)
{
    for (unsigned i = 0; i < soak.workers; i++)
        if (slots[i].thread != NULL)
            return false;
    return true;
}

void workers_check(void)
{
    require(ended + ended_by_others == begun);
    require(ended_by_others == doomed);
    for (unsigned i = 0; i < soak.workers; i++)
        require(CloseHandle(slots[i].arrived));
    require(CloseHandle(never));
    printf("%d workers lived, %d of them were ended by others\n", (int)begun, (int)ended_by_others);
}

unsigned long workers_begun(void)
{
    return (unsigned long)load(&begun);
}

const char *workers_stuck(unsigned seconds)
{
    for (unsigned i = 0; i < soak.workers; i++) {
        LONG doing = load(&slots[i].doing);
        LONG64 since = load(&slots[i].since);

        if (doing != 0 && (LONG64)GetTickCount64() - since > (LONG64)seconds * 1000 && load(&slots[i].doing) == doing &&
            load(&slots[i].since) == since)
            return soak_families[doing - 1]->name;
    }
    return NULL;
}

void with_some_worker(test_random *random, void (*act)(HANDLE, HANDLE, long, test_random *))
{
    slot *place = &slots[random_below(random, soak.workers)];

    if (soak.workers == 0) /* in a forked child */
        return;

    pthread_mutex_lock(&place->lock);
    if (place->thread != NULL)
        act(place->thread, place->id, load(&place->host_id), random);
    pthread_mutex_unlock(&place->lock);
}
