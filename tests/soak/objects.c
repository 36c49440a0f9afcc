/* objects.c: handles and names; thread-local and fiber-local storage. */
#include "soak.h"

/* Handles of one object: an operation through any of them is visible through all, and it lives as long as the last. */

static void handles_step(test_random *random)
{
    HANDLE handles[4];
    unsigned count = 1;

    handles[0] = CreateEventA(NULL, FALSE, FALSE, NULL);
    require(handles[0] != NULL);
    for (; count < 1 + random_below(random, ARRAYSIZE(handles)); count++)
        require(DuplicateHandle(GetCurrentProcess(), handles[random_below(random, count)], GetCurrentProcess(),
                                &handles[count], 0, FALSE, DUPLICATE_SAME_ACCESS));
    require(CompareObjectHandles(handles[0], handles[count - 1]));
    require(SetEvent(handles[random_below(random, count)]));
    require(WaitForSingleObject(handles[random_below(random, count)], 0) == WAIT_OBJECT_0);
    while (count > 0) {
        require(WaitForSingleObject(handles[count - 1], 0) == WAIT_TIMEOUT);
        require(CloseHandle(handles[--count]));
    }
}

const soak_family handles_family = {.name = "handles", .weight = 4, .step = handles_step};

/* Names: a few that all create, open and close, some as events and some as semaphores. */

#define NAMES 4

static void names_step(test_random *random)
{
    bool event = one_in(random, 2);
    char name[32];
    HANDLE handle;

    snprintf(name, sizeof(name), "soak-%u", (unsigned)random_below(random, NAMES));
    SetLastError(ERROR_SUCCESS);
    switch (random_below(random, 3)) {
    case 0:
        handle = event ? OpenEventA(EVENT_ALL_ACCESS, FALSE, name) : OpenSemaphoreA(SEMAPHORE_ALL_ACCESS, FALSE, name);
        require(handle != NULL || GetLastError() == ERROR_FILE_NOT_FOUND || GetLastError() == ERROR_INVALID_HANDLE);
        break;
    default:
        handle = event ? CreateEventA(NULL, TRUE, FALSE, name) : CreateSemaphoreA(NULL, 1, 2, name);
        require(handle != NULL || GetLastError() == ERROR_INVALID_HANDLE);
        break;
    }
    if (handle == NULL)
        return;
    require(event ? SetEvent(handle) && ResetEvent(handle) : WaitForSingleObject(handle, 0) != WAIT_FAILED);
    if (one_in(random, 4))
        SwitchToThread();
    require(CloseHandle(handle));
}

const soak_family names_family = {.name = "names", .weight = 4, .step = names_step};

/* Storage: a value of each worker, whose callback runs when the worker ends; indexes that are allocated and freed. */

static DWORD of_lives;
static volatile LONG lives, expected_ends, ends;

static VOID CALLBACK life_ends(PVOID value)
{
    require(value == &lives);
    add(&ends, 1);
}

static VOID CALLBACK value_goes(PVOID value)
{
    *(unsigned *)value += 1;
}

static void storage_setup(void)
{
    of_lives = FlsAlloc(life_ends);
    require(of_lives != FLS_OUT_OF_INDEXES);
}

void storage_of_a_life_begins(void)
{
    require(FlsGetValue(of_lives) == NULL);
    require(FlsSetValue(of_lives, (PVOID)&lives));
}

void storage_expects_end(void)
{
    require(FlsGetValue(of_lives) == &lives);
    add(&expected_ends, 1);
}

static void storage_step(test_random *random)
{
    unsigned gone = 0;
    DWORD index;

    if (one_in(random, 2)) {
        index = TlsAlloc();
        require(index != TLS_OUT_OF_INDEXES && TlsGetValue(index) == NULL);
        require(TlsSetValue(index, &gone) && TlsGetValue(index) == &gone);
        require(TlsFree(index));
    } else {
        index = FlsAlloc(value_goes);
        require(index != FLS_OUT_OF_INDEXES && FlsGetValue(index) == NULL);
        require(FlsSetValue(index, &gone) && FlsGetValue(index) == &gone);
        require(FlsFree(index) && gone == 1);
    }
}

static void storage_check(void)
{
    require(ends == expected_ends);
    require(FlsFree(of_lives) && ends == expected_ends);
}

const soak_family storage_family = {
    .name = "TLS and FLS", .weight = 4, .setup = storage_setup, .step = storage_step, .check = storage_check};
