/* Auto-expand pushlocks that grow, and words of several locks that share a cache line. */
#include <interlock/lab.h>

#include <ntifs.h>

#define ENOUGH_MEETINGS 64
#define COLUMN(Lock)    ((Lock)->State >> 8)
#define LOG(Lock)       ((Lock)->State >> 4 & 15)

static PEX_PUSH_LOCK_AUTO_EXPAND lock;
static int value;

static void about_to_grow(void)
{
    lock = ExAllocateAutoExpandPushLock(0);
    lock->Stats = ENOUGH_MEETINGS;
}

static void writer(void)
{
    KeEnterCriticalRegion();
    ExAcquireAutoExpandPushLockExclusive(lock, 0);
    value += 1;
    ExReleaseAutoExpandPushLockExclusive(lock, 0);
    KeLeaveCriticalRegion();
}

static void reader(void)
{
    KeEnterCriticalRegion();
    PEX_PUSH_LOCK mine = ExAcquireAutoExpandPushLockShared(lock, 0);
    int seen = value;
    LabYield();
    LabAssert(value == seen);
    ExReleaseAutoExpandPushLockShared(lock, mine, 0);
    KeLeaveCriticalRegion();
}

/* The second time through the added word, if there is one by then. */
static void read_twice(void)
{
    reader();
    reader();
}

/* It has grown, all of its words are free, and it can be acquired in both modes. */
static void has_grown(void)
{
    LabAssert(lock->State & 1);
    LabAssert(lock->LocalLock == 0);
    KeEnterCriticalRegion();
    PEX_PUSH_LOCK mine = ExAcquireAutoExpandPushLockShared(lock, 0);
    LabAssert(mine != &lock->LocalLock);
    ExReleaseAutoExpandPushLockShared(lock, mine, 0);
    ExAcquireAutoExpandPushLockExclusive(lock, 0);
    LabAssert(*mine != 0);
    ExReleaseAutoExpandPushLockExclusive(lock, 0);
    LabAssert(*mine == 0);
    KeLeaveCriticalRegion();
}

static void can_be_had(void)
{
    LabAssert(lock->LocalLock == 0);
}
LAB_SCENARIO(auto_expand_grows, .Setup = about_to_grow, .Threads = {reader}, .Finish = has_grown);
LAB_SCENARIO(auto_expand_grows_under_readers, .Setup = about_to_grow, .Threads = {reader, reader, reader},
             .Finish = can_be_had);
LAB_SCENARIO(auto_expand_grows_under_writer, .Setup = about_to_grow, .Threads = {read_twice, writer},
             .Finish = can_be_had);
LAB_SCENARIO(auto_expand_writer_before_growth, .Setup = about_to_grow, .Threads = {read_twice, reader, writer},
             .Finish = can_be_had);

/* A reader that uses an added word sees what was written before there was one. */
static void write_and_read(void)
{
    writer();
    reader();
}
LAB_SCENARIO(auto_expand_grows_c11, .Setup = about_to_grow, .Threads = {write_and_read, reader}, .Model = "c11",
             .StaleReads = 1, .Flags = LAB_LARGE);

static void grown(void)
{
    about_to_grow();
    reader();
    lock->Stats = 0;
}

static void grown_once(void)
{
    grown();
    lock->Stats = ENOUGH_MEETINGS;
}
LAB_SCENARIO(auto_expand_grown, .Setup = grown, .Threads = {reader, writer, writer}, .Finish = has_grown);
LAB_SCENARIO(auto_expand_grown_as_far_as_can_be, .Setup = grown_once, .Threads = {reader, reader, writer},
             .Finish = has_grown);

/* With more processors it takes several steps, each after as many contended acquires. */
static void is_at_first_step(void)
{
    LabAssert((lock->State & 1) && LOG(lock) == 1 && lock->LocalLock == 0);
}

static void is_at_second_step(void)
{
    LabAssert((lock->State & 1) && LOG(lock) == 2 && lock->LocalLock == 0);
}
LAB_SCENARIO(auto_expand_first_step, .Setup = about_to_grow, .Threads = {reader, reader}, .Finish = is_at_first_step,
             .Processors = 4);
LAB_SCENARIO(auto_expand_second_step, .Setup = grown_once, .Threads = {reader, reader}, .Finish = is_at_second_step,
             .Processors = 4);
LAB_SCENARIO(auto_expand_second_step_under_writer, .Setup = grown_once, .Threads = {read_twice, writer},
             .Finish = can_be_had, .Processors = 4, .Flags = LAB_LARGE);

/* Contended sharers count, uncontended ones leave the count unchanged. */
static void barely(void)
{
    lock = ExAllocateAutoExpandPushLock(0);
    lock->Stats = ENOUGH_MEETINGS - 1;
}

static void hold(void)
{
    reader();
    KeEnterCriticalRegion();
    PEX_PUSH_LOCK first = ExAcquireAutoExpandPushLockShared(lock, 0);
    PEX_PUSH_LOCK second = ExAcquireAutoExpandPushLockShared(lock, 0);
    LabAssert(lock->Stats == ENOUGH_MEETINGS);
    ExReleaseAutoExpandPushLockShared(lock, second, 0);
    ExReleaseAutoExpandPushLockShared(lock, first, 0);
    KeLeaveCriticalRegion();
}
LAB_SCENARIO(auto_expand_counts, .Setup = barely, .Threads = {hold}, .Finish = has_grown);

/* While sharers do not contend, it stays small. */
static void small(void)
{
    lock = ExAllocateAutoExpandPushLock(0);
}

static void is_small(void)
{
    LabAssert(!(lock->State & 1) && lock->LocalLock == 0);
}
LAB_SCENARIO(auto_expand_stays_small, .Setup = small, .Threads = {reader, writer}, .Finish = is_small);

/* Locks that are allocated and freed concurrently have their own words. */
static PEX_PUSH_LOCK_AUTO_EXPAND made[2];

static void make(int index)
{
    made[index] = ExAllocateAutoExpandPushLock(0);
    LabAssert(made[index] != NULL && COLUMN(made[index]) != 0);
}

static void make_first(void)
{
    make(0);
}

static void make_second(void)
{
    make(1);
}

static void have_their_own(void)
{
    LabAssert(COLUMN(made[0]) != COLUMN(made[1]));
}
LAB_SCENARIO(auto_expand_two_made, .Threads = {make_first, make_second}, .Finish = have_their_own);

static void made_first(void)
{
    made[0] = ExAllocateAutoExpandPushLock(0);
}

static void free_first(void)
{
    ExFreeAutoExpandPushLock(made[0]);
}

static void second_is_next(void)
{
    LabAssert(COLUMN(made[1]) == 1 || COLUMN(made[1]) == 2);
    PEX_PUSH_LOCK_AUTO_EXPAND third = ExAllocateAutoExpandPushLock(0);
    LabAssert(COLUMN(third) != COLUMN(made[1]) && COLUMN(third) <= 2);
}
LAB_SCENARIO(auto_expand_made_while_freed, .Setup = made_first, .Threads = {make_second, free_first},
             .Finish = second_is_next);

/* A lock that reuses the words of a freed lock is ordered after all operations on the freed one. */
static int uses[9];

static void make_and_free(void)
{
    PEX_PUSH_LOCK_AUTO_EXPAND mine = ExAllocateAutoExpandPushLock(0);
    uses[COLUMN(mine)] += 1; /* no race: one at a time owns it */
    ExFreeAutoExpandPushLock(mine);
}
LAB_SCENARIO(auto_expand_made_and_freed, .Setup = made_first, .Threads = {make_and_free, make_and_free},
             .Flags = LAB_CHECK_LEAKS);

/* Eight locks share the lines of one slab; the ninth has words too. */
static void make_nine(void)
{
    for (int i = 0; i < 8; i++)
        ExAllocateAutoExpandPushLock(0);
    about_to_grow();
}
LAB_SCENARIO(auto_expand_ninth, .Setup = make_nine, .Threads = {reader, reader}, .Finish = can_be_had);

/* Without memory for the words the lock stays small and works. */
static void make_without_memory(void)
{
    made[0] = ExAllocateAutoExpandPushLock(0);
    if (made[0] != NULL) {
        lock = made[0];
        lock->Stats = ENOUGH_MEETINGS;
        reader();
        writer();
        ExFreeAutoExpandPushLock(lock);
    }
}
LAB_SCENARIO(auto_expand_without_memory, .Threads = {make_without_memory}, .AllocationFailures = 1);
