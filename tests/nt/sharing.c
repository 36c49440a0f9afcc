/* A local object becomes one that processes share: it keeps its state and its owner, and whatever waits for it goes on. */
#include "objecttest.h"

#include <interlock/ke.h>

#include <sys/wait.h>
#include <unistd.h>

#include "ke/outside.h"
#include "ke/verifier.h"
#include "ob/share.h"

#define SECOND (-10000000LL)

/* What a handle that another process inherits does. */
static NTSTATUS share(HANDLE handle)
{
    POBP_SHARE shared;
    PVOID object;

    assert_int_equal(ObReferenceObjectByHandle(handle, 0, NULL, KernelMode, &object, NULL), STATUS_SUCCESS);
    NTSTATUS status = ObpShareObject(object, &shared);
    ObDereferenceObject(object);
    return status;
}

static bool is_shared(HANDLE handle)
{
    PVOID object;

    assert_int_equal(ObReferenceObjectByHandle(handle, 0, NULL, KernelMode, &object, NULL), STATUS_SUCCESS);
    bool outside = KiIsOutside(ObpDispatcherObject(object));
    ObDereferenceObject(object);
    return outside;
}

static NTSTATUS wait_for(HANDLE handle, LONGLONG time)
{
    LARGE_INTEGER timeout = {.QuadPart = time};

    return NtWaitForSingleObject(handle, FALSE, &timeout);
}

/* A completion packet that waits for an event. */
static void notifications_move(void **state)
{
    LARGE_INTEGER now = {.QuadPart = 0}, later = {.QuadPart = 10 * SECOND};
    HANDLE event, port, packet[2];
    IO_STATUS_BLOCK result;
    PVOID key, context;

    (void)state;
    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE), STATUS_SUCCESS);
    assert_int_equal(NtCreateIoCompletion(&port, IO_COMPLETION_ALL_ACCESS, NULL, 1), STATUS_SUCCESS);
    for (ULONG_PTR i = 0; i < 2; i++) {
        assert_int_equal(NtCreateWaitCompletionPacket(&packet[i], WAIT_COMPLETION_PACKET_ALL_ACCESS, NULL),
                         STATUS_SUCCESS);
        assert_int_equal(NtAssociateWaitCompletionPacket(packet[i], port, event, (PVOID)(i + 1), NULL, STATUS_SUCCESS, 0,
                                                         NULL),
                         STATUS_SUCCESS);
    }
    assert_int_equal(share(event), STATUS_SUCCESS);
    assert_true(is_shared(event));
    assert_int_equal(NtRemoveIoCompletion(port, &key, &context, &result, &now), STATUS_TIMEOUT);
    assert_int_equal(NtSetEvent(event, NULL), STATUS_SUCCESS);
    ULONG_PTR sum = 0;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(NtRemoveIoCompletion(port, &key, &context, &result, &later), STATUS_SUCCESS);
        sum += (ULONG_PTR)key;
    }
    assert_int_equal(sum, 3);
    close_handle(packet[0]);
    close_handle(packet[1]);
    close_handle(port);
    close_handle(event);
}

static HANDLE make_mutant(BOOLEAN owned)
{
    HANDLE mutant;

    assert_int_equal(NtCreateMutant(&mutant, MUTANT_ALL_ACCESS, NULL, owned), STATUS_SUCCESS);
    return mutant;
}

static MUTANT_BASIC_INFORMATION state_of(HANDLE mutant)
{
    MUTANT_BASIC_INFORMATION information;

    assert_int_equal(NtQueryMutant(mutant, MutantBasicInformation, &information, sizeof(information), NULL),
                     STATUS_SUCCESS);
    return information;
}

static void free_mutants_move(void **state)
{
    HANDLE mutant = make_mutant(FALSE);

    (void)state;
    assert_int_equal(share(mutant), STATUS_SUCCESS);
    assert_true(is_shared(mutant));
    assert_int_equal(state_of(mutant).CurrentCount, 1);
    assert_int_equal(wait_for(mutant, 0), STATUS_SUCCESS);
    assert_true(state_of(mutant).OwnedByCaller);
    assert_int_equal(NtReleaseMutant(mutant, NULL), STATUS_SUCCESS);
    close_handle(mutant);
}

static void own_mutants_move(void **state)
{
    HANDLE mutant = make_mutant(TRUE);

    (void)state;
    assert_int_equal(wait_for(mutant, 0), STATUS_SUCCESS);
    assert_int_equal(share(mutant), STATUS_SUCCESS);
    assert_true(is_shared(mutant));
    assert_true(state_of(mutant).OwnedByCaller);
    assert_int_equal(NtReleaseMutant(mutant, NULL), STATUS_SUCCESS);
    assert_int_equal(NtReleaseMutant(mutant, NULL), STATUS_SUCCESS);
    assert_int_equal(NtReleaseMutant(mutant, NULL), STATUS_MUTANT_NOT_OWNED);
    close_handle(mutant);
}

typedef struct {
    HANDLE object;
    HANDLE ready, done;
    NTSTATUS status;
} partner;

static void own_for_a_while(void *argument, unsigned index)
{
    partner *self = argument;

    (void)index;
    assert_int_equal(wait_for(self->object, 0), STATUS_SUCCESS);
    assert_int_equal(NtSetEvent(self->ready, NULL), STATUS_SUCCESS);
    assert_int_equal(wait_for(self->done, 10 * SECOND), STATUS_SUCCESS);
    self->status = NtReleaseMutant(self->object, NULL);
}

static HANDLE make_event(void)
{
    HANDLE event;

    assert_int_equal(NtCreateEvent(&event, EVENT_ALL_ACCESS, NULL, SynchronizationEvent, FALSE), STATUS_SUCCESS);
    return event;
}

/* Only its owner can move it. */
static void mutants_of_others_stay(void **state)
{
    partner other = {make_mutant(FALSE), make_event(), make_event(), -1};
    test_threads *threads = start_threads(1, own_for_a_while, &other);

    (void)state;
    assert_int_equal(wait_for(other.ready, 10 * SECOND), STATUS_SUCCESS);
    assert_int_equal(share(other.object), STATUS_MUTANT_NOT_OWNED);
    assert_false(is_shared(other.object));
    assert_int_equal(wait_for(other.object, 0), STATUS_TIMEOUT);
    assert_int_equal(NtSetEvent(other.done, NULL), STATUS_SUCCESS);
    join_threads(threads, 30);
    assert_int_equal(other.status, STATUS_SUCCESS);
    assert_int_equal(share(other.object), STATUS_SUCCESS);
    close_handle(other.object);
    close_handle(other.ready);
    close_handle(other.done);
}

static void abandon(void *argument, unsigned index)
{
    partner *self = argument;

    (void)index;
    self->status = wait_for(self->object, 0);
}

static void abandoned_mutants_stay_abandoned(void **state)
{
    partner other = {.object = make_mutant(FALSE), .status = -1};

    (void)state;
    run_threads(1, 30, abandon, &other);
    assert_int_equal(other.status, STATUS_SUCCESS);
    assert_int_equal(share(other.object), STATUS_SUCCESS);
    assert_int_equal(wait_for(other.object, 0), STATUS_ABANDONED);
    assert_int_equal(NtReleaseMutant(other.object, NULL), STATUS_SUCCESS);
    close_handle(other.object);
}

static void wait_long(void *argument, unsigned index)
{
    partner *self = argument;

    (void)index;
    assert_int_equal(NtSetEvent(self->ready, NULL), STATUS_SUCCESS);
    self->status = wait_for(self->object, 60 * SECOND);
}

/* A wait that is in progress begins again in the world. */
static void waiters_move(void **state)
{
    partner other = {make_event(), make_event(), NULL, -1};
    test_threads *threads = start_threads(1, wait_long, &other);
    LARGE_INTEGER moment = {.QuadPart = SECOND / 100};

    (void)state;
    assert_int_equal(wait_for(other.ready, 10 * SECOND), STATUS_SUCCESS);
    NtDelayExecution(FALSE, &moment); /* the waiter sleeps by now */
    assert_int_equal(share(other.object), STATUS_SUCCESS);
    assert_int_equal(NtSetEvent(other.object, NULL), STATUS_SUCCESS);
    join_threads(threads, 30);
    assert_int_equal(other.status, STATUS_SUCCESS);
    assert_int_equal(wait_for(other.object, 0), STATUS_TIMEOUT);
    close_handle(other.object);
    close_handle(other.ready);
}

static void counts_and_limits_move(void **state)
{
    SEMAPHORE_BASIC_INFORMATION information;
    HANDLE semaphore;
    LONG previous;

    (void)state;
    assert_int_equal(NtCreateSemaphore(&semaphore, SEMAPHORE_ALL_ACCESS, NULL, 2, 3), STATUS_SUCCESS);
    assert_int_equal(share(semaphore), STATUS_SUCCESS);
    assert_int_equal(NtQuerySemaphore(semaphore, SemaphoreBasicInformation, &information, sizeof(information), NULL),
                     STATUS_SUCCESS);
    assert_int_equal(information.CurrentCount, 2);
    assert_int_equal(information.MaximumCount, 3);
    assert_int_equal(NtReleaseSemaphore(semaphore, 2, &previous), STATUS_SEMAPHORE_LIMIT_EXCEEDED);
    assert_int_equal(NtReleaseSemaphore(semaphore, 1, &previous), STATUS_SUCCESS);
    assert_int_equal(previous, 2);
    close_handle(semaphore);
}

static int apcs;

static void count_apc(PVOID context, ULONG low, LONG high)
{
    (void)context;
    (void)low;
    (void)high;
    apcs++;
}

static NTSTATUS sleep_alertably(LONGLONG time)
{
    LARGE_INTEGER timeout = {.QuadPart = time};

    return NtDelayExecution(TRUE, &timeout);
}

#define TOO_LATE 2

static _Noreturn void cancel_in_child(HANDLE timer)
{
    BOOLEAN expired;

    if (NtCancelTimer(timer, &expired) != STATUS_SUCCESS)
        _exit(1);
    _exit(expired ? TOO_LATE : 0);
}

static bool is_in_no_table(HANDLE timer)
{
    PVOID object;
    PKDPC dpc = NULL;

    assert_int_equal(ObReferenceObjectByHandle(timer, 0, NULL, KernelMode, &object, NULL), STATUS_SUCCESS);
    PKTIMER local = ObpDispatcherObject(object);
    bool found = KiFindSetTimer(local, local + 1, &dpc) != NULL;
    ObDereferenceObject(object);
    return !found;
}

/* The APC of a shared timer belongs to the process that set it, unless another one sets or cancels the timer. */
static void timers_move(void **state)
{
    LARGE_INTEGER soon = {.QuadPart = SECOND / 50};
    HANDLE timer;
    int status;

    (void)state;
    assert_int_equal(NtCreateTimer(&timer, TIMER_ALL_ACCESS, NULL, SynchronizationTimer), STATUS_SUCCESS);
    assert_int_equal(NtSetTimer(timer, &soon, NULL, NULL, FALSE, 0, NULL), STATUS_SUCCESS);
    assert_int_equal(share(timer), STATUS_SUCCESS);
    assert_true(is_in_no_table(timer));
    assert_int_equal(wait_for(timer, 10 * SECOND), STATUS_SUCCESS); /* set before, it expires in the world */
    assert_int_equal(NtSetTimer(timer, &soon, count_apc, NULL, FALSE, 0, NULL), STATUS_SUCCESS);
    assert_int_equal(sleep_alertably(10 * SECOND), STATUS_USER_APC);
    assert_int_equal(apcs, 1);
    assert_int_equal(wait_for(timer, 0), STATUS_SUCCESS);

    do { /* until the child comes before the timer */
        soon.QuadPart *= 4;
        wait_for(timer, 0);
        sleep_alertably(0);
        apcs = 0;
        assert_int_equal(NtSetTimer(timer, &soon, count_apc, NULL, FALSE, 0, NULL), STATUS_SUCCESS);
        pid_t child = fork();
        if (child == 0)
            cancel_in_child(timer);
        assert_int_equal(waitpid(child, &status, 0), child);
    } while (WIFEXITED(status) && WEXITSTATUS(status) == TOO_LATE);
    assert_int_equal(status, 0);
    assert_int_equal(sleep_alertably(2 * soon.QuadPart), STATUS_SUCCESS);
    assert_int_equal(apcs, 0);
    assert_int_equal(wait_for(timer, 0), STATUS_TIMEOUT);
    close_handle(timer);
}

/* A driver has a pointer to such an event, too. */
static void drivers_set_shared_events(void **state)
{
    HANDLE event = make_event();
    PVOID object;
    PKTHREAD released = (PKTHREAD)&object;

    (void)state;
    assert_int_equal(share(event), STATUS_SUCCESS);
    assert_int_equal(ObReferenceObjectByHandle(event, 0, *ExEventObjectType, KernelMode, &object, NULL), STATUS_SUCCESS);
    KeSetEventBoostPriority(object, &released);
    assert_null(released);
    assert_int_equal(wait_for(event, 0), STATUS_SUCCESS);
    assert_int_equal(NtSetEventBoostPriority(event), STATUS_SUCCESS);
    assert_int_equal(wait_for(event, 0), STATUS_SUCCESS);
    assert_int_equal(wait_for(event, 0), STATUS_TIMEOUT);
    ObDereferenceObject(object);
    close_handle(event);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(notifications_move),
        cmocka_unit_test(free_mutants_move),
        cmocka_unit_test(own_mutants_move),
        cmocka_unit_test(mutants_of_others_stay),
        cmocka_unit_test(abandoned_mutants_stay_abandoned),
        cmocka_unit_test(waiters_move),
        cmocka_unit_test(counts_and_limits_move),
        cmocka_unit_test(timers_move),
        cmocka_unit_test(drivers_set_shared_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
