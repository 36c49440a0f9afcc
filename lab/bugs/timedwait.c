/* A timed wait whose block is on the stack: after a timeout it leaves while the signaler still holds the pointer. */
#include <interlock/lab.h>

#include <stddef.h>

typedef struct wait_block {
    uint32_t state; /* 0 waits, 1 signaled, 2 the signaler is done */
} wait_block;

static wait_block *listed;
static uint32_t lock;

static void acquire(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) != 0)
        ;
}

static void release(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static void unlist(void)
{
    acquire();
    __atomic_store_n(&listed, NULL, __ATOMIC_RELAXED);
    release();
}

static __attribute__((noinline)) void wait_with_timeout(void)
{
    wait_block block = {0};

    __atomic_store_n(&listed, &block, __ATOMIC_RELEASE);
    if (LabChoose(2) == 0) {
        while (__atomic_load_n(&block.state, __ATOMIC_ACQUIRE) == 0)
            LabWaitOnWord(&block.state, 0);
    }
    unlist();
}

/* Unlinks the block under the lock, and uses it afterwards. */
static void signal_after_unlock(void)
{
    acquire();
    wait_block *block = __atomic_load_n(&listed, __ATOMIC_ACQUIRE);
    release();
    if (block != NULL) {
        __atomic_store_n(&block->state, 1, __ATOMIC_RELEASE);
        LabWakeWord(&block->state, 1);
    }
}

static void waiter(void)
{
    wait_with_timeout();
}
LAB_SCENARIO(timedwait_block_gone, .Threads = {waiter, signal_after_unlock}, .Flags = LAB_MAY_BLOCK,
             .Expect = "dead frame");

/* A signaler that is done with the block before it releases the lock. */
static void signal_under_lock(void)
{
    acquire();
    wait_block *block = __atomic_load_n(&listed, __ATOMIC_ACQUIRE);
    if (block != NULL) {
        __atomic_store_n(&block->state, 1, __ATOMIC_RELEASE);
        LabWakeWord(&block->state, 1);
    }
    release();
}
LAB_SCENARIO(timedwait_correct, .Threads = {waiter, signal_under_lock}, .Flags = LAB_MAY_BLOCK);
