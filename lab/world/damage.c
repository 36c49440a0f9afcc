/* A world that is damaged: every call fails from then on, and every sleeper wakes up, even if the finder of the damage is killed. */
#include "world.h"

#include <string.h>

static const HAL_DEADLINE never = {HalNoDeadline, 0};
static WO_INDEX object;
static int ended;

/* As little as possible: every word is woken. */
static void setup_small(void)
{
    make_views();
    LabAssert(WopLock(&view[0]));
    LabAssert(WopEnterRing(&view[0]) == STATUS_SUCCESS);
    WopUnlock(&view[0]);
    LabAssert(WoCreateWaiter(&view[0], 1, &waiter[0]) == STATUS_SUCCESS);
    object = make_object(WoSynchronizationEvent, 0, 0);
    LabAssert(WoBeginWait(&view[0], waiter[0], &object, 1, WoWaitAny) == STATUS_PENDING);
    view[0].World->Size = view[0].Known = view[0].World->Top;
}

static void poison_and_die(void)
{
    WopPoison(become(1), "the scenario says so");
    LabLeaveProcess();
}

/* The next call of any process. */
static void find_it_damaged(void)
{
    if (LabAwaitProcess(1) && !WoIsPoisoned(&view[2]))
        WopPoison(&view[2], "the scenario says so again");
    LabAssert(!WopLock(&view[2]));
    LabAssert(view[2].World->Lock == 0);
}

static void sleep_for_good(void)
{
    volatile ULONG *word = WoWakeWord(&view[0], waiter[0]);
    NTSTATUS status;
    for (;;) {
        ULONG seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (WoIsGranted(&view[0], waiter[0], &status))
            break;
        if (__atomic_compare_exchange_n(word, &seen, seen | WO_ASLEEP, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            HalWaitShared(word, seen | WO_ASLEEP, &never);
    }
    LabAssert(status == STATUS_FILE_CORRUPT_ERROR);
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
}

/* As the session thread of a process does. */
static void guard_for_good(void)
{
    PWO_PROCESS self = WopAt(&view[0], view[0].Self);
    for (;;) {
        ULONG seen = __atomic_load_n(&self->GuardWord, __ATOMIC_SEQ_CST);
        if (WoIsPoisoned(&view[0]))
            break;
        HalWaitShared(&self->GuardWord, seen, &never);
    }
    __atomic_fetch_add(&ended, 1, __ATOMIC_RELAXED);
}

static void everything_has_ended(void)
{
    LONG previous;
    WO_STATE state;
    LabAssert(ended == 1);
    LabAssert(WoSetEvent(&view[0], object, &previous) == STATUS_FILE_CORRUPT_ERROR);
    LabAssert(WoTryWait(&view[0], waiter[0], &object, 1, WaitAny) == STATUS_FILE_CORRUPT_ERROR);
    LabAssert(WoQueryState(&view[0], object, &state) == STATUS_FILE_CORRUPT_ERROR);
}
LAB_SCENARIO(world_damage_wakes_waiters, .Setup = setup_small, .Threads = {poison_and_die, find_it_damaged, sleep_for_good},
             .Finish = everything_has_ended, .Kills = 1);
LAB_SCENARIO(world_damage_wakes_guards, .Setup = setup_small, .Threads = {poison_and_die, find_it_damaged, guard_for_good},
             .Finish = everything_has_ended, .Kills = 1);

/* Rubbish, which the next owner of the lock finds. */

static void find_rubbish(void)
{
    static CHAR said[500];
    PWO_WORLD world = view[0].World;
    HalCapturePrint(said, sizeof(said));
    world->Lock = 5; /* no process has this key */
    world->Phase = WoPhaseEditing;
    switch (LabChoose(11)) {
    case 0: world->Phase = 17; break;
    case 1: world->Edits = WO_JOURNAL + 1; break;
    case 2: world->Edits = 1, world->Edit[0].Offset = MAXULONGLONG - 7; break;
    case 3: world->Edits = 1, world->Edit[0].Offset = sizeof(*world) + 3; break;
    case 4: world->Edits = 1, world->Edit[0].Offset = FIELD_OFFSET(WO_WORLD, Lock); break;
    case 5: world->Edits = 1, world->Edit[0].Offset = FIELD_OFFSET(WO_WORLD, Edit); break;
    case 6: world->Edits = 0, world->Posts = WO_POSTS + 1; break;
    case 7: world->Phase = WoPhaseFinishing, world->Posts = WO_POSTS + 1; break;
    case 8: world->Phase = WoPhaseFinishing, world->Posts = 1, world->Post[0].Waiter = MAXULONG / 2; break;
    case 9: world->Edits = 0, world->Posts = 0, world->Intention = 17, world->IntentionArgument = object; break;
    default: world->Edits = 0, world->Posts = 0, world->Intention = WoSettle, world->IntentionArgument = 1; break;
    }
    LabAssert(!WopLock(&view[0]));
    LabAssert(WoIsPoisoned(&view[0]) && world->State == WoDamaged && world->Lock == 0);
    LabAssert(strstr(said, "damaged") != NULL);
    said[0] = '\0';
    LabAssert(!WopLock(&view[2]) && said[0] == '\0'); /* once is enough */
    HalCapturePrint(NULL, 0);
}
LAB_SCENARIO(world_rubbish_in_the_journal, .Setup = setup_small, .Threads = {find_rubbish});

/* A journal that is full, or has more grants than a transaction may, is a fault of the library, which must not spread. */
static void overfill(void)
{
    PWO_WAITER record = WopAt(&view[0], waiter[0]);
    LabAssert(WopLock(&view[0]));
    WopBegin(&view[0]);
    switch (LabChoose(4)) {
    case 0:
        view[0].World->Edits = WO_JOURNAL;
        WopEdit(&view[0], &record->Key, 7);
        break;
    case 1:
        WopEdit(&view[0], &view[0].World->Lock, 7);
        break;
    case 2:
        WopEdit(&view[0], (PUCHAR)&record->Key + 4, 7);
        break;
    default:
        view[0].World->Posts = WO_POSTS;
        LabAssert(!WopClaim(&view[0], record, STATUS_WAIT_0));
        LabAssert((record->State & WO_STATE_MASK) == WoWaiting);
        break;
    }
    LabAssert(record->Key == 0);
    WopUnlock(&view[0]);
    LabAssert(WoIsPoisoned(&view[0]) && !WopLock(&view[0]));
}
LAB_SCENARIO(world_journal_overfilled, .Setup = setup_small, .Threads = {overfill});

/* Values of the lock's word that are no process's key. */
static void lock_with_rubbish(void)
{
    static const ULONG64 rubbish[] = {0, 1, WO_LOCK_SLEEPERS, WO_LOCK_SLEEPERS | 1, MAXULONGLONG};
    view[0].World->Lock = rubbish[LabChoose(RTL_NUMBER_OF(rubbish))];
    view[0].World->Phase = WoPhaseIdle;
    LabAssert(WopLock(&view[0]));
    WopUnlock(&view[0]);
    LabAssert(view[0].World->Lock == 0);
}
LAB_SCENARIO(world_rubbish_in_the_lock, .Setup = setup_small, .Threads = {lock_with_rubbish});

/* A view whose file was cut off, and a world that has ended. */
static void lock_what_is_gone(void)
{
    switch (LabChoose(4)) {
    case 0:
        view[0].Poisoned = WO_VIEW_LOST;
        LabAssert(WoIsPoisoned(&view[0]) && !WopLock(&view[0]));
        LabAssert(view[0].World->State == WoDamaged);
        break;
    case 1:
        view[0].World->State = WoEnded;
        LabAssert(WoIsPoisoned(&view[0]) && !WopLock(&view[0]));
        break;
    case 2:
        view[0].World->State = WoEnded;
        view[0].MayHaveEnded = TRUE;
        LabAssert(!WoIsPoisoned(&view[0]) && WopLock(&view[0]));
        WopUnlock(&view[0]);
        break;
    default:
        view[0].World->State = WoDamaged;
        view[0].MayHaveEnded = TRUE;
        LabAssert(WoIsPoisoned(&view[0]) && !WopLock(&view[0]));
        break;
    }
    LabAssert(view[0].World->Lock == 0);
}
LAB_SCENARIO(world_lost_or_ended, .Setup = setup_small, .Threads = {lock_what_is_gone});
