/* Children: forks, tickets for started programs, and requests between processes. */
#include "processes.h"

#include "ke/ki.h"

#include <spawn.h>
#include <uchar.h>

static PWO_VIEW view;
static const char *program;

static NTSTATUS create(const char16_t *name, ULONG handles, WO_INDEX *object)
{
    UNICODE_STRING string = {0, 0, (PWSTR)(uintptr_t)name};
    while (name[string.Length / 2] != 0)
        string.Length += 2;
    return WoCreateName(view, &(WO_LOOKUP){0, &string, TRUE}, &(WO_NEW){.Type = WoSynchronizationEvent}, handles, object);
}

static ULONG processes(void)
{
    return __atomic_load_n(&view->World->Processes, __ATOMIC_RELAXED);
}

static ULONG64 used(void)
{
    return __atomic_load_n(&view->World->Used, __ATOMIC_RELAXED);
}

/* A fork of a process that is attached. */
static pid_t fork_attached(void)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(60 * test_slowdown());
        signal(SIGABRT, SIG_DFL);
    }
    return child;
}

static void await_handles(WO_INDEX object, ULONG handles)
{
    while (WoQueryHandleCount(view, object) != handles)
        nap(1000 * MICROSECOND);
}

static void a_child_with_its_own_handles(void *argument)
{
    WO_INDEX object;
    steps s = make_steps();
    (void)argument;
    view = attach();
    assert_int_equal(create(u"Inherited", 2, &object), STATUS_SUCCESS);
    WO_INDEX self = view->Self;
    for (int round = 0; round < 4; round++) {
        pid_t child = fork_attached();
        if (child == 0) {
            assert_int_not_equal(view->Self, self);
            assert_int_equal(WoQueryHandleCount(view, object), 4);
            assert_int_equal(processes(), 2);
            await_step(&s);
            if (round == 1)
                raise(SIGKILL);
            if (round == 2)
                assert_int_equal(WoChangeHandles(attach(), object, -2), STATUS_SUCCESS);
            if (round == 3)
                _exit(0);
            exit(0);
        }
        assert_int_equal(WoQueryHandleCount(view, object), 4);
        step(&s);
        await_process(child);
        await_handles(object, 2);
        while (processes() != 1)
            nap(1000 * MICROSECOND);
    }
    assert_int_equal(WoChangeHandles(view, object, -2), STATUS_SUCCESS);
}

static void a_child_that_calls_exec(void *argument)
{
    WO_INDEX object;
    (void)argument;
    view = attach();
    assert_int_equal(create(u"Inherited", 1, &object), STATUS_SUCCESS);
    pid_t child = fork_attached();
    if (child == 0) {
        execl("/bin/sleep", "sleep", "50", (char *)NULL);
        _exit(1);
    }
    await_handles(object, 1); /* the guard notices */
    kill_process(child);
}

static void a_child_that_outlives_its_parent(void *argument)
{
    steps *s = argument;
    WO_INDEX object, found;
    view = attach();
    assert_int_equal(create(u"Inherited", 1, &object), STATUS_SUCCESS);
    if (fork_attached() != 0)
        return;
    await_step(s);
    view = attach();
    while (processes() != 1)
        nap(1000 * MICROSECOND);
    assert_int_equal(create(u"Inherited", 1, &found), STATUS_OBJECT_NAME_EXISTS);
    assert_int_equal(found, object);
    step(s + 1);
    exit(0);
}

static void the_child_of_a_fork_has_handles_of_its_own(void **state)
{
    (void)state;
    run(a_child_with_its_own_handles, NULL);
}

static void an_exec_closes_the_handles_of_a_fork(void **state)
{
    (void)state;
    run(a_child_that_calls_exec, NULL);
}

static void handles_of_a_fork_outlive_the_parent(void **state)
{
    steps s[2] = {make_steps(), make_steps()};
    (void)state;
    run(a_child_that_outlives_its_parent, s);
    step(&s[0]);
    await_step(&s[1]);
    close_steps(&s[0]);
    close_steps(&s[1]);
}

static void fork_and_die_for_ever(void *argument)
{
    WO_INDEX object;
    (void)argument;
    view = attach();
    setpgid(0, 0);
    for (;;) {
        create(u"Inherited", 1, &object);
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        waitpid(child, NULL, 0);
    }
}

static void see_an_empty_world(void *argument)
{
    steps *s = argument;
    view = attach();
    while (processes() != 1)
        nap(1000 * MICROSECOND); /* of the test before */
    ULONG64 mine = used();
    step(&s[0]);
    await_step(&s[1]);
    while (processes() != 1)
        nap(1000 * MICROSECOND);
    assert_true(WopLock(view));
    assert_int_equal(__atomic_load_n(&view->World->Objects, __ATOMIC_RELAXED), 0);
    assert_int_equal(used(), mine);
    WopUnlock(view);
}

static void killed_forkers_leave_nothing(void **state)
{
    steps s[2] = {make_steps(), make_steps()};
    test_random random;
    (void)state;
    random_seed(&random, 5);
    pid_t watcher = start(see_an_empty_world, s);
    await_step(&s[0]);
    for (unsigned long round = 0; round < test_rounds(150); round++) {
        pid_t child = start(fork_and_die_for_ever, NULL);
        nap((long)random_below(&random, 5000) * MICROSECOND);
        kill_process(child);
    }
    step(&s[1]);
    assert_int_equal(await_process(watcher), 0);
    close_steps(&s[0]);
    close_steps(&s[1]);
}

/* Tickets. */

#define INHERITED 300

/* In the started program. */
static int adopt(const char *ticket)
{
    static WO_INHERITED handles[INHERITED];
    ULONG count = 0;
    if (!NT_SUCCESS(WoOpenView(WoLocal, &view)))
        return 10;
    if (WoAdoptHandles(view, ticket, NULL, &count) != STATUS_BUFFER_TOO_SMALL || count != INHERITED)
        return 11;
    if (WoAdoptHandles(view, ticket, handles, &count) != STATUS_SUCCESS || count != INHERITED)
        return 12;
    for (ULONG i = 0; i < INHERITED; i++) {
        ULONG found = 0;
        for (ULONG j = 0; j < INHERITED; j++)
            found += handles[j].Handle == 4 * (i + 1) && handles[j].GrantedAccess == i;
        if (found != 1)
            return 13;
    }
    if (WoAdoptHandles(view, ticket, handles, &count) != STATUS_NOT_FOUND)
        return 14;
    if (WoQueryHandleCount(view, handles[0].Object) != INHERITED / 2 + 1)
        return 15;
    return processes() == 2 ? 0 : 16;
}

static pid_t start_program(const char *ticket)
{
    pid_t child;
    char text[WO_TICKET_LENGTH];
    snprintf(text, sizeof(text), "%s", ticket);
    assert_int_equal(posix_spawn(&child, program, NULL, NULL, (char *[]){text, text, NULL}, environ), 0);
    return child;
}

static void prepare(WO_INDEX objects[2], char ticket[WO_TICKET_LENGTH])
{
    static WO_INHERITED handles[INHERITED];
    assert_true(NT_SUCCESS(create(u"First", 1, &objects[0])) && NT_SUCCESS(create(u"Second", 1, &objects[1])));
    for (ULONG i = 0; i < INHERITED; i++)
        handles[i] = (WO_INHERITED){4 * (i + 1), objects[i % 2], i, 0};
    assert_int_equal(WoPrepareChild(view, handles, INHERITED, ticket), STATUS_SUCCESS);
    assert_int_equal(WoQueryHandleCount(view, objects[0]), 1 + INHERITED / 2);
}

static void start_and_wait(void *argument)
{
    char ticket[WO_TICKET_LENGTH];
    WO_INDEX objects[2];
    ULONG64 before;
    (void)argument;
    view = attach();
    before = used();
    for (int round = 0; round < 3; round++) {
        prepare(objects, ticket);
        if (round == 0) {
            WoAbandonChild(view, ticket);
            WoAbandonChild(view, ticket);
        } else if (round == 1) {
            pid_t child = start_program(ticket);
            WoStartChild(view, ticket, (ULONG)child);
            assert_int_equal(await_process(child), 0);
        } else {
            pid_t child = start_program("sleep");
            WoStartChild(view, ticket, (ULONG)child);
            assert_int_equal(WoQueryHandleCount(view, objects[0]), 1 + INHERITED / 2);
            kill_process(child);
        }
        await_handles(objects[0], 1);
        await_handles(objects[1], 1);
        while (processes() != 1)
            nap(1000 * MICROSECOND);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(WoChangeHandles(view, objects[i], -1), STATUS_SUCCESS);
            WoDereferenceObject(view, objects[i]);
        }
        assert_int_equal(used(), before);
    }
}

static void a_started_program_takes_over_its_handles(void **state)
{
    (void)state;
    run(start_and_wait, NULL);
}

static void prepare_and_die(void *argument)
{
    char ticket[WO_TICKET_LENGTH];
    WO_INDEX objects[2];
    (void)argument;
    view = attach();
    prepare(objects, ticket);
    raise(SIGKILL);
}

static void tickets_of_the_dead_are_dropped(void **state)
{
    steps s[2] = {make_steps(), make_steps()};
    (void)state;
    pid_t watcher = start(see_an_empty_world, s);
    await_step(&s[0]);
    for (int round = 0; round < 5; round++)
        await_process(start(prepare_and_die, NULL));
    step(&s[1]);
    assert_int_equal(await_process(watcher), 0);
    close_steps(&s[0]);
    close_steps(&s[1]);
}

static void wrong_tickets(void *argument)
{
    static const char *const wrong[] = {"", "x", "1-1-1", "ffffffff-ffffffffffffffff-0", "99999999999999999999-1-1"};
    WO_INHERITED handle;
    (void)argument;
    view = attach();
    for (size_t i = 0; i < RTL_NUMBER_OF(wrong); i++) {
        ULONG count = 1;
        assert_int_equal(WoAdoptHandles(view, wrong[i], &handle, &count), STATUS_NOT_FOUND);
        WoAbandonChild(view, wrong[i]);
        WoStartChild(view, wrong[i], (ULONG)getpid());
    }
    assert_false(WoIsPoisoned(view));
}

static void rubbish_is_no_ticket(void **state)
{
    (void)state;
    run(wrong_tickets, NULL);
}

/* Requests. */

static WO_INDEX exported;
static volatile ULONG closed, released;
static steps import_begins, import_may_end;

/* The handle that the world has counted is in order, even if the process that sent it is gone. */
static NTSTATUS serve_import(WO_INDEX object)
{
    LONG previous;
    step(&import_begins);
    await_step(&import_may_end);
    assert_int_equal(WoSetEvent(view, object, &previous), STATUS_SUCCESS);
    assert_int_equal(WoQueryHandleCount(view, object), 1);
    assert_int_equal(WoChangeHandles(view, object, -1), STATUS_SUCCESS);
    WoDereferenceObject(view, object);
    return STATUS_SUCCESS;
}

static PVOID serve(PWO_VIEW v, PWO_REQUEST request)
{
    assert_ptr_equal(v, view);
    if (request->Kind == WoCloseHandle) {
        __atomic_fetch_add(&closed, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    if (request->Kind == WoImportHandle) {
        request->Status = serve_import(request->Object);
        return NULL;
    }
    if (request->Handle == 666)
        raise(SIGKILL);
    if (request->Handle == 777)
        pause();
    request->Status = request->Handle == 4 ? STATUS_SUCCESS : STATUS_INVALID_HANDLE;
    request->Object = exported;
    request->GrantedAccess = 0x1234;
    return (PVOID)&released;
}

static void release(PVOID kept)
{
    assert_ptr_equal(kept, &released);
    __atomic_fetch_add(&released, 1, __ATOMIC_RELAXED);
}

static const WO_SERVER server_of_handles = {serve, release};

static void serve_requests(void *argument)
{
    steps *s = argument;
    view = attach();
    WoSetServer(&server_of_handles);
    assert_int_equal(create(u"Exported", 1, &exported), STATUS_SUCCESS);
    step(&s[0]);
    await_step(&s[1]);
    assert_int_equal(__atomic_load_n(&closed, __ATOMIC_RELAXED), 1);
}

static WO_REQUEST ask(ULONG64 handle, ULONG options)
{
    return (WO_REQUEST){.Kind = WoExportHandle, .Handle = handle, .Options = options};
}

static void request_handles(void *server)
{
    ULONG id = (ULONG) * (pid_t *)server;
    view = attach();
    ULONG64 before = used();
    WO_REQUEST request = ask(4, 0);
    assert_int_equal(WoRequest(view, id, &request), STATUS_SUCCESS);
    assert_int_equal(request.GrantedAccess, 0x1234);
    assert_int_equal(WoQueryHandleCount(view, request.Object), 2);
    request = ask(4, DUPLICATE_CLOSE_SOURCE);
    assert_int_equal(WoRequest(view, id, &request), STATUS_SUCCESS);
    assert_int_equal(WoQueryHandleCount(view, request.Object), 3);
    assert_int_equal(WoChangeHandles(view, request.Object, -2), STATUS_SUCCESS);
    WoDereferenceObject(view, request.Object);
    request = ask(8, 0);
    assert_int_equal(WoRequest(view, id, &request), STATUS_INVALID_HANDLE);
    request = ask(4, 0);
    assert_int_equal(WoRequest(view, 1, &request), STATUS_INVALID_CID);
    assert_int_equal(used(), before);
}

static void requests_are_answered(void **state)
{
    steps s[2] = {make_steps(), make_steps()};
    (void)state;
    pid_t server = start(serve_requests, s);
    await_step(&s[0]);
    run(request_handles, &server);
    step(&s[1]);
    assert_int_equal(await_process(server), 0);
    close_steps(&s[0]);
    close_steps(&s[1]);
}

static void request_death(void *server)
{
    view = attach();
    WO_REQUEST request = ask(666, 0);
    assert_int_equal(WoRequest(view, (ULONG) * (pid_t *)server, &request), STATUS_PROCESS_IS_TERMINATING);
    while (processes() != 1)
        nap(1000 * MICROSECOND);
    assert_int_equal(__atomic_load_n(&view->World->Objects, __ATOMIC_RELAXED), 0);
}

static void a_server_that_dies_answers(void **state)
{
    steps s[2] = {make_steps(), make_steps()};
    (void)state;
    for (int round = 0; round < 5; round++) {
        pid_t server = start(serve_requests, s);
        await_step(&s[0]);
        pid_t client = start(request_death, &server);
        await_process(server);
        assert_int_equal(await_process(client), 0);
    }
    close_steps(&s[0]);
    close_steps(&s[1]);
}

static void request_for_ever(void *server)
{
    view = attach();
    for (;;) {
        WO_REQUEST request = ask(4, 0);
        if (!NT_SUCCESS(WoRequest(view, (ULONG) * (pid_t *)server, &request)))
            _exit(1);
    }
}

static void serve_until_told(void *argument)
{
    steps *s = argument;
    view = attach();
    WoSetServer(&server_of_handles);
    ULONG64 before = used();
    assert_int_equal(create(u"Exported", 1, &exported), STATUS_SUCCESS);
    step(&s[0]);
    await_step(&s[1]);
    await_handles(exported, 1);
    while (processes() != 1)
        nap(1000 * MICROSECOND);
    assert_int_equal(WoChangeHandles(view, exported, -1), STATUS_SUCCESS);
    WoDereferenceObject(view, exported);
    assert_int_equal(used(), before);
}

/* Sends an object without a name to the server, and is killed when that has it in hand. */
static void send_and_wait(void *server)
{
    WO_NEW new = {.Type = WoSynchronizationEvent};
    WO_REQUEST request = {.Kind = WoImportHandle};
    view = attach();
    assert_int_equal(WoCreateObject(view, &new, &request.Object), STATUS_SUCCESS);
    assert_int_equal(WoChangeHandles(view, request.Object, 1), STATUS_SUCCESS);
    WoRequest(view, (ULONG) * (pid_t *)server, &request);
}

/* Serves until nobody is left; what was sent is gone, too. */
static void serve_the_dead(void *argument)
{
    steps *s = argument;
    view = attach();
    WoSetServer(&server_of_handles);
    ULONG64 before = used();
    step(&s[0]);
    await_step(&s[1]); /* the client is killed, and the session thread busy */
    while (processes() != 1)
        WopCleanDead(view);
    step(&import_may_end);
    while (used() != before)
        nap(1000 * MICROSECOND);
    assert_int_equal(__atomic_load_n(&view->World->Objects, __ATOMIC_RELAXED), 0);
    assert_false(WoIsPoisoned(view));
}

static void a_sender_that_is_killed_takes_nothing_back(void **state)
{
    steps s[2] = {make_steps(), make_steps()};
    (void)state;
    import_begins = make_steps();
    import_may_end = make_steps();
    for (int round = 0; round < 5; round++) {
        pid_t server = start(serve_the_dead, s);
        await_step(&s[0]);
        pid_t client = start(send_and_wait, &server);
        await_step(&import_begins);
        kill_process(client);
        step(&s[1]);
        assert_int_equal(await_process(server), 0);
    }
    close_steps(&import_begins);
    close_steps(&import_may_end);
    close_steps(&s[0]);
    close_steps(&s[1]);
}

static void killed_clients_leave_nothing(void **state)
{
    steps s[2] = {make_steps(), make_steps()};
    test_random random;
    (void)state;
    random_seed(&random, 11);
    pid_t server = start(serve_until_told, s);
    await_step(&s[0]);
    for (unsigned long round = 0; round < test_rounds(200); round++) {
        pid_t client = start(request_for_ever, &server);
        nap((long)random_below(&random, 3000) * MICROSECOND);
        kill_process(client);
    }
    step(&s[1]);
    assert_int_equal(await_process(server), 0);
    close_steps(&s[0]);
    close_steps(&s[1]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_child_of_a_fork_has_handles_of_its_own),
        cmocka_unit_test(an_exec_closes_the_handles_of_a_fork),
        cmocka_unit_test(handles_of_a_fork_outlive_the_parent),
        cmocka_unit_test(killed_forkers_leave_nothing),
        cmocka_unit_test(a_started_program_takes_over_its_handles),
        cmocka_unit_test(tickets_of_the_dead_are_dropped),
        cmocka_unit_test(rubbish_is_no_ticket),
        cmocka_unit_test(requests_are_answered),
        cmocka_unit_test(a_server_that_dies_answers),
        cmocka_unit_test(a_sender_that_is_killed_takes_nothing_back),
        cmocka_unit_test(killed_clients_leave_nothing),
    };
    if (argc == 2 && strcmp(argv[1], "sleep") == 0)
        return pause();
    if (argc == 2 && argv[1][0] != '-')
        return adopt(argv[1]);
    program = "/proc/self/exe";
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
