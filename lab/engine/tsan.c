/* tsan.c: the entry points that -fsanitize=thread calls, as gcc and clang emit them. */
#include "engine.h"

#include <string.h>

#define CALLER ((uintptr_t)__builtin_return_address(0))

void __tsan_init(void);
void __tsan_func_entry(void *pc);
void __tsan_func_exit(void);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *pc)
{
    (void)pc;
}

void __tsan_func_exit(void)
{
}

static inline __attribute__((always_inline)) void plain(uintptr_t address, size_t size, bool write, uintptr_t pc)
{
    if (!lab_sched_active() || lab_memory_is_tls(address))
        return;
    if (lab->options.precise)
        lab_step_plain(lab->current, address, pc);
    lab_race_access(address, size, write, false, pc);
    if (write) {
        uintptr_t stack = (uintptr_t)lab->current->stack;
        if (address - stack >= STACK_SIZE) {
            /* A thread that writes outside its own stack does not spin. */
            lab->current->watched_count = 0;
        }
        if (lab->options.weak)
            lab_atomic_plain_write(address, size);
    }
    lab_cycle_sweep_access();
}

void lab_tsan_plain(uintptr_t address, size_t size, bool write, uintptr_t pc)
{
    plain(address, size, write, pc);
}

#define PLAIN(size)                                                                                                    \
    void __tsan_read##size(void *address);                                                                             \
    void __tsan_write##size(void *address);                                                                            \
    void __tsan_unaligned_read##size(void *address);                                                                   \
    void __tsan_unaligned_write##size(void *address);                                                                  \
    void __tsan_read_write##size(void *address);                                                                       \
    void __tsan_unaligned_read_write##size(void *address);                                                             \
    void __tsan_volatile_read##size(void *address);                                                                    \
    void __tsan_volatile_write##size(void *address);                                                                   \
    void __tsan_unaligned_volatile_read##size(void *address);                                                          \
    void __tsan_unaligned_volatile_write##size(void *address);                                                         \
    void __tsan_read##size(void *address)                                                                              \
    {                                                                                                                  \
        plain((uintptr_t)address, size, false, CALLER);                                                                \
    }                                                                                                                  \
    void __tsan_write##size(void *address)                                                                             \
    {                                                                                                                  \
        plain((uintptr_t)address, size, true, CALLER);                                                                 \
    }                                                                                                                  \
    void __tsan_unaligned_read##size(void *address)                                                                    \
    {                                                                                                                  \
        plain((uintptr_t)address, size, false, CALLER);                                                                \
    }                                                                                                                  \
    void __tsan_unaligned_write##size(void *address)                                                                   \
    {                                                                                                                  \
        plain((uintptr_t)address, size, true, CALLER);                                                                 \
    }                                                                                                                  \
    void __tsan_read_write##size(void *address)                                                                        \
    {                                                                                                                  \
        plain((uintptr_t)address, size, true, CALLER);                                                                 \
    }                                                                                                                  \
    void __tsan_unaligned_read_write##size(void *address)                                                              \
    {                                                                                                                  \
        plain((uintptr_t)address, size, true, CALLER);                                                                 \
    }                                                                                                                  \
    void __tsan_volatile_read##size(void *address)                                                                     \
    {                                                                                                                  \
        lab_atomic_load((uintptr_t)address, size, __ATOMIC_RELAXED, CALLER);                                           \
        lab_cycle_sweep();                                                                                             \
    }                                                                                                                  \
    void __tsan_volatile_write##size(void *address)                                                                    \
    {                                                                                                                  \
        volatile_write((uintptr_t)address, size, CALLER);                                                              \
    }                                                                                                                  \
    void __tsan_unaligned_volatile_read##size(void *address)                                                           \
    {                                                                                                                  \
        lab_atomic_load((uintptr_t)address, size, __ATOMIC_RELAXED, CALLER);                                           \
        lab_cycle_sweep();                                                                                             \
    }                                                                                                                  \
    void __tsan_unaligned_volatile_write##size(void *address)                                                          \
    {                                                                                                                  \
        volatile_write((uintptr_t)address, size, CALLER);                                                              \
    }

/* The store follows this call: the thread that was just chosen makes it as if it were atomic. */
static void volatile_write(uintptr_t address, size_t size, uintptr_t pc)
{
    lab_atomic_touch(address, size, pc);
    lab_cycle_sweep();
}

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

void __tsan_read_range(void *address, unsigned long size);
void __tsan_write_range(void *address, unsigned long size);
void __tsan_vptr_read(void **address);
void __tsan_vptr_update(void **address, void *value);

void __tsan_read_range(void *address, unsigned long size)
{
    plain((uintptr_t)address, size, false, CALLER);
}

void __tsan_write_range(void *address, unsigned long size)
{
    plain((uintptr_t)address, size, true, CALLER);
}

void __tsan_vptr_read(void **address)
{
    plain((uintptr_t)address, sizeof(void *), false, CALLER);
}

void __tsan_vptr_update(void **address, void *value)
{
    if (*address != value)
        plain((uintptr_t)address, sizeof(void *), true, CALLER);
}

void *__tsan_memcpy(void *to, const void *from, size_t size);
void *__tsan_memmove(void *to, const void *from, size_t size);
void *__tsan_memset(void *to, int value, size_t size);

void *__tsan_memcpy(void *to, const void *from, size_t size)
{
    plain((uintptr_t)from, size, false, CALLER);
    plain((uintptr_t)to, size, true, CALLER);
    return memcpy(to, from, size);
}

void *__tsan_memmove(void *to, const void *from, size_t size)
{
    plain((uintptr_t)from, size, false, CALLER);
    plain((uintptr_t)to, size, true, CALLER);
    return memmove(to, from, size);
}

void *__tsan_memset(void *to, int value, size_t size)
{
    plain((uintptr_t)to, size, true, CALLER);
    return memset(to, value, size);
}

#define RMW(bits, type, name, kind)                                                                                    \
    type __tsan_atomic##bits##_##name(volatile type *address, type operand, int order);                                \
    type __tsan_atomic##bits##_##name(volatile type *address, type operand, int order)                                 \
    {                                                                                                                  \
        type old = (type)lab_atomic_rmw((uintptr_t)address, sizeof(type), kind, operand, order, CALLER);               \
        lab_cycle_sweep();                                                                                             \
        return old;                                                                                                    \
    }

#define ATOMIC(bits, type)                                                                                             \
    type __tsan_atomic##bits##_load(const volatile type *address, int order);                                          \
    void __tsan_atomic##bits##_store(volatile type *address, type value, int order);                                   \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *address, type *expected, type desired, int order, \
                                                      int failure);                                                    \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *address, type *expected, type desired, int order,   \
                                                    int failure);                                                      \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *address, type expected, type desired, int order,    \
                                                    int failure);                                                      \
    type __tsan_atomic##bits##_load(const volatile type *address, int order)                                           \
    {                                                                                                                  \
        type value = (type)lab_atomic_load((uintptr_t)address, sizeof(type), order, CALLER);                           \
        lab_cycle_sweep();                                                                                             \
        return value;                                                                                                  \
    }                                                                                                                  \
    void __tsan_atomic##bits##_store(volatile type *address, type value, int order)                                    \
    {                                                                                                                  \
        lab_atomic_store((uintptr_t)address, sizeof(type), value, order, CALLER);                                      \
        lab_cycle_sweep();                                                                                             \
    }                                                                                                                  \
    int __tsan_atomic##bits##_compare_exchange_strong(volatile type *address, type *expected, type desired, int order, \
                                                      int failure)                                                     \
    {                                                                                                                  \
        type old = (type)lab_atomic_cas((uintptr_t)address, sizeof(type), *expected, desired, order, failure, CALLER); \
        bool success = old == *expected;                                                                               \
        *expected = old;                                                                                               \
        lab_cycle_sweep();                                                                                             \
        return success;                                                                                                \
    }                                                                                                                  \
    int __tsan_atomic##bits##_compare_exchange_weak(volatile type *address, type *expected, type desired, int order,   \
                                                    int failure)                                                       \
    {                                                                                                                  \
        u128 found = *expected;                                                                                        \
        bool success = lab_atomic_cas_weak((uintptr_t)address, sizeof(type), &found, desired, order, failure, CALLER); \
        *expected = (type)found;                                                                                       \
        lab_cycle_sweep();                                                                                             \
        return success;                                                                                                \
    }                                                                                                                  \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *address, type expected, type desired, int order,    \
                                                    int failure)                                                       \
    {                                                                                                                  \
        type old = (type)lab_atomic_cas((uintptr_t)address, sizeof(type), expected, desired, order, failure, CALLER);  \
        lab_cycle_sweep();                                                                                             \
        return old;                                                                                                    \
    }                                                                                                                  \
    RMW(bits, type, exchange, RMW_EXCHANGE)                                                                            \
    RMW(bits, type, fetch_add, RMW_ADD)                                                                                \
    RMW(bits, type, fetch_sub, RMW_SUB)                                                                                \
    RMW(bits, type, fetch_and, RMW_AND)                                                                                \
    RMW(bits, type, fetch_or, RMW_OR)                                                                                  \
    RMW(bits, type, fetch_xor, RMW_XOR)                                                                                \
    RMW(bits, type, fetch_nand, RMW_NAND)

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
ATOMIC(128, u128)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_atomic_thread_fence(int order)
{
    lab_atomic_fence(order, CALLER);
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}
