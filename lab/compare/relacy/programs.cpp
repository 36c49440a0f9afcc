/*
 * programs.cpp: the ten programs of lab/compare in Relacy's terms, for the table in docs/lab.md. Built where the headers are
 * installed (Debian: relacy-dev; scripts/ensure-deps compare). run.py runs them all.
 *
 * usage: relacy-programs NAME random|full|bound:N ITERATIONS
 * prints the verdict, the executions until it was known, and the seconds. The caller ends a search that does not
 * finish.
 */
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iostream>

#include <relacy/relacy.hpp> // last: it redefines new, delete and malloc

#define RELAXED rl::mo_relaxed
#define ACQUIRE rl::mo_acquire
#define RELEASE rl::mo_release
#define STRONG  rl::mo_seq_cst

static void pause_in_loop()
{
    rl::yield(1, $);
}

template <bool Broken> struct ticket_lock : rl::test_suite<ticket_lock<Broken>, 3> {
    rl::atomic<unsigned> next_ticket, now_serving;
    rl::var<int> data;

    void before()
    {
        next_ticket($) = 0u;
        now_serving($) = 0u;
        data($) = 0;
    }

    void thread(unsigned)
    {
        unsigned own = next_ticket($).fetch_add(1, RELAXED);

        while (now_serving($).load(Broken ? RELAXED : ACQUIRE) != own)
            pause_in_loop();
        data($) = data($) + 1;
        now_serving($).store(own + 1, RELEASE);
    }
};

template <bool Broken> struct peterson_lock : rl::test_suite<peterson_lock<Broken>, 2> {
    rl::atomic<int> wants[2], turn;
    rl::var<int> data;

    void before()
    {
        wants[0]($) = 0;
        wants[1]($) = 0;
        turn($) = 0;
        data($) = 0;
    }

    void thread(unsigned number)
    {
        int self = (int)number;

        wants[self]($).store(1, Broken ? RELEASE : STRONG);
        turn($).store(1 - self, Broken ? RELEASE : STRONG);
        while (wants[1 - self]($).load(Broken ? ACQUIRE : STRONG) &&
               turn($).load(Broken ? ACQUIRE : STRONG) == 1 - self)
            pause_in_loop();
        data($) = data($) + 1;
        wants[self]($).store(0, RELEASE);
    }
};

template <bool Broken> struct rw_lock : rl::test_suite<rw_lock<Broken>, Broken ? 2 : 3> {
    rl::atomic<int> readers;
    rl::var<int> data;

    void before()
    {
        readers($) = 0;
        data($) = 0;
    }

    void write()
    {
        int none = 0;

        while (!readers($).compare_exchange_strong(none, -1, ACQUIRE, RELAXED)) {
            none = 0;
            pause_in_loop();
        }
        data($) = data($) + 1;
        readers($).store(0, RELEASE);
    }

    void read()
    {
        int count = readers($).load(RELAXED);

        do {
            while (count < 0) {
                count = readers($).load(RELAXED);
                pause_in_loop();
            }
        } while (!readers($).compare_exchange_strong(count, count + 1, ACQUIRE, RELAXED));
        look();
    }

    void read_blindly()
    {
        while (readers($).fetch_add(1, ACQUIRE) < -1)
            readers($).fetch_sub(1, RELAXED);
        look();
    }

    void look()
    {
        int seen = data($);

        readers($).fetch_sub(1, RELEASE);
        RL_ASSERT(seen == 0 || seen == 1);
    }

    void thread(unsigned number)
    {
        if (number == 0)
            write();
        else if (Broken)
            read_blindly();
        else
            read();
    }
};

template <bool Broken> struct seqlock : rl::test_suite<seqlock<Broken>, 2> {
    rl::atomic<unsigned> sequence;
    rl::atomic<int> first, second;

    void before()
    {
        sequence($) = 0u;
        first($) = 0;
        second($) = 0;
    }

    void write()
    {
        unsigned s = sequence($).load(RELAXED);

        sequence($).store(s + 1, RELAXED);
        if (!Broken)
            rl::atomic_thread_fence(RELEASE, $);
        first($).store(1, RELAXED);
        second($).store(1, RELAXED);
        sequence($).store(s + 2, RELEASE);
    }

    void read()
    {
        for (;;) {
            unsigned s = sequence($).load(ACQUIRE);
            int one = first($).load(RELAXED), two = second($).load(RELAXED);
            rl::atomic_thread_fence(ACQUIRE, $);
            if (!(s & 1) && sequence($).load(RELAXED) == s) {
                RL_ASSERT(one == two);
                return;
            }
            pause_in_loop();
        }
    }

    void thread(unsigned number)
    {
        if (number == 0)
            write();
        else
            read();
    }
};

struct node {
    rl::var<int> value;
    rl::atomic<node *> next;
};

template <bool Broken> struct treiber_stack : rl::test_suite<treiber_stack<Broken>, 2> {
    rl::atomic<node *> top;
    node nodes[2];

    void before()
    {
        top($) = (node *)0;
    }

    void push(node *n, int value)
    {
        n->value($) = value;
        node *old = top($).load(RELAXED);
        do
            n->next($).store(old, RELAXED);
        while (!top($).compare_exchange_weak(old, n, Broken ? RELAXED : RELEASE, RELAXED));
    }

    node *pop()
    {
        node *old = top($).load(ACQUIRE);

        while (old != 0 && !top($).compare_exchange_weak(old, old->next($).load(RELAXED), ACQUIRE, ACQUIRE)) {
        }
        return old;
    }

    void thread(unsigned number)
    {
        if (!Broken || number == 0)
            push(&nodes[number], 1);
        if (!Broken || number == 1) {
            node *n = pop();
            RL_ASSERT(Broken || n != 0);
            if (n != 0)
                RL_ASSERT(n->value($) == 1);
        }
    }
};

template <bool Broken>
struct michael_scott_queue : rl::test_suite<michael_scott_queue<Broken>, Broken ? 2 : 3> {
    rl::atomic<node *> head, tail;
    node dummy, items[2];

    void before()
    {
        dummy.next($) = (node *)0;
        head($) = &dummy;
        tail($) = &dummy;
    }

    void enqueue(node *n, int value)
    {
        n->value($) = value;
        n->next($).store((node *)0, RELAXED);
        for (;;) {
            node *last = tail($).load(ACQUIRE), *next = last->next($).load(ACQUIRE);

            if (next != 0) {
                tail($).compare_exchange_strong(last, next, RELEASE, RELAXED);
            } else if (last->next($).compare_exchange_strong(next, n, Broken ? RELAXED : RELEASE, RELAXED)) {
                tail($).compare_exchange_strong(last, n, RELEASE, RELAXED);
                return;
            }
        }
    }

    int dequeue()
    {
        for (;;) {
            node *front = head($).load(ACQUIRE), *next = front->next($).load(ACQUIRE);

            if (next == 0)
                return 0;
            int value = next->value($);
            if (head($).compare_exchange_strong(front, next, RELEASE, RELAXED))
                return value;
        }
    }

    void thread(unsigned number)
    {
        if (number + 1 < (Broken ? 2u : 3u)) {
            enqueue(&items[number], (int)number + 1);
        } else {
            int value = dequeue();
            RL_ASSERT(value >= 0 && value <= 2);
        }
    }
};

template <bool Broken> struct chase_lev_deque : rl::test_suite<chase_lev_deque<Broken>, 2> {
    rl::atomic<int> top, bottom, slots[4], taken[3];

    void before()
    {
        top($) = 0;
        bottom($) = 0;
        for (int i = 0; i < 4; i++)
            slots[i]($) = 0;
        for (int i = 0; i < 3; i++)
            taken[i]($) = 0;
    }

    void push(int value)
    {
        int last = bottom($).load(RELAXED);

        slots[last & 3]($).store(value, RELAXED);
        rl::atomic_thread_fence(RELEASE, $);
        bottom($).store(last + 1, RELAXED);
    }

    int take()
    {
        int last = bottom($).load(RELAXED) - 1, value = 0;

        bottom($).store(last, RELAXED);
        if (!Broken)
            rl::atomic_thread_fence(STRONG, $);
        int first = top($).load(RELAXED);
        if (first <= last) {
            value = slots[last & 3]($).load(RELAXED);
            if (first == last) {
                if (!top($).compare_exchange_strong(first, first + 1, STRONG, RELAXED))
                    value = 0;
                bottom($).store(last + 1, RELAXED);
            }
        } else {
            bottom($).store(last + 1, RELAXED);
        }
        return value;
    }

    int steal()
    {
        int first = top($).load(ACQUIRE);

        rl::atomic_thread_fence(STRONG, $);
        int last = bottom($).load(ACQUIRE);
        if (first >= last)
            return 0;
        int value = slots[first & 3]($).load(RELAXED);
        return top($).compare_exchange_strong(first, first + 1, STRONG, RELAXED) ? value : 0;
    }

    void take_once(int value)
    {
        if (value != 0)
            RL_ASSERT(taken[value]($).fetch_add(1, RELAXED) == 0);
    }

    void thread(unsigned number)
    {
        if (number == 0) {
            push(1);
            push(2);
            take_once(take());
            take_once(take());
        } else {
            take_once(steal());
            if (Broken)
                take_once(steal());
        }
    }
};

template <bool Broken> struct ring_buffer : rl::test_suite<ring_buffer<Broken>, 2> {
    rl::var<int> ring[2];
    rl::atomic<unsigned> written, consumed;

    void before()
    {
        written($) = 0u;
        consumed($) = 0u;
    }

    void produce()
    {
        for (unsigned i = 0; i < 3; i++) {
            while (i - consumed($).load(ACQUIRE) == 2)
                pause_in_loop();
            ring[i % 2]($) = (int)i + 1;
            written($).store(i + 1, Broken ? RELAXED : RELEASE);
        }
    }

    void consume()
    {
        for (unsigned i = 0; i < 3; i++) {
            while (written($).load(ACQUIRE) == i)
                pause_in_loop();
            RL_ASSERT(ring[i % 2]($) == (int)i + 1);
            consumed($).store(i + 1, RELEASE);
        }
    }

    void thread(unsigned number)
    {
        if (number == 0)
            produce();
        else
            consume();
    }
};

template <bool Broken> struct condition_queue : rl::test_suite<condition_queue<Broken>, 4> {
    rl::mutex mutex;
    rl::condition_variable not_empty, not_full;
    rl::var<int> stored, count;

    void before()
    {
        stored($) = 0;
        count($) = 0;
    }

    void put(int value, rl::condition_variable &empty, rl::condition_variable &full)
    {
        mutex.lock($);
        while (count($) == 1)
            full.wait(mutex, $);
        stored($) = value;
        count($) = 1;
        empty.notify_one($);
        mutex.unlock($);
    }

    void get(rl::condition_variable &empty, rl::condition_variable &full)
    {
        mutex.lock($);
        while (count($) == 0)
            empty.wait(mutex, $);
        RL_ASSERT(stored($) != 0);
        count($) = 0;
        full.notify_one($);
        mutex.unlock($);
    }

    void thread(unsigned number)
    {
        rl::condition_variable &full = Broken ? not_empty : not_full;

        if (number < 2)
            put((int)number + 1, not_empty, full);
        else
            get(not_empty, full);
    }
};

template <bool Broken> struct rcu : rl::test_suite<rcu<Broken>, 2> {
    struct version {
        rl::var<int> value;
    };

    rl::atomic<version *> current;
    rl::atomic<int> inside;

    void before()
    {
        version *v = new version();

        v->value($) = 1;
        current($) = v;
        inside($) = 0;
    }

    void after()
    {
        delete current($).load(RELAXED);
    }

    void read()
    {
        inside($).store(1, Broken ? RELEASE : STRONG);
        version *v = current($).load(Broken ? ACQUIRE : STRONG);
        int value = v->value($);
        RL_ASSERT(value == 1 || value == 2);
        inside($).store(0, RELEASE);
    }

    void replace()
    {
        version *made = new version();

        made->value($) = 2;
        version *old = current($).exchange(made, STRONG);
        while (inside($).load(STRONG))
            pause_in_loop();
        delete old;
    }

    void thread(unsigned number)
    {
        if (number == 0)
            read();
        else
            replace();
    }
};

template <typename Program> static void simulate(rl::test_params &parameters)
{
    struct timespec begin, end;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    rl::simulate<Program>(parameters);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    std::cout << (parameters.test_result == rl::test_result_success ? "nothing found"
                                                                   : rl::test_result_str(parameters.test_result))
              << ", " << parameters.stop_iteration << " executions, " << seconds << " s" << std::endl;
}

#define PROGRAM(Name) {#Name, simulate<Name<false>>}, {#Name "_broken", simulate<Name<true>>}

static const struct {
    const char *name;
    void (*simulate)(rl::test_params &parameters);
} programs[] = {
    PROGRAM(ticket_lock),   PROGRAM(peterson_lock),       PROGRAM(rw_lock),         PROGRAM(seqlock),
    PROGRAM(treiber_stack), PROGRAM(michael_scott_queue), PROGRAM(chase_lev_deque), PROGRAM(rcu),
    PROGRAM(ring_buffer),   PROGRAM(condition_queue),
};

int main(int count, char **words)
{
    std::ostream discarded(NULL);
    rl::test_params parameters;

    if (count != 4) {
        std::cerr << "usage: " << words[0] << " NAME random|full|bound:N ITERATIONS" << std::endl;
        return 2;
    }
    parameters.output_stream = &discarded;
    parameters.progress_stream = &discarded;
    parameters.iteration_count = strtoull(words[3], NULL, 10);
    if (strcmp(words[2], "full") == 0)
        parameters.search_type = rl::sched_full;
    if (strncmp(words[2], "bound:", 6) == 0) {
        parameters.search_type = rl::sched_bound;
        parameters.context_bound = (unsigned)atoi(words[2] + 6);
    }
    for (const auto &program : programs)
        if (strcmp(program.name, words[1]) == 0) {
            program.simulate(parameters);
            return 0;
        }
    std::cerr << words[0] << ": there is no program " << words[1] << std::endl;
    return 2;
}
