/* What is measured. The targets are those of docs/performance.md, set on another machine, so compare ratios. */
#include "bench.h"

#define FULL  0
#define BRIEF 1

#define LOOP(row, family, number, target, brief, title)                                                                \
    {                                                                                                                  \
        row, family, BENCH_KIND_LOOP, number, 0, "ns", target, 0, NULL, brief, title                                   \
    }
/* The target is a multiple of another contender's result. */
#define RELATED(row, family, number, target, relative, brief, title)                                                   \
    {                                                                                                                  \
        row, family, BENCH_KIND_LOOP, number, 0, "ns", target, 0, relative, brief, title                               \
    }
#define CONTENDED(row, family, threads, reads, target, fairness, brief, title)                                         \
    {                                                                                                                  \
        row, family, BENCH_KIND_CONTENDED, threads, reads, "M/s", target, fairness, NULL, brief, title                 \
    }
#define TEAM(row, family, threads, target, brief, title)                                                               \
    {                                                                                                                  \
        row, family, BENCH_KIND_CONTENDED, threads, 0, "ns", target, 0, NULL, brief, title                             \
    }
#define EXCHANGE(row, family, place, target, relative, brief, title)                                                   \
    {                                                                                                                  \
        row, family, BENCH_KIND_EXCHANGE, place, 0, "ns", target, 0, relative, brief, title                            \
    }
#define STREAM(row, family, producers, consumers, target, brief, title)                                                \
    {                                                                                                                  \
        row, family, BENCH_KIND_STREAM, producers, consumers, "ns", target, 0, NULL, brief, title                      \
    }
#define VALUE(row, family, number, unit, target, brief, title)                                                         \
    {                                                                                                                  \
        row, family, BENCH_KIND_VALUE, number, 0, unit, target, 0, NULL, brief, title                                  \
    }

#define TAIL(row, family, threads, brief, title)                                                                       \
    {                                                                                                                  \
        row, family, BENCH_KIND_TAIL, threads, 0, "ns", 0, 0, NULL, brief, title                                       \
    }

const bench_row bench_rows[] = {
    LOOP("exclusive", "exclusive", 1, 0, BRIEF, "lock, unlock"),
    LOOP("shared", "shared", 1, 0, BRIEF, "lock for reading, unlock"),
    LOOP("recursive", "recursive", 1, 0, FULL, "recursive lock, unlock"),
    LOOP("spinlock", "spinlock", 1, 0, BRIEF, "spin lock: lock, unlock"),
    LOOP("spin-shared", "spin-shared", 1, 0, FULL, "spin lock: lock for reading, unlock"),
    LOOP("event", "event", 1, 0, BRIEF, "set an event, satisfied wait"),
    LOOP("reset", "reset", 1, 0, FULL, "set an event, reset it"),
    LOOP("semaphore", "semaphore", 1, 0, BRIEF, "release a semaphore, satisfied wait"),
    LOOP("mutex-object", "mutex-object", 1, 0, FULL, "mutex object: wait, release"),
    LOOP("any-2", "any", 2, 25, BRIEF, "wait for any of 2, the last one signaled"),
    LOOP("any-8", "any", 8, 30, BRIEF, "wait for any of 8, the last one signaled"),
    LOOP("any-64", "any", 64, 70, BRIEF, "wait for any of 64, the last one signaled"),
    LOOP("all-2", "all", 2, 0, FULL, "wait for all of 2, all signaled"),
    LOOP("all-8", "all", 8, 0, FULL, "wait for all of 8, all signaled"),
    LOOP("all-64", "all", 64, 0, BRIEF, "wait for all of 64, all signaled"),
    LOOP("wake-nobody", "wake-nobody", 1, 0, BRIEF, "wake an address with no waiters"),
    LOOP("reference", "reference", 1, 0, BRIEF, "acquire and release a reference or rundown protection"),
    LOOP("handle", "handle", 1, 0, BRIEF, "look up a handle"),
    LOOP("once", "once", 1, 0, FULL, "call-once, already done"),
    LOOP("level", "level", 1, 0, FULL, "raise the interrupt level, lower it"),
    LOOP("alert", "alert", 1, 0, FULL, "alert the current thread, alertable wait"),
    LOOP("packet", "packet", 1, 0, FULL, "wait completion packets"),

    CONTENDED("mutex-2", "mutex", 2, 0, 12, 0.8, BRIEF, "mutex, 2 threads"),
    CONTENDED("mutex-4", "mutex", 4, 0, 15.5, 0.4, BRIEF, "mutex, 4 threads"),
    CONTENDED("mutex-16", "mutex", 16, 0, 15.5, 0.4, FULL, "mutex, 16 threads"),
    CONTENDED("mutex-64", "mutex", 64, 0, 15.5, 0.4, BRIEF, "mutex, 64 threads"),
    CONTENDED("spin-2", "spin", 2, 0, 0, 0, FULL, "spin lock, 2 threads"),
    CONTENDED("readers-100-2", "rwlock", 2, 100, 0, 0, FULL, "100 % readers, 2 threads"),
    CONTENDED("readers-100-4", "rwlock", 4, 100, 16, 0, BRIEF, "100 % readers, 4 threads"),
    CONTENDED("readers-100-16", "rwlock", 16, 100, 0, 0, FULL, "100 % readers, 16 threads"),
    CONTENDED("readers-100-64", "rwlock", 64, 100, 0, 0, FULL, "100 % readers, 64 threads"),
    CONTENDED("readers-95-2", "rwlock", 2, 95, 14, 0.4, FULL, "95 % readers, 2 threads"),
    CONTENDED("readers-95-4", "rwlock", 4, 95, 15.5, 0.4, BRIEF, "95 % readers, 4 threads"),
    CONTENDED("readers-95-16", "rwlock", 16, 95, 14, 0.4, FULL, "95 % readers, 16 threads"),
    CONTENDED("readers-95-64", "rwlock", 64, 95, 13.5, 0.4, FULL, "95 % readers, 64 threads"),
    CONTENDED("readers-50-2", "rwlock", 2, 50, 0, 0, FULL, "50 % readers, 2 threads"),
    CONTENDED("readers-50-4", "rwlock", 4, 50, 13, 0.7, BRIEF, "50 % readers, 4 threads"),
    CONTENDED("readers-50-16", "rwlock", 16, 50, 0, 0, FULL, "50 % readers, 16 threads"),
    CONTENDED("readers-50-64", "rwlock", 64, 50, 10, 0.3, FULL, "50 % readers, 64 threads"),

    RELATED("named-event", "named-event", 1, 2, "without a name", BRIEF, "named event: set, satisfied wait"),
    RELATED("named-semaphore", "named-semaphore", 1, 2, "without a name", FULL,
            "named semaphore: release, satisfied wait"),
    RELATED("named-mutex", "named-mutex", 1, 2, "without a name", FULL, "named mutex: wait, release"),
    RELATED("named-any-64", "named-any", 64, 2, "without a name", FULL, "any of 64 named events, the last one signaled"),
    RELATED("named-all-64", "named-all", 64, 2, "without a name", FULL, "all of 64 named events, all signaled"),
    RELATED("process-event-same", "process-event", 0, 1.15, "shared futex", BRIEF,
            "event round trip between processes, one processor"),
    RELATED("process-event-two", "process-event", 1, 1, "shared futex", BRIEF,
            "event round trip between processes, two processors"),

    EXCHANGE("event-same", "event", BENCH_SAME, 1.1, "futex", BRIEF, "event round trip, one processor"),
    EXCHANGE("event-two", "event", BENCH_TWO, 700, NULL, BRIEF, "event round trip, two processors"),
    EXCHANGE("event-anywhere", "event", BENCH_ANYWHERE, 700, NULL, BRIEF, "event round trip, unpinned"),
    EXCHANGE("condition-same", "condition", BENCH_SAME, 0, NULL, FULL,
             "condition variable round trip, one processor"),
    EXCHANGE("condition-two", "condition", BENCH_TWO, 0, NULL, FULL,
             "condition variable round trip, two processors"),
    EXCHANGE("address-same", "address", BENCH_SAME, 1.15, "futex", BRIEF, "address wait round trip, one processor"),
    EXCHANGE("address-two", "address", BENCH_TWO, 800, NULL, BRIEF, "address wait round trip, two processors"),
    EXCHANGE("any-2-same", "any-2", BENCH_SAME, 0, NULL, FULL, "wait for any of 2, round trip, one processor"),
    EXCHANGE("any-8-same", "any-8", BENCH_SAME, 0, NULL, FULL, "wait for any of 8, round trip, one processor"),
    EXCHANGE("any-64-same", "any-64", BENCH_SAME, 3800, NULL, BRIEF, "wait for any of 64, round trip, one processor"),
    EXCHANGE("any-64-two", "any-64", BENCH_TWO, 0, NULL, FULL, "wait for any of 64, round trip, two processors"),

    LOOP("stack-1", "stack", 1, 30, BRIEF, "stack: push, pop, 1 thread"),
    TEAM("stack-2", "stack", 2, 65, BRIEF, "stack: push, pop, 2 threads, per pair"),
    LOOP("queue-0", "queue", 1, 0, FULL, "queue: put, get, 1 thread"),
    STREAM("queue-1x1", "queue", 1, 1, 35, BRIEF, "queue, 1 producer, 1 consumer, per item"),
    STREAM("queue-2x2", "queue", 2, 2, 60, BRIEF, "queue, 2 producers, 2 consumers, per item"),
    STREAM("queue-8x2", "queue", 8, 2, 0, FULL, "queue, 8 producers, 2 consumers, per item"),
    LOOP("port-0", "port", 1, 0, FULL, "completion port: post, get, 1 thread"),
    STREAM("port-1x1", "port", 1, 1, 70, BRIEF, "completion port, 1 producer, 1 consumer, per item"),
    STREAM("port-2x2", "port", 2, 2, 100, FULL, "completion port, 2 producers, 2 consumers, per item"),
    STREAM("port-8x2", "port", 8, 2, 0, FULL, "completion port, 8 producers, 2 consumers, per item"),

    LOOP("all-bystanders-0", "all-bystanders", 0, 0, FULL, "set, reset an event, in no WaitAll"),
    LOOP("all-bystanders-1k", "all-bystanders", 1000, 0, FULL, "set, reset an event, in 1,000 WaitAlls"),
    LOOP("all-bystanders-4k", "all-bystanders", 4000, 0, FULL, "set, reset an event, in 4,000 WaitAlls"),
    LOOP("port-bystanders-0", "port-bystanders", 0, 0, FULL, "completion port at its limit: post, get"),
    LOOP("port-bystanders-1k", "port-bystanders", 1000, 0, FULL, "the same, 1,000 threads waiting"),
    LOOP("port-bystanders-4k", "port-bystanders", 4000, 0, FULL, "the same, 4,000 threads waiting"),
    LOOP("wake-bystanders-0", "wake-bystanders", 0, 0, FULL, "wake one of 4,096 addresses"),
    LOOP("wake-bystanders-1k", "wake-bystanders", 1000, 0, FULL, "the same, 1,000 threads waiting on other addresses"),
    LOOP("wake-bystanders-4k", "wake-bystanders", 4000, 0, FULL, "the same, 4,000 threads waiting on other addresses"),

    LOOP("timer-set-1k", "timer-set", 1000, 25, FULL, "set a timer among 1,000"),
    LOOP("timer-set-100k", "timer-set", 100000, 25, BRIEF, "set a timer among 100,000"),
    LOOP("timer-set-1m", "timer-set", 1000000, 25, FULL, "set a timer among 1,000,000"),
    LOOP("timer-cancel-1k", "timer-cancel", 1000, 25, FULL, "cancel a timer among 1,000"),
    LOOP("timer-cancel-100k", "timer-cancel", 100000, 25, BRIEF, "cancel a timer among 100,000"),
    LOOP("timer-cancel-1m", "timer-cancel", 1000000, 25, FULL, "cancel a timer among 1,000,000"),
    VALUE("timer-expiry-1k", "timer-expiry", 1000, "ns", 0, FULL, "1,000 timers expire, CPU time per timer"),
    VALUE("timer-expiry-100k", "timer-expiry", 100000, "ns", 0, BRIEF, "100,000 timers expire, CPU time per timer"),
    VALUE("timer-expiry-1m", "timer-expiry", 1000000, "ns", 0, FULL, "1,000,000 timers expire, CPU time per timer"),

    LOOP("pool-work", "pool-work", 1, 0, BRIEF, "thread pool, per work item"),
    LOOP("pool-512-waits", "pool-waits", 512, 0, BRIEF, "512 thread-pool waits satisfied, per wait"),
    LOOP("new-thread", "new-thread", 1, 0, BRIEF, "start and end a thread that uses the library once"),

    TAIL("tail-lock-2", "tail-lock", 2, FULL, "acquire a lock, 2 threads"),
    TAIL("tail-lock-4", "tail-lock", 4, BRIEF, "acquire a lock, 4 threads"),
    TAIL("tail-lock-16", "tail-lock", 16, FULL, "acquire a lock, 16 threads"),
    TAIL("tail-wake", "tail-wake", 2, BRIEF, "wake a sleeping thread, from the signal to its return"),
    TAIL("tail-timer", "tail-timer", 1, BRIEF, "a timer of 1 ms: how late"),
    TAIL("tail-sleep", "tail-sleep", 1, BRIEF, "sleep for 1 ms: how late"),

    VALUE("idle", "idle", 100, "wakeups", 0, BRIEF, "100 waiting threads and a periodic timer, per expiration"),

    VALUE("bytes-lock", "bytes-lock", 1, "bytes", 0, BRIEF, "size of a lock"),
    VALUE("bytes-event", "bytes-event", 1, "bytes", 0, FULL, "size of an event or a semaphore"),
    VALUE("bytes-timer", "bytes-timer", 1, "bytes", 0, FULL, "size of a timer"),
    VALUE("bytes-object", "bytes-object", 1, "bytes", 0, BRIEF, "heap per object that is created"),
    VALUE("bytes-handle", "bytes-handle", 1, "bytes", 0, BRIEF, "heap per further handle to an object"),
    VALUE("bytes-thread", "bytes-thread", 1, "bytes", 0, BRIEF, "memory per thread that has used the library"),
    VALUE("bytes-waiter", "bytes-waiter", 1, "bytes", 0, BRIEF, "additional heap per waiting thread"),
};

const size_t bench_row_count = sizeof(bench_rows) / sizeof(bench_rows[0]);
