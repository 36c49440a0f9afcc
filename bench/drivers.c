/* The kinds of measurement. */
#include "drivers.h"
#include "tail.h"

#include <string.h>

#define FEWEST_ROUNDS      16
#define MOST_ROUNDS        1000000000
#define FEWEST_ITEMS       4096
#define ITEMS_PER_PRODUCER 65536
#define MOST_THREADS       64
#define FEWEST_WAITS       8
#define ASLEEP_AFTER       200000 /* nanoseconds: longer than any contender spins */
#define MILLISECOND        1000000

uint64_t bench_shared[2][16] __attribute__((aligned(128)));

/* The number of rounds that takes about this long, found by increasing it. */
static unsigned long rounds_for(const measurement *of, unsigned milliseconds,
                                uint64_t (*run)(unsigned long, const measurement *))
{
    int stream = of->row->kind == BENCH_KIND_STREAM;
    unsigned long fewest = stream ? FEWEST_ITEMS : FEWEST_ROUNDS;
    unsigned long most = stream ? (unsigned long)ITEMS_PER_PRODUCER * of->row->number : MOST_ROUNDS;
    uint64_t wanted = (uint64_t)milliseconds * 1000000, took;
    unsigned long rounds = fewest;

    while ((took = run(rounds, of)) < wanted / 8 && rounds < most)
        rounds *= 4;
    rounds = (unsigned long)((double)rounds * (double)wanted / (double)(took + 1));
    return rounds < fewest ? fewest : rounds > most ? most : rounds;
}

static void sample_timed(measurement *of, unsigned milliseconds, uint64_t (*run)(unsigned long, const measurement *),
                         sample *result)
{
    if (of->rounds == 0 || of->rounds_for != milliseconds) {
        of->rounds = rounds_for(of, milliseconds, run);
        of->rounds_for = milliseconds;
    }
    result->value = (double)run(of->rounds, of) / (double)of->rounds;
}

static uint64_t run_loop(unsigned long count, const measurement *of)
{
    return of->by->loop(count, of->row);
}

static void sample_loop(measurement *of, unsigned milliseconds, sample *result)
{
    bench_bind(0);
    sample_timed(of, milliseconds, run_loop, result);
    bench_unbind();
}

/* A thread that pushes and pops in turn ends with one item: when all have ended, the list is empty. */
bench_item *bench_item_of(const bench_worker *worker)
{
    static bench_item items[MOST_THREADS];

    return &items[worker->index % MOST_THREADS];
}

typedef struct crowd {
    int stop __attribute__((aligned(128)));
    int go, ready;
    void (*work)(bench_worker *);
    int bound; /* each to a processor of its own */
} crowd;

typedef struct member {
    bench_worker worker __attribute__((aligned(128)));
    crowd *all;
} member;

static void await_go(crowd *all)
{
    __atomic_add_fetch(&all->ready, 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&all->go, __ATOMIC_ACQUIRE))
        bench_yield();
}

/* Waits until all threads have started; returns the time. */
static uint64_t let_go(crowd *all, unsigned threads)
{
    uint64_t now;

    while (__atomic_load_n(&all->ready, __ATOMIC_ACQUIRE) != (int)threads)
        bench_yield();
    now = bench_now();
    __atomic_store_n(&all->go, 1, __ATOMIC_RELEASE);
    return now;
}

static void work(void *argument)
{
    member *self = argument;

    if (self->all->bound)
        bench_bind((int)self->worker.index);
    await_go(self->all);
    self->all->work(&self->worker);
}

static void rate(const member *members, unsigned threads, uint64_t took, int per_operation, sample *result)
{
    uint64_t least = UINT64_MAX, most = 0, all = 0;

    for (unsigned i = 0; i < threads; i++) {
        uint64_t count = members[i].worker.count;

        least = count < least ? count : least;
        most = count > most ? count : most;
        all += count;
    }
    result->value = per_operation ? (double)took / (double)(all + 1) : (double)all * 1000 / (double)took;
    result->fairness = most == 0 ? 0 : (double)least / (double)most;
}

/* If there are more threads than processors, the host places them. */
static void sample_contended(measurement *of, unsigned milliseconds, sample *result)
{
    unsigned threads = of->row->number;
    crowd all = {.work = of->by->work, .bound = threads <= (unsigned)bench_processors()};
    member *members = aligned_allocate(sizeof(*members) * threads);
    bench_thread **handles = aligned_allocate(sizeof(void *) * threads);
    uint64_t start;

    for (unsigned i = 0; i < threads; i++) {
        members[i] = (member){{&all.stop, of->row->other, i, (i + 1) * 0x9E3779B97F4A7C15u, 0}, &all};
        handles[i] = bench_thread_start(work, &members[i]);
    }
    start = let_go(&all, threads);
    bench_sleep(milliseconds);
    __atomic_store_n(&all.stop, 1, __ATOMIC_RELAXED);
    start = bench_now() - start;
    for (unsigned i = 0; i < threads; i++)
        bench_thread_join(handles[i]);
    rate(members, threads, start, strcmp(of->row->unit, "ns") == 0, result);
    aligned_free(handles);
    aligned_free(members);
}

typedef struct partner {
    const measurement *of;
    unsigned long count;
} partner;

static void bind_to_place(const bench_row *row, int side)
{
    if (row->number == BENCH_ANYWHERE)
        bench_unbind();
    else
        bench_bind(row->number == BENCH_TWO ? side : 0);
}

static void answer(void *argument)
{
    const partner *self = argument;
    const entry *by = self->of->by;

    bind_to_place(self->of->row, 1);
    by->signal(0);
    for (unsigned long round = 0; round < self->count; round++) {
        by->await(1);
        by->signal(0);
    }
}

static uint64_t exchange(unsigned long count, const entry *by)
{
    uint64_t start = bench_now();

    for (unsigned long round = 0; round < count; round++) {
        by->signal(1);
        by->await(0);
    }
    return bench_now() - start;
}

/* The first reply shows that the partner has started. The first rounds are not measured: at first the placement of the
   threads and the sleep state of the processors are those that the previous contender left. */
static uint64_t run_exchange(unsigned long count, const measurement *of)
{
    unsigned long first = count / 4;
    partner other = {of, first + count};
    bench_thread *thread;
    uint64_t took;

    bind_to_place(of->row, 0);
    thread = bench_thread_start(answer, &other);
    of->by->await(0);
    exchange(first, of->by);
    took = exchange(count, of->by);
    bench_thread_join(thread);
    bench_unbind();
    return took;
}

static void sample_exchange(measurement *of, unsigned milliseconds, sample *result)
{
    sample_timed(of, milliseconds, run_exchange, result);
}

typedef struct end { /* a producer or a consumer */
    const entry *by;
    crowd *all;
    unsigned long count;
    bench_item *items;
    int processor; /* -1: any */
} end;

static void begin_end(const end *self)
{
    if (self->processor >= 0)
        bench_bind(self->processor);
    await_go(self->all);
}

static void produce(void *argument)
{
    const end *self = argument;

    begin_end(self);
    for (unsigned long i = 0; i < self->count; i++)
        self->by->put(&self->items[i]);
}

static void consume(void *argument)
{
    const end *self = argument;

    begin_end(self);
    for (unsigned long i = 0; i < self->count; i++)
        bench_keep(self->by->get());
}

/* Each item is used once, so that the line that a producer writes is not in a consumer's cache. */
static uint64_t run_stream(unsigned long count, const measurement *of)
{
    unsigned producers = of->row->number, consumers = of->row->other, threads = producers + consumers;
    int bound = threads <= (unsigned)bench_processors();
    crowd all = {.stop = 0};
    unsigned long each = count / producers + consumers, all_items = each / consumers * consumers * producers;
    unsigned long per_producer = all_items / producers;
    bench_item *items = aligned_allocate(sizeof(*items) * all_items);
    end *ends = aligned_allocate(sizeof(*ends) * threads);
    bench_thread **handles = aligned_allocate(sizeof(void *) * threads);
    uint64_t start;

    for (unsigned i = 0; i < threads; i++) {
        int puts = i < producers;

        ends[i] = (end){of->by, &all, puts ? per_producer : all_items / consumers,
                        puts ? items + i * per_producer : NULL, bound ? (int)i : -1};
        handles[i] = bench_thread_start(puts ? produce : consume, &ends[i]);
    }
    memset(items, 0, sizeof(*items) * all_items);
    start = let_go(&all, threads);
    for (unsigned i = 0; i < threads; i++)
        bench_thread_join(handles[i]);
    start = bench_now() - start;
    aligned_free(handles);
    aligned_free(ends);
    aligned_free(items);
    return start;
}

static void sample_stream(measurement *of, unsigned milliseconds, sample *result)
{
    sample_timed(of, milliseconds, run_stream, result);
}

/* Tails. The recorded values stay until the next sample. */

static bench_tail recorded;

static double percentile(const bench_tail *tail, double share)
{
    uint64_t all = 0, below = 0;
    unsigned bucket = 0;

    for (unsigned i = 0; i < BENCH_TAIL_BUCKETS; i++)
        all += tail->counts[i];
    while (bucket < BENCH_TAIL_BUCKETS - 1 && (double)(below + tail->counts[bucket]) < share * (double)all)
        below += tail->counts[bucket++];
    return (double)bench_tail_end(bucket);
}

static void add_tail(const bench_tail *tail)
{
    for (unsigned i = 0; i < BENCH_TAIL_BUCKETS; i++)
        recorded.counts[i] += tail->counts[i];
    recorded.longest = tail->longest > recorded.longest ? tail->longest : recorded.longest;
}

typedef struct tail_member {
    bench_worker worker __attribute__((aligned(128)));
    crowd *all;
    const entry *by;
    bench_tail tail;
} tail_member;

static void work_for_tail(void *argument)
{
    tail_member *self = argument;

    if (self->all->bound)
        bench_bind((int)self->worker.index);
    await_go(self->all);
    self->by->tail_work(&self->worker, &self->tail);
}

static void record_lock(const measurement *of, unsigned milliseconds)
{
    unsigned threads = of->row->number;
    crowd all = {.bound = threads <= (unsigned)bench_processors()};
    tail_member *members = aligned_allocate(sizeof(*members) * threads);
    bench_thread **handles = aligned_allocate(sizeof(void *) * threads);

    for (unsigned i = 0; i < threads; i++) {
        members[i].worker = (bench_worker){&all.stop, 0, i, (i + 1) * 0x9E3779B97F4A7C15u, 0};
        members[i].all = &all;
        members[i].by = of->by;
        handles[i] = bench_thread_start(work_for_tail, &members[i]);
    }
    let_go(&all, threads);
    bench_sleep(milliseconds);
    __atomic_store_n(&all.stop, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < threads; i++) {
        bench_thread_join(handles[i]);
        add_tail(&members[i].tail);
    }
    aligned_free(handles);
    aligned_free(members);
}

/* A thread that waits, and when the signal was sent. */
typedef struct sleeper {
    const entry *by;
    uint64_t sent __attribute__((aligned(128)));
    int waits __attribute__((aligned(128))); /* it is about to wait */
    int stop;
} sleeper;

static void await_signals(void *argument)
{
    sleeper *self = argument;

    bench_bind(bench_processors() > 1);
    for (;;) {
        __atomic_store_n(&self->waits, 1, __ATOMIC_RELEASE);
        self->by->await(0);
        uint64_t now = bench_now();
        if (__atomic_load_n(&self->stop, __ATOMIC_ACQUIRE))
            return;
        bench_tail_record(&recorded, now - self->sent);
    }
}

static void signal_sleeper(sleeper *to)
{
    uint64_t since;

    while (!__atomic_load_n(&to->waits, __ATOMIC_ACQUIRE))
        bench_yield();
    __atomic_store_n(&to->waits, 0, __ATOMIC_RELAXED);
    for (since = bench_now(); bench_now() - since < ASLEEP_AFTER;)
        bench_pause();
    to->sent = bench_now();
    to->by->signal(0);
}

static void record_wake(const measurement *of, unsigned milliseconds)
{
    sleeper one = {.by = of->by};
    bench_thread *thread = bench_thread_start(await_signals, &one);
    uint64_t until = bench_now() + (uint64_t)milliseconds * MILLISECOND;

    bench_bind(0);
    for (unsigned i = 0; i < FEWEST_WAITS || bench_now() < until; i++)
        signal_sleeper(&one);
    while (!__atomic_load_n(&one.waits, __ATOMIC_ACQUIRE))
        bench_yield();
    __atomic_store_n(&one.stop, 1, __ATOMIC_RELEASE);
    of->by->signal(0);
    bench_thread_join(thread);
    bench_unbind();
}

static void record_sleep(const measurement *of, unsigned milliseconds)
{
    uint64_t until = bench_now() + (uint64_t)milliseconds * MILLISECOND;

    for (unsigned i = 0; i < FEWEST_WAITS || bench_now() < until; i++) {
        uint64_t took = bench_now();

        of->by->millisecond();
        took = bench_now() - took;
        bench_tail_record(&recorded, took > MILLISECOND ? took - MILLISECOND : 0);
    }
}

static void sample_tail(measurement *of, unsigned milliseconds, sample *result)
{
    memset(&recorded, 0, sizeof(recorded));
    if (of->by->tail_work != NULL)
        record_lock(of, milliseconds);
    else if (of->by->await != NULL)
        record_wake(of, milliseconds);
    else
        record_sleep(of, milliseconds);
    result->value = percentile(&recorded, 0.99);
    result->tail = &recorded;
}

static void sample_value(measurement *of, unsigned milliseconds, sample *result)
{
    (void)milliseconds;
    result->value = of->by->value(of->row);
}

void take_sample(measurement *of, unsigned milliseconds, sample *result)
{
    static void (*const drivers[])(measurement *, unsigned, sample *) = {
        [BENCH_KIND_LOOP] = sample_loop,         [BENCH_KIND_CONTENDED] = sample_contended,
        [BENCH_KIND_EXCHANGE] = sample_exchange, [BENCH_KIND_STREAM] = sample_stream,
        [BENCH_KIND_VALUE] = sample_value,       [BENCH_KIND_TAIL] = sample_tail,
    };

    drivers[of->row->kind](of, milliseconds, result);
}

int uses_two_processors(const bench_row *row)
{
    return row->kind == BENCH_KIND_CONTENDED || row->kind == BENCH_KIND_STREAM ||
           (row->kind == BENCH_KIND_EXCHANGE && row->number != BENCH_SAME) ||
           (row->kind == BENCH_KIND_TAIL && row->number > 1) ||
           (strcmp(row->family, "process-event") == 0 && row->number != 0);
}

void count_rounds(const measurement *of, unsigned long rounds)
{
    bench_keep(of->by->loop(rounds, of->row));
}
