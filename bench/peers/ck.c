#include "../bench.h"

#include <ck_epoch.h>
#include <ck_rwlock.h>
#include <ck_spinlock.h>
#include <ck_stack.h>

static ck_spinlock_fas_t fas = CK_SPINLOCK_FAS_INITIALIZER;
static ck_spinlock_ticket_t ticket = CK_SPINLOCK_TICKET_INITIALIZER;
static ck_spinlock_mcs_t mcs = CK_SPINLOCK_MCS_INITIALIZER;
static ck_rwlock_t rwlock = CK_RWLOCK_INITIALIZER;
static ck_stack_t stack __attribute__((aligned(16)));
static ck_epoch_t epoch;
static ck_epoch_record_t record;

BENCH_LOOP(run_fas, ck_spinlock_fas_lock(&fas); ck_spinlock_fas_unlock(&fas))
BENCH_LOOP(run_ticket, ck_spinlock_ticket_lock(&ticket); ck_spinlock_ticket_unlock(&ticket))
BENCH_LOOP(run_mcs, ck_spinlock_mcs_context_t own; ck_spinlock_mcs_lock(&mcs, &own); ck_spinlock_mcs_unlock(&mcs, &own))
BENCH_LOOP(run_read, ck_rwlock_read_lock(&rwlock); ck_rwlock_read_unlock(&rwlock))
BENCH_LOOP(run_epoch, ck_epoch_begin(&record, NULL); ck_epoch_end(&record, NULL))
BENCH_MUTEX_WORK(work_fas, ck_spinlock_fas_lock(&fas), ck_spinlock_fas_unlock(&fas))
BENCH_MUTEX_WORK(work_ticket, ck_spinlock_ticket_lock(&ticket), ck_spinlock_ticket_unlock(&ticket))
BENCH_WORK(work_mcs, ck_spinlock_mcs_context_t own;
           ck_spinlock_mcs_lock(&mcs, &own), ck_spinlock_mcs_unlock(&mcs, &own), (void)0, (void)0)

static inline void push(bench_item *item)
{
    ck_stack_push_mpmc(&stack, (ck_stack_entry_t *)item);
}

static inline bench_item *pop(void)
{
    return (bench_item *)ck_stack_pop_mpmc(&stack);
}

BENCH_STACK(run_stack, work_stack, push(item), pop())

BENCH_CONTENDERS(ck, BENCH_VERSION)
{
    ck_stack_init(&stack);
    ck_epoch_init(&epoch);
    ck_epoch_register(&epoch, &record, NULL);
    bench_add_loop("spinlock", BENCH_PEER, "ck_spinlock_fas", 0, run_fas);
    bench_add_loop("spinlock", BENCH_PEER, "ck_spinlock_ticket", 0, run_ticket);
    bench_add_loop("spinlock", BENCH_PEER, "ck_spinlock_mcs", 0, run_mcs);
    bench_add_loop("spin-shared", BENCH_PEER, "ck_rwlock", 0, run_read);
    bench_add_loop("reference", BENCH_PEER, "ck_epoch", 0, run_epoch);
    bench_add_contended("spin", BENCH_PEER, "ck_spinlock_fas", work_fas);
    bench_add_contended("spin", BENCH_PEER, "ck_spinlock_ticket", work_ticket);
    bench_add_contended("spin", BENCH_PEER, "ck_spinlock_mcs", work_mcs);
    bench_add_loop("stack", BENCH_PEER, "ck_stack_mpmc", 0, run_stack);
    bench_add_contended("stack", BENCH_PEER, "ck_stack_mpmc", work_stack);
}
