/*
 * valgrind.c: reports to helgrind what atomic operations order.
 *
 * Helgrind derives the order of threads from the functions of pthreads. An order by atomic operations, as in the locks
 * of this library, looks like a race to it. But a program that was compiled with -fsanitize=thread calls a function for
 * each of its atomic operations. These are those functions: they do the operation, and report to helgrind that a
 * release comes before every later acquire at the same address. They ignore the compiler's other calls: helgrind sees
 * plain accesses itself.
 *
 * 1. A release is reported before its value is visible, an acquire after the value was read. So helgrind never misses
 *    an existing order. It may assume more: a release stays in effect although another thread has stored since.
 * 2. A store is an exchange. Helgrind takes a locked instruction for a read, so atomic operations do not race with each
 *    other, and a plain write beside them does.
 * 3. Operations are sequentially consistent, whatever order was requested: valgrind runs one thread at a time.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <valgrind/helgrind.h>

static void before(const volatile void *address, int order)
{
    if (order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST)
        ANNOTATE_HAPPENS_BEFORE(address);
}

static void after(const volatile void *address, int order)
{
    if (order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE)
        ANNOTATE_HAPPENS_AFTER(address);
}

/* An operation that is about to fail releases nothing. */
#define COMPARE_EXCHANGE(bits, type, load, exchange)                                                                   \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *address, type *expected, type desired, int order, \
                                                      int failure);                                                    \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *address, type *expected, type desired, int order,   \
                                                    int failure);                                                      \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *address, type expected, type desired, int order,    \
                                                    int failure);                                                      \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *address, type *expected, type desired, int order, \
                                                      int failure)                                                     \
    {                                                                                                                  \
        int done;                                                                                                      \
                                                                                                                       \
        if (load(address) == *expected)                                                                                \
            before(address, order);                                                                                    \
        done = exchange(address, expected, desired);                                                                   \
        after(address, done ? order : failure);                                                                        \
        return done;                                                                                                   \
    }                                                                                                                  \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *address, type *expected, type desired, int order,   \
                                                    int failure)                                                       \
    {                                                                                                                  \
        return __tsan_atomic##bits##_compare_exchange_strong(address, expected, desired, order, failure);              \
    }                                                                                                                  \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *address, type expected, type desired, int order,    \
                                                    int failure)                                                       \
    {                                                                                                                  \
        __tsan_atomic##bits##_compare_exchange_strong(address, &expected, desired, order, failure);                    \
        return expected;                                                                                               \
    }

#define LOAD(bits, type, load)                                                                                         \
    type __tsan_atomic##bits##_load(const volatile type *address, int order);                                          \
    type __tsan_atomic##bits##_load(const volatile type *address, int order)                                           \
    {                                                                                                                  \
        type value = load(address);                                                                                    \
                                                                                                                       \
        after(address, order);                                                                                         \
        return value;                                                                                                  \
    }

#define MODIFY(bits, type, name, modify)                                                                               \
    type __tsan_atomic##bits##_##name(volatile type *address, type operand, int order);                                \
    type __tsan_atomic##bits##_##name(volatile type *address, type operand, int order)                                 \
    {                                                                                                                  \
        type old;                                                                                                      \
                                                                                                                       \
        before(address, order);                                                                                        \
        old = modify(address, operand);                                                                                \
        after(address, order);                                                                                         \
        return old;                                                                                                    \
    }

#define STORE(bits, type)                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *address, type value, int order);                                   \
    void __tsan_atomic##bits##_store(volatile type *address, type value, int order)                                    \
    {                                                                                                                  \
        __tsan_atomic##bits##_exchange(address, value,                                                                 \
                                       order == __ATOMIC_RELAXED ? __ATOMIC_RELAXED : __ATOMIC_RELEASE);               \
    }

#define READ(address) __atomic_load_n(address, __ATOMIC_SEQ_CST)
#define SWAP(address, expected, desired)                                                                               \
    __atomic_compare_exchange_n(address, expected, desired, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)
#define EXCHANGE(address, operand) __atomic_exchange_n(address, operand, __ATOMIC_SEQ_CST)
#define ADD(address, operand)      __atomic_fetch_add(address, operand, __ATOMIC_SEQ_CST)
#define SUB(address, operand)      __atomic_fetch_sub(address, operand, __ATOMIC_SEQ_CST)
#define AND(address, operand)      __atomic_fetch_and(address, operand, __ATOMIC_SEQ_CST)
#define OR(address, operand)       __atomic_fetch_or(address, operand, __ATOMIC_SEQ_CST)
#define XOR(address, operand)      __atomic_fetch_xor(address, operand, __ATOMIC_SEQ_CST)
#define NAND(address, operand)     __atomic_fetch_nand(address, operand, __ATOMIC_SEQ_CST)

#define ATOMIC(bits, type)                                                                                             \
    COMPARE_EXCHANGE(bits, type, READ, SWAP)                                                                           \
    LOAD(bits, type, READ)                                                                                             \
    MODIFY(bits, type, exchange, EXCHANGE)                                                                             \
    MODIFY(bits, type, fetch_add, ADD)                                                                                 \
    MODIFY(bits, type, fetch_sub, SUB)                                                                                 \
    MODIFY(bits, type, fetch_and, AND)                                                                                 \
    MODIFY(bits, type, fetch_or, OR)                                                                                   \
    MODIFY(bits, type, fetch_xor, XOR)                                                                                 \
    MODIFY(bits, type, fetch_nand, NAND)                                                                               \
    STORE(bits, type)

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

/* 16 bytes have one operation only: compare and exchange, by __sync, because __atomic would call libatomic. */
__extension__ typedef unsigned __int128 u128;

static bool swap128(volatile u128 *address, u128 *expected, u128 desired)
{
    u128 old = __sync_val_compare_and_swap(address, *expected, desired);
    bool done = old == *expected;

    *expected = old;
    return done;
}

static u128 read128(const volatile u128 *address)
{
    u128 value = 0;

    swap128((volatile u128 *)address, &value, 0);
    return value;
}

static u128 exchange128(volatile u128 *address, u128 operand)
{
    u128 old = read128(address);

    while (!swap128(address, &old, operand))
        ;
    return old;
}

COMPARE_EXCHANGE(128, u128, read128, swap128)
LOAD(128, u128, read128)
MODIFY(128, u128, exchange, exchange128)
STORE(128, u128)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_atomic_thread_fence(int order)
{
    __atomic_thread_fence(order == __ATOMIC_RELAXED ? __ATOMIC_RELAXED : __ATOMIC_SEQ_CST);
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

#define IGNORED(name)                                                                                                  \
    void __tsan_##name(void *address);                                                                                 \
    void __tsan_##name(void *address)                                                                                  \
    {                                                                                                                  \
        (void)address;                                                                                                 \
    }
#define IGNORED_RANGE(name)                                                                                            \
    void __tsan_##name(void *address, size_t size);                                                                    \
    void __tsan_##name(void *address, size_t size)                                                                     \
    {                                                                                                                  \
        (void)address, (void)size;                                                                                     \
    }
#define IGNORED_SIZE(size)                                                                                             \
    IGNORED(read##size)                                                                                                \
    IGNORED(write##size)                                                                                               \
    IGNORED(read_write##size)                                                                                          \
    IGNORED(unaligned_read##size)                                                                                      \
    IGNORED(unaligned_write##size)                                                                                     \
    IGNORED(unaligned_read_write##size)                                                                                \
    IGNORED(volatile_read##size)                                                                                       \
    IGNORED(volatile_write##size)                                                                                      \
    IGNORED(unaligned_volatile_read##size)                                                                             \
    IGNORED(unaligned_volatile_write##size)

IGNORED_SIZE(1)
IGNORED_SIZE(2)
IGNORED_SIZE(4)
IGNORED_SIZE(8)
IGNORED_SIZE(16)
IGNORED_RANGE(read_range)
IGNORED_RANGE(write_range)
IGNORED(vptr_read)
IGNORED(func_entry)

void __tsan_vptr_update(void **address, void *value);
void __tsan_func_exit(void);
void __tsan_init(void);

void __tsan_vptr_update(void **address, void *value)
{
    (void)address, (void)value;
}

void __tsan_func_exit(void)
{
}

void __tsan_init(void)
{
}

void *__tsan_memcpy(void *to, const void *from, size_t size);
void *__tsan_memmove(void *to, const void *from, size_t size);
void *__tsan_memset(void *to, int value, size_t size);

void *__tsan_memcpy(void *to, const void *from, size_t size)
{
    return memcpy(to, from, size);
}

void *__tsan_memmove(void *to, const void *from, size_t size)
{
    return memmove(to, from, size);
}

void *__tsan_memset(void *to, int value, size_t size)
{
    return memset(to, value, size);
}
