/* The lock and the journal of a world, whose owner is killed before any of its stores. */
#include "world.h"

static WO_INDEX record;
static ULONG made; /* transfers that returned */

typedef struct accounts {
    WO_RECORD Record;
    ULONG64 first, second;
} accounts;

static void setup(void)
{
    make_views();
    LabAssert(WopLock(&view[0]));
    WopBegin(&view[0]);
    record = WopAllocate(&view[0], WoTicketRecord, sizeof(accounts));
    WopCommit(&view[0]);
    WopUnlock(&view[0]);
    LabAssert(record != 0);
}

/* Moves 1 from the first account to the second. */
static void transfer(PWO_VIEW own)
{
    accounts *both = WopRecord(own, record, WoTicketRecord);
    LabAssert(WopLock(own));
    LabAssert(both->first + both->second == 0);
    WopBegin(own);
    WopEdit(own, &both->first, both->first - 1);
    WopEdit(own, &both->second, both->second + 1);
    WopCommit(own);
    WopUnlock(own);
    __atomic_fetch_add(&made, 1, __ATOMIC_RELAXED);
}

static void first_process(void)
{
    transfer(become(1));
    LabLeaveProcess();
}

static void second_process(void)
{
    transfer(become(2));
    LabLeaveProcess();
}

static void survivor(void)
{
    transfer(&view[0]);
}

/* Whole transfers only: those that returned, and of each killed process at most one. */
static void adds_up(void)
{
    accounts *both = WopRecord(&view[0], record, WoTicketRecord);
    LabAssert(WopLock(&view[0]));
    LabAssert(view[0].World->Phase == WoPhaseIdle);
    LabAssert(both->first + both->second == 0);
    LabAssert(both->second >= made && both->second <= 3);
    WopUnlock(&view[0]);
}
LAB_SCENARIO(world_lock_killed_owner, .Setup = setup, .Threads = {first_process, survivor}, .Finish = adds_up, .Kills = 1);
LAB_SCENARIO(world_lock_killed_twice, .Setup = setup, .Threads = {first_process, second_process, survivor}, .Finish = adds_up,
             .Kills = 2, .Flags = LAB_LARGE);

/* Allocation: a record is complete or free, and no memory is leaked. */
static void allocate_and_free(PWO_VIEW own)
{
    LabAssert(WopLock(own));
    ULONG64 used = own->World->Used;
    WopBegin(own);
    WO_INDEX mine = WopAllocate(own, WoTicketRecord, 100);
    WopCommit(own);
    LabAssert(mine != 0 && own->World->Used > used);
    WopBegin(own);
    WopFree(own, mine);
    WopCommit(own);
    LabAssert(own->World->Used == used);
    WopUnlock(own);
}

static void first_allocates(void)
{
    allocate_and_free(become(1));
    LabLeaveProcess();
}

static void survivor_allocates(void)
{
    allocate_and_free(&view[0]);
}
LAB_SCENARIO(world_records_killed, .Setup = setup, .Threads = {first_allocates, survivor_allocates}, .Kills = 1);
