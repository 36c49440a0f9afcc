/* alerts.c: keyed events, alerts by thread id, address waits. */
#include "soak.h"

/* Keyed events: a wait and a release are paired, or neither happened. */

#define KEYS 4

static HANDLE keyed;
static volatile LONG waits[KEYS], releases[KEYS];

static void keyed_events_setup(void)
{
    require(NtCreateKeyedEvent(&keyed, KEYEDEVENT_ALL_ACCESS, NULL, 0) == STATUS_SUCCESS);
}

static void keyed_events_step(test_random *random)
{
    unsigned key = random_below(random, KEYS);
    HANDLE event = key % 2 ? keyed : NULL;
    PVOID value = (PVOID)&waits[key & ~1u];
    LARGE_INTEGER timeout = a_moment(random);
    BOOLEAN alertable = one_in(random, 2), wait = one_in(random, 2);
    NTSTATUS status = wait ? NtWaitForKeyedEvent(event, value, alertable, &timeout)
                           : NtReleaseKeyedEvent(event, value, alertable, &timeout);

    if (status == STATUS_SUCCESS)
        add(wait ? &waits[key] : &releases[key], 1);
    else
        require(status == STATUS_TIMEOUT || (alertable && (status == STATUS_USER_APC || status == STATUS_ALERTED)));
}

static void keyed_events_check(void)
{
    for (int i = 0; i < KEYS; i++)
        require(waits[i] == releases[i]);
    require(CloseHandle(keyed));
}

const soak_family keyed_events_family = {.name = "keyed events",
                                         .weight = 6,
                                         .without_heap = true,
                                         .setup = keyed_events_setup,
                                         .step = keyed_events_step,
                                         .check = keyed_events_check};

/* Alerts by thread id: an alert to itself is kept until the next wait. Other threads get stray ones, which they must
   tolerate. */

static void alert_worker(HANDLE thread, HANDLE id, long host_id, test_random *random)
{
    NTSTATUS status = NtAlertThreadByThreadId(id);

    (void)thread;
    (void)host_id;
    (void)random;
    require(status == STATUS_SUCCESS || status == STATUS_INVALID_CID);
}

static void alerts_step(test_random *random)
{
    HANDLE self = PsGetCurrentThreadId();
    LARGE_INTEGER timeout = in_microseconds(random_below(random, 500));
    NTSTATUS status;

    if (one_in(random, 4)) {
        with_some_worker(random, alert_worker);
        return;
    }
    require(NtAlertThreadByThreadId(self) == STATUS_SUCCESS);
    require(NtWaitForAlertByThreadId(NULL, NULL) == STATUS_ALERTED);
    status = NtWaitForAlertByThreadId(NULL, &timeout);
    require(status == STATUS_TIMEOUT || status == STATUS_ALERTED);
    require(NtAlertThreadByThreadId(NULL) == STATUS_INVALID_CID);
}

const soak_family alerts_family = {.name = "alerts by id", .weight = 4, .without_heap = true, .step = alerts_step};

/* Address waits: locks of one, two, four and eight bytes whose owners wake the next. */

static struct {
    volatile UCHAR byte;
    volatile USHORT word;
    volatile ULONG dword;
    volatile ULONG64 qword;
} words;
static soak_cell word_cells[4];

#define LOCK_AND_UNLOCK(place, type, cell, random)                                                                     \
    do {                                                                                                               \
        type taken = 1;                                                                                                \
                                                                                                                       \
        while (__atomic_exchange_n(place, 1, __ATOMIC_SEQ_CST) != 0)                                                   \
            if (!WaitOnAddress(place, &taken, sizeof(taken), one_in(random, 4) ? random_below(random, 3) : INFINITE))  \
                require(GetLastError() == ERROR_TIMEOUT);                                                              \
        change_cell(cell, random);                                                                                     \
        __atomic_store_n(place, 0, __ATOMIC_SEQ_CST);                                                                  \
        if (one_in(random, 8))                                                                                         \
            WakeByAddressAll((PVOID)(place));                                                                          \
        else                                                                                                           \
            WakeByAddressSingle((PVOID)(place));                                                                       \
    } while (0)

static void address_waits_step(test_random *random)
{
    switch (random_below(random, 4)) {
    case 0:
        LOCK_AND_UNLOCK(&words.byte, UCHAR, &word_cells[0], random);
        break;
    case 1:
        LOCK_AND_UNLOCK(&words.word, USHORT, &word_cells[1], random);
        break;
    case 2:
        LOCK_AND_UNLOCK(&words.dword, ULONG, &word_cells[2], random);
        break;
    default:
        LOCK_AND_UNLOCK(&words.qword, ULONG64, &word_cells[3], random);
        break;
    }
}

static void address_waits_check(void)
{
    require(words.byte == 0 && words.word == 0 && words.dword == 0 && words.qword == 0);
}

const soak_family address_waits_family = {.name = "address waits",
                                          .weight = 8,
                                          .without_heap = true,
                                          .step = address_waits_step,
                                          .check = address_waits_check};
