/* Several threads on one word: no update is lost, whichever barrier the operation has. */
#include "support.h"

#include <sched.h>
#include <string.h>

#include <interlock/interlocked.h>

#define THREADS 4
#define ROUNDS  100000
#define SECONDS 60

struct shared {
    _Alignas(64) volatile LONG64 word[8];
    unsigned long rounds;
    LONG wrong;
    LONG64 held[THREADS];
};

static void report(struct shared *s, BOOLEAN right)
{
    if (!right)
        InterlockedIncrement(&s->wrong);
}

static void run(struct shared *s, test_thread_function *function)
{
    run_threads(THREADS, SECONDS, function, s);
    assert_int_equal(s->wrong, 0);
}

/* Each thread uses the barrier of its number: full, acquire, release, none. */
#define BY_BARRIER(Index, Full, Acquire, Release, NoFence, Arguments)                              \
    ((Index) == 0   ? Full Arguments                                                               \
     : (Index) == 1 ? Acquire Arguments                                                            \
     : (Index) == 2 ? Release Arguments                                                            \
                    : NoFence Arguments)
#define FOUR(Index, Base, Suffix, Arguments)                                                       \
    BY_BARRIER(Index, Base##Suffix, Base##Acquire##Suffix, Base##Release##Suffix,                  \
               Base##NoFence##Suffix, Arguments)
#define FOUR_AFTER(Index, Base, Arguments)                                                         \
    BY_BARRIER(Index, Base, Base##Acquire, Base##Release, Base##NoFence, Arguments)
#define ONE(Index, Base, Suffix, Arguments) Base##Suffix Arguments

/* Sums: the word ends as the sum of what all threads added in all rounds, modulo its width. */
#define SUM(Name, Type, Operation, Operand, Change)                                                \
    static void Name##_thread(void *argument, unsigned index)                                      \
    {                                                                                              \
        struct shared *const s = argument;                                                         \
        Type volatile *const word = (Type volatile *)&s->word[0];                                  \
        for (unsigned long n = 0; n < s->rounds; n++) {                                            \
            const Type step = (Type)(index * 0x1357 + n);                                          \
            (void)step;                                                                            \
            Operation Operand;                                                                     \
        }                                                                                          \
    }                                                                                              \
    static void Name(void **state)                                                                 \
    {                                                                                              \
        struct shared s = {.rounds = test_rounds(ROUNDS)};                                         \
        uint64_t sum = 0;                                                                          \
        (void)state;                                                                               \
        run(&s, Name##_thread);                                                                    \
        for (unsigned index = 0; index < THREADS; index++)                                         \
            for (unsigned long n = 0; n < s.rounds; n++) {                                         \
                const uint64_t step = index * 0x1357 + n;                                          \
                (void)step;                                                                        \
                sum += (uint64_t)(Change);                                                         \
            }                                                                                      \
        assert_true((Type)(ULONG_PTR)s.word[0] == (Type)sum);                                      \
        assert_true(sizeof(Type) == 8 || (uint64_t)s.word[0] >> 8 * (sizeof(Type) % 8) == 0);      \
    }

SUM(increment_16, SHORT, FOUR, (index, InterlockedIncrement, 16, (word)), 1)
SUM(increment_32, LONG, FOUR, (index, InterlockedIncrement, , (word)), 1)
SUM(increment_64, LONG64, FOUR, (index, InterlockedIncrement, 64, (word)), 1)
SUM(decrement_16, SHORT, FOUR, (index, InterlockedDecrement, 16, (word)), -1)
SUM(decrement_32, LONG, FOUR, (index, InterlockedDecrement, , (word)), -1)
SUM(decrement_64, LONG64, FOUR, (index, InterlockedDecrement, 64, (word)), -1)
SUM(add_32, LONG, FOUR, (index, InterlockedAdd, , (word, step)), step)
SUM(add_64, LONG64, FOUR, (index, InterlockedAdd, 64, (word, step)), step)
SUM(exchange_add_8, CHAR, ONE, (index, InterlockedExchangeAdd, 8, (word, step)), step)
SUM(exchange_add_16, SHORT, ONE, (index, InterlockedExchangeAdd, 16, (word, step)), step)
SUM(exchange_add_32, LONG, FOUR, (index, InterlockedExchangeAdd, , (word, step)), step)
SUM(exchange_add_64, LONG64, FOUR, (index, InterlockedExchangeAdd, 64, (word, step)), step)
SUM(exchange_subtract_32, ULONG, ONE, (index, InterlockedExchangeSubtract, , (word, step)), -step)

/* Increments by compare-exchange: as many succeed as there are rounds. */
#define COMPARE(Name, Type, Four, Base, Suffix)                                                    \
    static void Name##_thread(void *argument, unsigned index)                                      \
    {                                                                                              \
        struct shared *const s = argument;                                                         \
        Type volatile *const word = (Type volatile *)&s->word[0];                                  \
        (void)index;                                                                               \
        for (unsigned long n = 0; n < s->rounds; n++) {                                            \
            Type seen = __atomic_load_n(word, __ATOMIC_RELAXED), old;                              \
            while ((old = Four(index, Base, Suffix, (word, (Type)((ULONG_PTR)seen + 1), seen))) != \
                   seen)                                                                           \
                seen = old;                                                                        \
        }                                                                                          \
    }                                                                                              \
    static void Name(void **state)                                                                 \
    {                                                                                              \
        struct shared s = {.rounds = test_rounds(ROUNDS)};                                         \
        (void)state;                                                                               \
        run(&s, Name##_thread);                                                                    \
        assert_true((Type)(ULONG_PTR)s.word[0] == (Type)(ULONG_PTR)(THREADS * s.rounds));          \
    }

COMPARE(compare_exchange_8, CHAR, ONE, InterlockedCompareExchange, 8)
COMPARE(compare_exchange_16, SHORT, FOUR, InterlockedCompareExchange, 16)
COMPARE(compare_exchange_32, LONG, FOUR, InterlockedCompareExchange, )
COMPARE(compare_exchange_64, LONG64, FOUR, InterlockedCompareExchange, 64)
COMPARE(compare_exchange_pointer, PVOID, FOUR, InterlockedCompareExchangePointer, )

/* Tokens: the word and each thread hold one; exchanging moves them and loses none. */
#define EXCHANGE(Name, Type, Four, Base, Suffix)                                                   \
    static void Name##_thread(void *argument, unsigned index)                                      \
    {                                                                                              \
        struct shared *const s = argument;                                                         \
        Type volatile *const word = (Type volatile *)&s->word[0];                                  \
        Type token = (Type)(ULONG_PTR)(index + 1);                                                 \
        for (unsigned long n = 0; n < s->rounds; n++)                                              \
            token = Four(index, Base, Suffix, (word, token));                                      \
        s->held[index] = (LONG64)token;                                                            \
    }                                                                                              \
    static void Name(void **state)                                                                 \
    {                                                                                              \
        struct shared s = {.rounds = test_rounds(ROUNDS)};                                         \
        unsigned seen = 0;                                                                         \
        (void)state;                                                                               \
        run(&s, Name##_thread);                                                                    \
        for (unsigned i = 0; i < THREADS; i++)                                                     \
            seen |= 1u << s.held[i];                                                               \
        seen |= 1u << s.word[0];                                                                   \
        assert_int_equal(seen, (1u << (THREADS + 1)) - 1);                                         \
    }

EXCHANGE(exchange_8, CHAR, ONE, InterlockedExchange, 8)
EXCHANGE(exchange_16, SHORT, ONE, InterlockedExchange, 16)
EXCHANGE(exchange_32, LONG, FOUR, InterlockedExchange, )
EXCHANGE(exchange_64, LONG64, FOUR, InterlockedExchange, 64)
EXCHANGE(exchange_pointer, PVOID, FOUR, InterlockedExchangePointer, )

/* Each thread owns some bits of the word, and checks in every old value that no other thread changes them. */
#define LOGIC(Name, Type, And, Or, Xor)                                                            \
    static void Name##_thread(void *argument, unsigned index)                                      \
    {                                                                                              \
        struct shared *const s = argument;                                                         \
        Type volatile *const word = (Type volatile *)&s->word[0];                                  \
        const Type own = (Type)(0x1111111111111111u << index);                                     \
        for (unsigned long n = 0; n < s->rounds; n++) {                                            \
            report(s, (Or(own) & own) == 0);                                                       \
            report(s, (Xor(own) & own) == own);                                                    \
            report(s, (Xor(own) & own) == 0);                                                      \
            report(s, (And((Type)~own) & own) == own);                                             \
        }                                                                                          \
    }                                                                                              \
    static void Name(void **state)                                                                 \
    {                                                                                              \
        struct shared s = {.rounds = test_rounds(ROUNDS)};                                         \
        (void)state;                                                                               \
        run(&s, Name##_thread);                                                                    \
        assert_true(s.word[0] == 0);                                                               \
    }

#define AND_8(v)  InterlockedAnd8(word, v)
#define OR_8(v)   InterlockedOr8(word, v)
#define XOR_8(v)  InterlockedXor8(word, v)
#define AND_16(v) InterlockedAnd16(word, v)
#define OR_16(v)  InterlockedOr16(word, v)
#define XOR_16(v) InterlockedXor16(word, v)
#define AND_32(v) FOUR_AFTER(index, InterlockedAnd, (word, v))
#define OR_32(v)  FOUR_AFTER(index, InterlockedOr, (word, v))
#define XOR_32(v) FOUR_AFTER(index, InterlockedXor, (word, v))
#define AND_64(v) FOUR_AFTER(index, InterlockedAnd64, (word, v))
#define OR_64(v)  FOUR_AFTER(index, InterlockedOr64, (word, v))
#define XOR_64(v) FOUR_AFTER(index, InterlockedXor64, (word, v))
LOGIC(logic_8, CHAR, AND_8, OR_8, XOR_8)
LOGIC(logic_16, SHORT, AND_16, OR_16, XOR_16)
LOGIC(logic_32, LONG, AND_32, OR_32, XOR_32)
LOGIC(logic_64, LONG64, AND_64, OR_64, XOR_64)

#define BITS(Name, Type, Suffix)                                                                   \
    static void Name##_thread(void *argument, unsigned index)                                      \
    {                                                                                              \
        struct shared *const s = argument;                                                         \
        Type volatile *const word = (Type volatile *)&s->word[0];                                  \
        for (unsigned long n = 0; n < s->rounds; n++) {                                            \
            const Type bit = (Type)(n % 50 * THREADS + index);                                     \
            report(s, FOUR_AFTER(index, InterlockedBitTestAndSet##Suffix, (word, bit)) == 0);      \
            report(s, FOUR_AFTER(index, InterlockedBitTestAndComplement##Suffix, (word, bit)));    \
            report(s, !FOUR_AFTER(index, InterlockedBitTestAndComplement##Suffix, (word, bit)));   \
            report(s, FOUR_AFTER(index, InterlockedBitTestAndReset##Suffix, (word, bit)) == 1);    \
        }                                                                                          \
    }                                                                                              \
    static void Name(void **state)                                                                 \
    {                                                                                              \
        struct shared s = {.rounds = test_rounds(ROUNDS)};                                         \
        (void)state;                                                                               \
        run(&s, Name##_thread);                                                                    \
        for (unsigned i = 0; i < ARRAYSIZE(s.word); i++)                                           \
            assert_true(s.word[i] == 0);                                                           \
    }
BITS(bits_32, LONG, )
BITS(bits_64, LONG64, 64)

/* The two halves belong together: no compare-exchange with a torn pair ever succeeds. */
static void compare_exchange_128_thread(void *argument, unsigned index)
{
    struct shared *const s = argument;

    (void)index;
    for (unsigned long n = 0; n < s->rounds; n++) {
        LONG64 seen[2] = {0, 0};

        while (!InterlockedCompareExchange128(s->word, ~(seen[0] + 1), seen[0] + 1, seen))
            report(s, seen[1] == ~seen[0] || (seen[0] == 0 && seen[1] == 0));
    }
}

static void compare_exchange_128(void **state)
{
    struct shared s = {.rounds = test_rounds(ROUNDS)};

    (void)state;
    run(&s, compare_exchange_128_thread);
    assert_true(s.word[0] == (LONG64)(THREADS * s.rounds));
    assert_true(s.word[1] == ~s.word[0]);
}

/* What was written before a release is seen after the acquire that reads it. TSan detects it if not. */
struct message {
    _Alignas(64) volatile LONG full;
    _Alignas(64) unsigned long text[4];
    unsigned long rounds;
    LONG wrong;
};

static void wait_until(volatile LONG *flag, LONG value)
{
    for (unsigned spins = 0; ReadAcquire(flag) != value; spins++) {
        YieldProcessor();
        if (spins % 64 == 63)
            sched_yield();
    }
}

static void message_thread(void *argument, unsigned index)
{
    struct message *const m = argument;

    for (unsigned long n = 0; n < m->rounds; n++) {
        wait_until(&m->full, (LONG)index);
        for (unsigned i = 0; i < ARRAYSIZE(m->text); i++) {
            if (index == 0)
                m->text[i] = n + i;
            else if (m->text[i] != n + i)
                InterlockedIncrement(&m->wrong);
        }
        WriteRelease(&m->full, !index);
    }
}

static void acquire_release(void **state)
{
    struct message m = {.rounds = test_rounds(ROUNDS)};

    (void)state;
    run_threads(2, SECONDS, message_thread, &m);
    assert_int_equal(m.wrong, 0);
}

/* Store, barrier, load of the other's store: at least one of the two threads sees the other. Both walk through many
   words, so that they often meet at one. */
#define PLACES 256

struct crossing {
    _Alignas(64) volatile LONG arrived;
    struct {
        _Alignas(64) volatile LONG flag;
        LONG seen;
    } places[2][PLACES];
    unsigned long rounds;
    int exchange;
    unsigned long missed;
};

static void meet(struct crossing *c, LONG *arrivals)
{
    *arrivals += 2;
    InterlockedIncrement(&c->arrived);
    for (unsigned spins = 0; ReadAcquire(&c->arrived) < *arrivals; spins++) {
        YieldProcessor();
        if (spins % 4096 == 4095)
            sched_yield();
    }
}

static void crossing_thread(void *argument, unsigned index)
{
    struct crossing *const c = argument;
    LONG arrivals = 0;

    for (unsigned long n = 0; n < c->rounds; n += PLACES) {
        meet(c, &arrivals);
        for (unsigned i = 0; i < PLACES; i++) {
            if (c->exchange) {
                InterlockedExchange(&c->places[index][i].flag, 1);
            } else {
                WriteNoFence(&c->places[index][i].flag, 1);
                MemoryBarrier();
            }
            c->places[index][i].seen = ReadNoFence(&c->places[!index][i].flag);
        }
        meet(c, &arrivals);
        if (index == 0)
            for (unsigned i = 0; i < PLACES; i++) {
                c->missed += !c->places[0][i].seen && !c->places[1][i].seen;
                c->places[0][i].flag = c->places[1][i].flag = 0;
            }
    }
}

static void full_barrier(void **state)
{
    static struct crossing c;

    (void)state;
    for (int exchange = 0; exchange < 2; exchange++) {
        memset(&c, 0, sizeof(c));
        c.rounds = test_rounds(10 * ROUNDS);
        c.exchange = exchange;
        run_threads(2, SECONDS, crossing_thread, &c);
        assert_int_equal(c.missed, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(increment_16),
        cmocka_unit_test(increment_32),
        cmocka_unit_test(increment_64),
        cmocka_unit_test(decrement_16),
        cmocka_unit_test(decrement_32),
        cmocka_unit_test(decrement_64),
        cmocka_unit_test(add_32),
        cmocka_unit_test(add_64),
        cmocka_unit_test(exchange_add_8),
        cmocka_unit_test(exchange_add_16),
        cmocka_unit_test(exchange_add_32),
        cmocka_unit_test(exchange_add_64),
        cmocka_unit_test(exchange_subtract_32),
        cmocka_unit_test(compare_exchange_8),
        cmocka_unit_test(compare_exchange_16),
        cmocka_unit_test(compare_exchange_32),
        cmocka_unit_test(compare_exchange_64),
        cmocka_unit_test(compare_exchange_pointer),
        cmocka_unit_test(compare_exchange_128),
        cmocka_unit_test(exchange_8),
        cmocka_unit_test(exchange_16),
        cmocka_unit_test(exchange_32),
        cmocka_unit_test(exchange_64),
        cmocka_unit_test(exchange_pointer),
        cmocka_unit_test(logic_8),
        cmocka_unit_test(logic_16),
        cmocka_unit_test(logic_32),
        cmocka_unit_test(logic_64),
        cmocka_unit_test(bits_32),
        cmocka_unit_test(bits_64),
        cmocka_unit_test(acquire_release),
        cmocka_unit_test(full_barrier),
    };
    return cmocka_run_group_tests_name("interlocked/conservation", tests, NULL, NULL);
}
