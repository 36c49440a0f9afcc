/*
 * interlocked.h: interlocked operations, barriers and interlocked lists, inline. A plain name is a full barrier;
 * Acquire, Release and NoFence weaken it. The names of the compiler's intrinsics (_InterlockedIncrement_acq, …) are
 * macros.
 */
#ifndef INTERLOCK_INTERLOCKED_H
#define INTERLOCK_INTERLOCKED_H

#include <interlock/windef.h>

INTERLOCK_BEGIN

#define INTERLOCK_TARGET(Type, Address)   ((volatile INTERLOCK_ALIAS(Type) *)(Address))
#define INTERLOCK_CONSTANT(Type, Address) ((const volatile INTERLOCK_ALIAS(Type) *)(Address))
#define INTERLOCK_ALIAS(Type)             __typeof__(Type) __attribute__((may_alias))

#define INTERLOCK_STEP(Name, Type, Op, Order)                                                      \
    FORCEINLINE Type Name(_Inout_ Type volatile *Addend)                                           \
    {                                                                                              \
        const Type value =                                                                         \
            __atomic_##Op##_fetch(INTERLOCK_TARGET(Type, Addend), 1, __ATOMIC_##Order);            \
        INTERLOCK_THEN_##Order;                                                                    \
        return value;                                                                              \
    }
#define INTERLOCK_NEW(Name, Type, Op, Order)                                                       \
    FORCEINLINE Type Name(_Inout_ Type volatile *Target, _In_ Type Value)                          \
    {                                                                                              \
        Value = __atomic_##Op##_fetch(INTERLOCK_TARGET(Type, Target), Value, __ATOMIC_##Order);    \
        INTERLOCK_THEN_##Order;                                                                    \
        return Value;                                                                              \
    }
#define INTERLOCK_OLD(Name, Type, Op, Order)                                                       \
    FORCEINLINE Type Name(_Inout_ Type volatile *Target, _In_ Type Value)                          \
    {                                                                                              \
        Value = __atomic_fetch_##Op(INTERLOCK_TARGET(Type, Target), Value, __ATOMIC_##Order);      \
        INTERLOCK_THEN_##Order;                                                                    \
        return Value;                                                                              \
    }
#define INTERLOCK_EXCHANGE(Name, Type, Order)                                                      \
    FORCEINLINE Type Name(_Inout_ Type volatile *Target, _In_opt_ Type Value)                      \
    {                                                                                              \
        Value = __atomic_exchange_n(INTERLOCK_TARGET(Type, Target), Value, __ATOMIC_##Order);      \
        INTERLOCK_THEN_##Order;                                                                    \
        return Value;                                                                              \
    }
#define INTERLOCK_COMPARE_EXCHANGE(Name, Type, Order)                                              \
    FORCEINLINE Type Name(_Inout_ Type volatile *Destination, _In_opt_ Type Exchange,              \
                          _In_opt_ Type Comparand)                                                 \
    {                                                                                              \
        __atomic_compare_exchange_n(INTERLOCK_TARGET(Type, Destination), &Comparand, Exchange, 0,  \
                                    __ATOMIC_##Order, INTERLOCK_FAILED_##Order);                   \
        INTERLOCK_THEN_##Order;                                                                    \
        return Comparand;                                                                          \
    }

/* An LL/SC loop with seq_cst order lets a later load pass its store; NT's full barrier does not. */
#ifdef __x86_64__
#define INTERLOCK_THEN_SEQ_CST ((void)0)
#else
#define INTERLOCK_THEN_SEQ_CST __sync_synchronize()
#endif
#define INTERLOCK_THEN_ACQUIRE   ((void)0)
#define INTERLOCK_THEN_RELEASE   ((void)0)
#define INTERLOCK_THEN_RELAXED   ((void)0)
#define INTERLOCK_FAILED_SEQ_CST __ATOMIC_SEQ_CST
#define INTERLOCK_FAILED_ACQUIRE __ATOMIC_ACQUIRE
#define INTERLOCK_FAILED_RELEASE __ATOMIC_RELAXED
#define INTERLOCK_FAILED_RELAXED __ATOMIC_RELAXED

#define INTERLOCK_BIT_TEST(Name, Type, Op, Operand, Order)                                         \
    FORCEINLINE UCHAR Name(_Inout_ Type volatile *Base, _In_ Type Bit)                             \
    {                                                                                              \
        const U##Type mask = (U##Type)1 << (Bit & (Type)(8 * sizeof(Type) - 1));                   \
        Base += Bit >> (sizeof(Type) == 8 ? 6 : 5);                                                \
        const U##Type old =                                                                        \
            __atomic_fetch_##Op(INTERLOCK_TARGET(U##Type, Base), Operand, __ATOMIC_##Order);       \
        INTERLOCK_THEN_##Order;                                                                    \
        return (old & mask) != 0;                                                                  \
    }
#define INTERLOCK_READ(Name, Type, Order)                                                          \
    FORCEINLINE Type Name(_In_ Type const volatile *Source)                                        \
    {                                                                                              \
        return __atomic_load_n(INTERLOCK_CONSTANT(Type, Source), __ATOMIC_##Order);                \
    }
#define INTERLOCK_WRITE(Name, Type, Order)                                                         \
    FORCEINLINE VOID Name(_Out_ Type volatile *Destination, _In_opt_ Type Value)                   \
    {                                                                                              \
        __atomic_store_n(INTERLOCK_TARGET(Type, Destination), Value, __ATOMIC_##Order);            \
    }

/* 32-bit operations. */

/* Adds 1 and returns the new value. Since NT 3.1, Server 2003, Server 2003, 8. */
INTERLOCK_STEP(InterlockedIncrement, LONG, add, SEQ_CST)
INTERLOCK_STEP(InterlockedIncrementAcquire, LONG, add, ACQUIRE)
INTERLOCK_STEP(InterlockedIncrementRelease, LONG, add, RELEASE)
INTERLOCK_STEP(InterlockedIncrementNoFence, LONG, add, RELAXED)

/* Subtracts 1 and returns the new value. Since NT 3.1, Server 2003, Server 2003, 8. */
INTERLOCK_STEP(InterlockedDecrement, LONG, sub, SEQ_CST)
INTERLOCK_STEP(InterlockedDecrementAcquire, LONG, sub, ACQUIRE)
INTERLOCK_STEP(InterlockedDecrementRelease, LONG, sub, RELEASE)
INTERLOCK_STEP(InterlockedDecrementNoFence, LONG, sub, RELAXED)

/* Adds and returns the new value. Since 8. */
INTERLOCK_NEW(InterlockedAdd, LONG, add, SEQ_CST)
INTERLOCK_NEW(InterlockedAddAcquire, LONG, add, ACQUIRE)
INTERLOCK_NEW(InterlockedAddRelease, LONG, add, RELEASE)
INTERLOCK_NEW(InterlockedAddNoFence, LONG, add, RELAXED)

/* Adds and returns the old value. Since NT 4.0, Server 2003, Server 2003, 8. */
INTERLOCK_OLD(InterlockedExchangeAdd, LONG, add, SEQ_CST)
INTERLOCK_OLD(InterlockedExchangeAddAcquire, LONG, add, ACQUIRE)
INTERLOCK_OLD(InterlockedExchangeAddRelease, LONG, add, RELEASE)
INTERLOCK_OLD(InterlockedExchangeAddNoFence, LONG, add, RELAXED)

/* Stores and returns the old value. Since NT 3.1, Server 2003, Server 2003, 8. */
INTERLOCK_EXCHANGE(InterlockedExchange, LONG, SEQ_CST)
INTERLOCK_EXCHANGE(InterlockedExchangeAcquire, LONG, ACQUIRE)
INTERLOCK_EXCHANGE(InterlockedExchangeRelease, LONG, RELEASE)
INTERLOCK_EXCHANGE(InterlockedExchangeNoFence, LONG, RELAXED)

/* Stores Exchange if the value equals Comparand. Returns the old value. Since NT 4.0, Server 2003, Server 2003, 8. */
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchange, LONG, SEQ_CST)
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchangeAcquire, LONG, ACQUIRE)
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchangeRelease, LONG, RELEASE)
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchangeNoFence, LONG, RELAXED)

/* Bitwise AND. Returns the old value. Since XP, Server 2003, Server 2003, 8. */
INTERLOCK_OLD(InterlockedAnd, LONG, and, SEQ_CST)
INTERLOCK_OLD(InterlockedAndAcquire, LONG, and, ACQUIRE)
INTERLOCK_OLD(InterlockedAndRelease, LONG, and, RELEASE)
INTERLOCK_OLD(InterlockedAndNoFence, LONG, and, RELAXED)

/* Bitwise OR. Returns the old value. Since XP, Server 2003, Server 2003, 8. */
INTERLOCK_OLD(InterlockedOr, LONG, or, SEQ_CST)
INTERLOCK_OLD(InterlockedOrAcquire, LONG, or, ACQUIRE)
INTERLOCK_OLD(InterlockedOrRelease, LONG, or, RELEASE)
INTERLOCK_OLD(InterlockedOrNoFence, LONG, or, RELAXED)

/* Bitwise XOR. Returns the old value. Since XP, Server 2003, Server 2003, 8. */
INTERLOCK_OLD(InterlockedXor, LONG, xor, SEQ_CST)
INTERLOCK_OLD(InterlockedXorAcquire, LONG, xor, ACQUIRE)
INTERLOCK_OLD(InterlockedXorRelease, LONG, xor, RELEASE)
INTERLOCK_OLD(InterlockedXorNoFence, LONG, xor, RELAXED)

/* Subtracts and returns the old value. Since Server 2003. */
INTERLOCK_OLD(InterlockedExchangeSubtract, ULONG, sub, SEQ_CST)

/* 64-bit operations. */

/* Adds 1 and returns the new value. Since Server 2003, Server 2003, Server 2003, 8. */
INTERLOCK_STEP(InterlockedIncrement64, LONG64, add, SEQ_CST)
INTERLOCK_STEP(InterlockedIncrementAcquire64, LONG64, add, ACQUIRE)
INTERLOCK_STEP(InterlockedIncrementRelease64, LONG64, add, RELEASE)
INTERLOCK_STEP(InterlockedIncrementNoFence64, LONG64, add, RELAXED)

/* Subtracts 1 and returns the new value. Since Server 2003, Server 2003, Server 2003, 8. */
INTERLOCK_STEP(InterlockedDecrement64, LONG64, sub, SEQ_CST)
INTERLOCK_STEP(InterlockedDecrementAcquire64, LONG64, sub, ACQUIRE)
INTERLOCK_STEP(InterlockedDecrementRelease64, LONG64, sub, RELEASE)
INTERLOCK_STEP(InterlockedDecrementNoFence64, LONG64, sub, RELAXED)

/* Adds and returns the new value. Since 8. */
INTERLOCK_NEW(InterlockedAdd64, LONG64, add, SEQ_CST)
INTERLOCK_NEW(InterlockedAddAcquire64, LONG64, add, ACQUIRE)
INTERLOCK_NEW(InterlockedAddRelease64, LONG64, add, RELEASE)
INTERLOCK_NEW(InterlockedAddNoFence64, LONG64, add, RELAXED)

/* Adds and returns the old value. Since Server 2003, Server 2003, Server 2003, 8. */
INTERLOCK_OLD(InterlockedExchangeAdd64, LONG64, add, SEQ_CST)
INTERLOCK_OLD(InterlockedExchangeAddAcquire64, LONG64, add, ACQUIRE)
INTERLOCK_OLD(InterlockedExchangeAddRelease64, LONG64, add, RELEASE)
INTERLOCK_OLD(InterlockedExchangeAddNoFence64, LONG64, add, RELAXED)

/* Stores and returns the old value. Since Server 2003, Server 2003, Server 2003, 8. */
INTERLOCK_EXCHANGE(InterlockedExchange64, LONG64, SEQ_CST)
INTERLOCK_EXCHANGE(InterlockedExchangeAcquire64, LONG64, ACQUIRE)
INTERLOCK_EXCHANGE(InterlockedExchangeRelease64, LONG64, RELEASE)
INTERLOCK_EXCHANGE(InterlockedExchangeNoFence64, LONG64, RELAXED)

/* Stores Exchange if the value equals Comparand. Returns the old value. Since Server 2003, Server 2003, Server 2003,
   8. */
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchange64, LONG64, SEQ_CST)
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchangeAcquire64, LONG64, ACQUIRE)
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchangeRelease64, LONG64, RELEASE)
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchangeNoFence64, LONG64, RELAXED)

/* Bitwise AND. Returns the old value. Since Server 2003, Server 2003, Server 2003, 8. */
INTERLOCK_OLD(InterlockedAnd64, LONG64, and, SEQ_CST)
INTERLOCK_OLD(InterlockedAnd64Acquire, LONG64, and, ACQUIRE)
INTERLOCK_OLD(InterlockedAnd64Release, LONG64, and, RELEASE)
INTERLOCK_OLD(InterlockedAnd64NoFence, LONG64, and, RELAXED)

/* Bitwise OR. Returns the old value. Since Server 2003, Server 2003, Server 2003, 8. */
INTERLOCK_OLD(InterlockedOr64, LONG64, or, SEQ_CST)
INTERLOCK_OLD(InterlockedOr64Acquire, LONG64, or, ACQUIRE)
INTERLOCK_OLD(InterlockedOr64Release, LONG64, or, RELEASE)
INTERLOCK_OLD(InterlockedOr64NoFence, LONG64, or, RELAXED)

/* Bitwise XOR. Returns the old value. Since Server 2003, Server 2003, Server 2003, 8. */
INTERLOCK_OLD(InterlockedXor64, LONG64, xor, SEQ_CST)
INTERLOCK_OLD(InterlockedXor64Acquire, LONG64, xor, ACQUIRE)
INTERLOCK_OLD(InterlockedXor64Release, LONG64, xor, RELEASE)
INTERLOCK_OLD(InterlockedXor64NoFence, LONG64, xor, RELAXED)

/* 16-bit operations. */

/* Adds 1 and returns the new value. Since 8. */
INTERLOCK_STEP(InterlockedIncrement16, SHORT, add, SEQ_CST)
INTERLOCK_STEP(InterlockedIncrementAcquire16, SHORT, add, ACQUIRE)
INTERLOCK_STEP(InterlockedIncrementRelease16, SHORT, add, RELEASE)
INTERLOCK_STEP(InterlockedIncrementNoFence16, SHORT, add, RELAXED)

/* Subtracts 1 and returns the new value. Since 8. */
INTERLOCK_STEP(InterlockedDecrement16, SHORT, sub, SEQ_CST)
INTERLOCK_STEP(InterlockedDecrementAcquire16, SHORT, sub, ACQUIRE)
INTERLOCK_STEP(InterlockedDecrementRelease16, SHORT, sub, RELEASE)
INTERLOCK_STEP(InterlockedDecrementNoFence16, SHORT, sub, RELAXED)

/* Stores Exchange if the value equals Comparand. Returns the old value. Since 8. */
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchange16, SHORT, SEQ_CST)
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchangeAcquire16, SHORT, ACQUIRE)
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchangeRelease16, SHORT, RELEASE)
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchangeNoFence16, SHORT, RELAXED)

/* Stores and returns the old value. Since 8. */
INTERLOCK_EXCHANGE(InterlockedExchange16, SHORT, SEQ_CST)

/* Adds and returns the old value. Since 8. */
INTERLOCK_OLD(InterlockedExchangeAdd16, SHORT, add, SEQ_CST)

/* Bitwise AND. Returns the old value. Since 8. */
INTERLOCK_OLD(InterlockedAnd16, SHORT, and, SEQ_CST)

/* Bitwise OR. Returns the old value. Since 8. */
INTERLOCK_OLD(InterlockedOr16, SHORT, or, SEQ_CST)

/* Bitwise XOR. Returns the old value. Since 8. */
INTERLOCK_OLD(InterlockedXor16, SHORT, xor, SEQ_CST)

/* 8-bit operations. */

/* Stores Exchange if the value equals Comparand. Returns the old value. Since 8. */
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchange8, CHAR, SEQ_CST)

/* Stores and returns the old value. Since 8. */
INTERLOCK_EXCHANGE(InterlockedExchange8, CHAR, SEQ_CST)

/* Adds and returns the old value. Since 8. */
INTERLOCK_OLD(InterlockedExchangeAdd8, CHAR, add, SEQ_CST)

/* Bitwise AND. Returns the old value. Since 8. */
INTERLOCK_OLD(InterlockedAnd8, CHAR, and, SEQ_CST)

/* Bitwise OR. Returns the old value. Since 8. */
INTERLOCK_OLD(InterlockedOr8, CHAR, or, SEQ_CST)

/* Bitwise XOR. Returns the old value. Since 8. */
INTERLOCK_OLD(InterlockedXor8, CHAR, xor, SEQ_CST)

/* Operations on pointers and integers of their size. */

/* Stores and returns the old value. Since 2000, Server 2003, Server 2003, 8. */
INTERLOCK_EXCHANGE(InterlockedExchangePointer, PVOID, SEQ_CST)
INTERLOCK_EXCHANGE(InterlockedExchangePointerAcquire, PVOID, ACQUIRE)
INTERLOCK_EXCHANGE(InterlockedExchangePointerRelease, PVOID, RELEASE)
INTERLOCK_EXCHANGE(InterlockedExchangePointerNoFence, PVOID, RELAXED)

/* Stores Exchange if the value equals Comparand. Returns the old value. Since 2000, Server 2003, Server 2003, 8. */
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchangePointer, PVOID, SEQ_CST)
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchangePointerAcquire, PVOID, ACQUIRE)
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchangePointerRelease, PVOID, RELEASE)
INTERLOCK_COMPARE_EXCHANGE(InterlockedCompareExchangePointerNoFence, PVOID, RELAXED)

/* Adds 1 and returns the new value. Since Server 2003. */
INTERLOCK_STEP(InterlockedIncrementSizeT, SIZE_T, add, SEQ_CST)

/* Subtracts 1 and returns the new value. Since Server 2003. */
INTERLOCK_STEP(InterlockedDecrementSizeT, SIZE_T, sub, SEQ_CST)

/* Adds and returns the old value. Since Server 2003. */
INTERLOCK_OLD(InterlockedExchangeAddSizeT, SIZE_T, add, SEQ_CST)

/* Bitwise AND. Returns the old value. Since Server 2003. */
INTERLOCK_OLD(InterlockedAndAffinity, KAFFINITY, and, SEQ_CST)

/* Bitwise OR. Returns the old value. Since Server 2003. */
INTERLOCK_OLD(InterlockedOrAffinity, KAFFINITY, or, SEQ_CST)

/* Interlocked bits. Base is an array of 32-bit or 64-bit words; the bit may lie in a later or an earlier word. */

/* Sets a bit and returns its old value. Since Server 2003, 8, 8, 8. */
INTERLOCK_BIT_TEST(InterlockedBitTestAndSet, LONG, or, mask, SEQ_CST)
INTERLOCK_BIT_TEST(InterlockedBitTestAndSetAcquire, LONG, or, mask, ACQUIRE)
INTERLOCK_BIT_TEST(InterlockedBitTestAndSetRelease, LONG, or, mask, RELEASE)
INTERLOCK_BIT_TEST(InterlockedBitTestAndSetNoFence, LONG, or, mask, RELAXED)

/* Clears a bit and returns its old value. Since Server 2003, 8, 8, 8. */
INTERLOCK_BIT_TEST(InterlockedBitTestAndReset, LONG, and, ~mask, SEQ_CST)
INTERLOCK_BIT_TEST(InterlockedBitTestAndResetAcquire, LONG, and, ~mask, ACQUIRE)
INTERLOCK_BIT_TEST(InterlockedBitTestAndResetRelease, LONG, and, ~mask, RELEASE)
INTERLOCK_BIT_TEST(InterlockedBitTestAndResetNoFence, LONG, and, ~mask, RELAXED)

/* Inverts a bit and returns its old value. Since Server 2003, 8, 8, 8. */
INTERLOCK_BIT_TEST(InterlockedBitTestAndComplement, LONG, xor, mask, SEQ_CST)
INTERLOCK_BIT_TEST(InterlockedBitTestAndComplementAcquire, LONG, xor, mask, ACQUIRE)
INTERLOCK_BIT_TEST(InterlockedBitTestAndComplementRelease, LONG, xor, mask, RELEASE)
INTERLOCK_BIT_TEST(InterlockedBitTestAndComplementNoFence, LONG, xor, mask, RELAXED)

/* Sets a bit and returns its old value. Since Server 2003, 8, 8, 8. */
INTERLOCK_BIT_TEST(InterlockedBitTestAndSet64, LONG64, or, mask, SEQ_CST)
INTERLOCK_BIT_TEST(InterlockedBitTestAndSet64Acquire, LONG64, or, mask, ACQUIRE)
INTERLOCK_BIT_TEST(InterlockedBitTestAndSet64Release, LONG64, or, mask, RELEASE)
INTERLOCK_BIT_TEST(InterlockedBitTestAndSet64NoFence, LONG64, or, mask, RELAXED)

/* Clears a bit and returns its old value. Since Server 2003, 8, 8, 8. */
INTERLOCK_BIT_TEST(InterlockedBitTestAndReset64, LONG64, and, ~mask, SEQ_CST)
INTERLOCK_BIT_TEST(InterlockedBitTestAndReset64Acquire, LONG64, and, ~mask, ACQUIRE)
INTERLOCK_BIT_TEST(InterlockedBitTestAndReset64Release, LONG64, and, ~mask, RELEASE)
INTERLOCK_BIT_TEST(InterlockedBitTestAndReset64NoFence, LONG64, and, ~mask, RELAXED)

/* Inverts a bit and returns its old value. Since Server 2003, 8, 8, 8. */
INTERLOCK_BIT_TEST(InterlockedBitTestAndComplement64, LONG64, xor, mask, SEQ_CST)
INTERLOCK_BIT_TEST(InterlockedBitTestAndComplement64Acquire, LONG64, xor, mask, ACQUIRE)
INTERLOCK_BIT_TEST(InterlockedBitTestAndComplement64Release, LONG64, xor, mask, RELEASE)
INTERLOCK_BIT_TEST(InterlockedBitTestAndComplement64NoFence, LONG64, xor, mask, RELAXED)

/* Ordered reads and writes. The Raw forms are atomic too. */

/* Reads a CHAR with acquire or no order, and writes one with release or no order. Since 8. */
INTERLOCK_READ(ReadAcquire8, CHAR, ACQUIRE)
INTERLOCK_READ(ReadNoFence8, CHAR, RELAXED)
INTERLOCK_READ(ReadRaw8, CHAR, RELAXED)
INTERLOCK_WRITE(WriteRelease8, CHAR, RELEASE)
INTERLOCK_WRITE(WriteNoFence8, CHAR, RELAXED)
INTERLOCK_WRITE(WriteRaw8, CHAR, RELAXED)

/* Reads a SHORT with acquire or no order, and writes one with release or no order. Since 8. */
INTERLOCK_READ(ReadAcquire16, SHORT, ACQUIRE)
INTERLOCK_READ(ReadNoFence16, SHORT, RELAXED)
INTERLOCK_READ(ReadRaw16, SHORT, RELAXED)
INTERLOCK_WRITE(WriteRelease16, SHORT, RELEASE)
INTERLOCK_WRITE(WriteNoFence16, SHORT, RELAXED)
INTERLOCK_WRITE(WriteRaw16, SHORT, RELAXED)

/* Reads a LONG with acquire or no order, and writes one with release or no order. Since 8. */
INTERLOCK_READ(ReadAcquire, LONG, ACQUIRE)
INTERLOCK_READ(ReadNoFence, LONG, RELAXED)
INTERLOCK_READ(ReadRaw, LONG, RELAXED)
INTERLOCK_WRITE(WriteRelease, LONG, RELEASE)
INTERLOCK_WRITE(WriteNoFence, LONG, RELAXED)
INTERLOCK_WRITE(WriteRaw, LONG, RELAXED)

/* Reads a LONG64 with acquire or no order, and writes one with release or no order. Since 8. */
INTERLOCK_READ(ReadAcquire64, LONG64, ACQUIRE)
INTERLOCK_READ(ReadNoFence64, LONG64, RELAXED)
INTERLOCK_READ(ReadRaw64, LONG64, RELAXED)
INTERLOCK_WRITE(WriteRelease64, LONG64, RELEASE)
INTERLOCK_WRITE(WriteNoFence64, LONG64, RELAXED)
INTERLOCK_WRITE(WriteRaw64, LONG64, RELAXED)

/* Reads a UCHAR with acquire or no order, and writes one with release or no order. Since 8. */
INTERLOCK_READ(ReadUCharAcquire, UCHAR, ACQUIRE)
INTERLOCK_READ(ReadUCharNoFence, UCHAR, RELAXED)
INTERLOCK_READ(ReadUCharRaw, UCHAR, RELAXED)
INTERLOCK_WRITE(WriteUCharRelease, UCHAR, RELEASE)
INTERLOCK_WRITE(WriteUCharNoFence, UCHAR, RELAXED)
INTERLOCK_WRITE(WriteUCharRaw, UCHAR, RELAXED)

/* Reads a BOOLEAN with acquire or no order, and writes one with release or no order. Since 8. */
INTERLOCK_READ(ReadBooleanAcquire, BOOLEAN, ACQUIRE)
INTERLOCK_READ(ReadBooleanNoFence, BOOLEAN, RELAXED)
INTERLOCK_READ(ReadBooleanRaw, BOOLEAN, RELAXED)
INTERLOCK_WRITE(WriteBooleanRelease, BOOLEAN, RELEASE)
INTERLOCK_WRITE(WriteBooleanNoFence, BOOLEAN, RELAXED)
INTERLOCK_WRITE(WriteBooleanRaw, BOOLEAN, RELAXED)

/* Reads a USHORT with acquire or no order, and writes one with release or no order. Since 8. */
INTERLOCK_READ(ReadUShortAcquire, USHORT, ACQUIRE)
INTERLOCK_READ(ReadUShortNoFence, USHORT, RELAXED)
INTERLOCK_READ(ReadUShortRaw, USHORT, RELAXED)
INTERLOCK_WRITE(WriteUShortRelease, USHORT, RELEASE)
INTERLOCK_WRITE(WriteUShortNoFence, USHORT, RELAXED)
INTERLOCK_WRITE(WriteUShortRaw, USHORT, RELAXED)

/* Reads a ULONG with acquire or no order, and writes one with release or no order. Since 8. */
INTERLOCK_READ(ReadULongAcquire, ULONG, ACQUIRE)
INTERLOCK_READ(ReadULongNoFence, ULONG, RELAXED)
INTERLOCK_READ(ReadULongRaw, ULONG, RELAXED)
INTERLOCK_WRITE(WriteULongRelease, ULONG, RELEASE)
INTERLOCK_WRITE(WriteULongNoFence, ULONG, RELAXED)
INTERLOCK_WRITE(WriteULongRaw, ULONG, RELAXED)

/* Reads a ULONG64 with acquire or no order, and writes one with release or no order. Since 8. */
INTERLOCK_READ(ReadULong64Acquire, ULONG64, ACQUIRE)
INTERLOCK_READ(ReadULong64NoFence, ULONG64, RELAXED)
INTERLOCK_READ(ReadULong64Raw, ULONG64, RELAXED)
INTERLOCK_WRITE(WriteULong64Release, ULONG64, RELEASE)
INTERLOCK_WRITE(WriteULong64NoFence, ULONG64, RELAXED)
INTERLOCK_WRITE(WriteULong64Raw, ULONG64, RELAXED)

/* Reads a LONG_PTR with acquire or no order, and writes one with release or no order. Since 8. */
INTERLOCK_READ(ReadLongPtrAcquire, LONG_PTR, ACQUIRE)
INTERLOCK_READ(ReadLongPtrNoFence, LONG_PTR, RELAXED)
INTERLOCK_READ(ReadLongPtrRaw, LONG_PTR, RELAXED)
INTERLOCK_WRITE(WriteLongPtrRelease, LONG_PTR, RELEASE)
INTERLOCK_WRITE(WriteLongPtrNoFence, LONG_PTR, RELAXED)
INTERLOCK_WRITE(WriteLongPtrRaw, LONG_PTR, RELAXED)

/* Reads a ULONG_PTR with acquire or no order, and writes one with release or no order. Since 8. */
INTERLOCK_READ(ReadULongPtrAcquire, ULONG_PTR, ACQUIRE)
INTERLOCK_READ(ReadULongPtrNoFence, ULONG_PTR, RELAXED)
INTERLOCK_READ(ReadULongPtrRaw, ULONG_PTR, RELAXED)
INTERLOCK_WRITE(WriteULongPtrRelease, ULONG_PTR, RELEASE)
INTERLOCK_WRITE(WriteULongPtrNoFence, ULONG_PTR, RELAXED)
INTERLOCK_WRITE(WriteULongPtrRaw, ULONG_PTR, RELAXED)

/* Reads a pointer with acquire or no order, and writes one with release or no order. Since 8. */
INTERLOCK_READ(ReadPointerAcquire, PVOID, ACQUIRE)
INTERLOCK_READ(ReadPointerNoFence, PVOID, RELAXED)
INTERLOCK_READ(ReadPointerRaw, PVOID, RELAXED)
INTERLOCK_WRITE(WritePointerRelease, PVOID, RELEASE)
INTERLOCK_WRITE(WritePointerNoFence, PVOID, RELAXED)
INTERLOCK_WRITE(WritePointerRaw, PVOID, RELAXED)

/* 128-bit operations. */

#if defined(__GCC_HAVE_SYNC_COMPARE_AND_SWAP_16) || defined(__aarch64__)
__extension__ typedef unsigned __int128 INTERLOCK_INT128 __attribute__((may_alias, aligned(16)));

/* Compares 128 bits with ComparandResult and stores ExchangeHigh:ExchangeLow if they are equal. ComparandResult
   receives the old value; returns 1 if it stored. Full barrier; the address must be a multiple of 16. Differs: needs
   -mcx16 on x86-64; on riscv64, which has no such instruction, atomic with respect to itself only. Since 8. */
FORCEINLINE UCHAR InterlockedCompareExchange128(_Inout_ LONG64 volatile *Destination,
                                                _In_ LONG64 ExchangeHigh, _In_ LONG64 ExchangeLow,
                                                _Inout_ LONG64 *ComparandResult)
{
    /* __sync: gcc compiles the 16-byte __atomic forms to calls of libatomic. */
    const INTERLOCK_INT128 exchange =
        (INTERLOCK_INT128)(ULONG64)ExchangeHigh << 64 | (ULONG64)ExchangeLow;
    const INTERLOCK_INT128 comparand =
        (INTERLOCK_INT128)(ULONG64)ComparandResult[1] << 64 | (ULONG64)ComparandResult[0];
    const INTERLOCK_INT128 old =
        __sync_val_compare_and_swap((volatile INTERLOCK_INT128 *)(volatile VOID *)Destination, comparand, exchange);
    ComparandResult[0] = (LONG64)(ULONG64)old;
    ComparandResult[1] = (LONG64)(ULONG64)(old >> 64);
    return old == comparand;
}
#elif defined(__x86_64__)
#if !defined(__clang__) || __clang_major__ >= 14
__attribute__((error("InterlockedCompareExchange128 needs the compiler option -mcx16")))
#endif
UCHAR InterlockedCompareExchange128(LONG64 volatile *Destination, LONG64 ExchangeHigh,
                                    LONG64 ExchangeLow, LONG64 *ComparandResult);
#else
#define INTERLOCK_EMULATED_CAS128 1 /* no such instruction: the library emulates it, atomic with respect to itself */
#ifdef __cplusplus
extern "C"
#endif
__attribute__((visibility("default")))
UCHAR InterlockedCompareExchange128(LONG64 volatile *Destination, LONG64 ExchangeHigh,
                                    LONG64 ExchangeLow, LONG64 *ComparandResult);
#endif

/*
 * Restartable sections: an addition to a word of the processor on which the thread runs, without a locked operation. The
 * host restarts a section that it has interrupted (rseq(2)): src/hal/section.h. For inline functions of ex.h.
 * A thread sanitizer sees no instruction of a section, so it would report a race for what a section orders.
 */
#if defined(__SANITIZE_THREAD__)
#define INTERLOCK_SECTIONS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define INTERLOCK_SECTIONS 0
#endif
#endif
#if !defined(INTERLOCK_SECTIONS) && defined(__x86_64__)
#define INTERLOCK_SECTIONS 1
#elif !defined(INTERLOCK_SECTIONS)
#define INTERLOCK_SECTIONS 0
#endif

#define INTERLOCK_SECTION_SLOT_SHIFT 6

/* Offsets of a thread's area, which the C library has registered with the host. */
#define INTERLOCK_SECTION_PROCESSOR 4
#define INTERLOCK_SECTION_CURRENT   8

#if INTERLOCK_SECTIONS
/*
 * Internal: adds to the first word of the slot of the current processor. FALSE: *Closed is not 0, or the processor is beyond Number.
 * Orders as a release store; a load that follows may come before it, unless HalRestartSections comes in between. Area: that
 * of the thread, from the thread pointer.
 *
 * The addition ends the section: a restarted section has no effect. The area's pointer to the section is cleared, because
 * this code may be unmapped later. The host requires its signature, an instruction that traps, before the place where a
 * section restarts. Each line has both dialects of the assembler; \"?\" puts the tables into the function's own group, so a
 * linker drops both or none.
 */
FORCEINLINE BOOLEAN InterlockAddInSection(LONG_PTR Area, PVOID First, ULONG Number, const volatile ULONG *Closed,
                                          LONG_PTR Addend)
{
    BOOLEAN done;
    ULONG64 scratch;
    __asm__ volatile(
        ".pushsection __rseq_cs, \"aw?\"\n\t"
        ".balign 32\n\t"
        "3:\n\t"
        ".long 0, 0\n\t"
        ".quad 1f, 2f - 1f, 4f\n\t"
        ".popsection\n\t"
        ".pushsection __rseq_failure, \"ax?\"\n\t"
        ".byte 0x0f, 0xb9, 0x3d\n\t"
        ".long 0x53053053\n\t"
        "4:\n\t"
        "jmp 5f\n\t"
        ".popsection\n"
        "5:\n\t"
        "lea{q 3b(%%rip), %[scratch]| %[scratch], [rip + 3b]}\n\t"
        "mov{q %[scratch], %%fs:%c[current](%[area])| qword ptr fs:[%[area] + %c[current]], %[scratch]}\n"
        "1:\n\t"
        "xor{l %k[done], %k[done]| %k[done], %k[done]}\n\t"
        "cmp{l %k[done], %[closed]| %[closed], %k[done]}\n\t"
        "jne 2f\n\t"
        "mov{l %%fs:%c[processor](%[area]), %k[scratch]| %k[scratch], dword ptr fs:[%[area] + %c[processor]]}\n\t"
        "cmp{l %[number], %k[scratch]| %k[scratch], %[number]}\n\t"
        "jae 2f\n\t"
        "shl{q $%c[shift], %[scratch]| %[scratch], %c[shift]}\n\t"
        "inc{l|} %k[done]\n\t"
        "add{q %[addend], (%[first], %[scratch])| qword ptr [%[first] + %[scratch]], %[addend]}\n"
        "2:\n\t"
        "mov{q $0, %%fs:%c[current](%[area])| qword ptr fs:[%[area] + %c[current]], 0}\n\t"
        : [done] "=&r"(done), [scratch] "=&r"(scratch)
        : [closed] "m"(*Closed), [area] "r"(Area), [number] "rm"(Number), [first] "r"(First), [addend] "er"(Addend),
          [shift] "i"(INTERLOCK_SECTION_SLOT_SHIFT), [processor] "i"(INTERLOCK_SECTION_PROCESSOR),
          [current] "i"(INTERLOCK_SECTION_CURRENT)
        : "cc", "memory");
    return done;
}
#endif

/* Bits. Base is an array of words; these operations are not interlocked. */

#define INTERLOCK_PLAIN_BIT_TEST(Name, Type, Base_t, Action)                                       \
    FORCEINLINE UCHAR Name(Base_t *Base, _In_ Type Bit)                                            \
    {                                                                                              \
        const Type mask = (Type)((U##Type)1 << (Bit & (Type)(8 * sizeof(Type) - 1)));              \
        Base += Bit >> (sizeof(Type) == 8 ? 6 : 5);                                                \
        const UCHAR old = (*Base & mask) != 0;                                                     \
        Action;                                                                                    \
        return old;                                                                                \
    }

/* Returns the bit of that number: bit 0 is the lowest one of *Base, and numbers beyond the word address the words
 * after it. Since Server 2003. */
INTERLOCK_PLAIN_BIT_TEST(BitTest, LONG, LONG const, (void)0)
INTERLOCK_PLAIN_BIT_TEST(BitTest64, LONG64, LONG64 const, (void)0)

/* Sets, clears or inverts a bit and returns its old value. Since Server 2003. */
INTERLOCK_PLAIN_BIT_TEST(BitTestAndSet, LONG, LONG, *Base |= mask)
INTERLOCK_PLAIN_BIT_TEST(BitTestAndSet64, LONG64, LONG64, *Base |= mask)
INTERLOCK_PLAIN_BIT_TEST(BitTestAndReset, LONG, LONG, *Base &= ~mask)
INTERLOCK_PLAIN_BIT_TEST(BitTestAndReset64, LONG64, LONG64, *Base &= ~mask)
INTERLOCK_PLAIN_BIT_TEST(BitTestAndComplement, LONG, LONG, *Base ^= mask)
INTERLOCK_PLAIN_BIT_TEST(BitTestAndComplement64, LONG64, LONG64, *Base ^= mask)

#define INTERLOCK_BIT_SCAN(Name, Type, Position)                                                   \
    FORCEINLINE UCHAR Name(_Out_ ULONG *Index, _In_ Type Mask)                                     \
    {                                                                                              \
        if (Mask == 0)                                                                             \
            return 0;                                                                              \
        *Index = (ULONG)(Position);                                                                \
        return 1;                                                                                  \
    }

/* Stores the number of the lowest or highest set bit and returns 1; returns 0 if no bit is set. Differs: Index then
   stays unchanged. Since Server 2003. */
INTERLOCK_BIT_SCAN(BitScanForward, ULONG, __builtin_ctz(Mask))
INTERLOCK_BIT_SCAN(BitScanReverse, ULONG, 31 - __builtin_clz(Mask))
INTERLOCK_BIT_SCAN(BitScanForward64, ULONG64, __builtin_ctzll(Mask))
INTERLOCK_BIT_SCAN(BitScanReverse64, ULONG64, 63 - __builtin_clzll(Mask))

/* Barriers and spin loops. */

/* Full memory barrier: neither the compiler nor the processor moves a load or store across it. Since Server 2003. */
FORCEINLINE VOID KeMemoryBarrier(VOID)
{
    /* __sync: gcc warns of a __atomic fence under TSan */
    __sync_synchronize();
}

/* Keeps the compiler, not the processor, from moving accesses across it. Since Server 2003. */
FORCEINLINE VOID KeMemoryBarrierWithoutFence(VOID)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

/* Tells the processor that this is a spin loop. Since Server 2003. */
FORCEINLINE VOID YieldProcessor(VOID)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#elif defined(__riscv)
    __asm__ volatile(".4byte 0x0100000f" ::: "memory"); /* pause, a no-op where it is unknown */
#else
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
#endif
}

#define MemoryBarrier()     KeMemoryBarrier()
#define _ReadBarrier()      KeMemoryBarrierWithoutFence()
#define _WriteBarrier()     KeMemoryBarrierWithoutFence()
#define _ReadWriteBarrier() KeMemoryBarrierWithoutFence()

/*
 * Interlocked singly linked lists. Lock-free, LIFO, for any IRQL and for user mode. Header and entries are aligned to
 * 16 bytes, or STATUS_DATATYPE_MISALIGNMENT is raised. Zeroed memory is an empty list.
 *
 * A popped entry may be unmapped at once, even while other threads try to pop it: they detect the fault and retry. To
 * that end the library handles SIGSEGV and SIGBUS from the first pop on, and passes every other fault to the handler
 * installed before. A handler that the program installs later is noticed within a few thousand pops of a thread.
 */

typedef struct DECLSPEC_ALIGN(16) _SLIST_ENTRY {
    struct _SLIST_ENTRY *Next;
} SLIST_ENTRY, *PSLIST_ENTRY;

typedef union DECLSPEC_ALIGN(16) _SLIST_HEADER {
    __extension__ struct {
        ULONGLONG Alignment;
        ULONGLONG Region;
    };
    struct {
        ULONGLONG Depth : 16;
        ULONGLONG Sequence : 48;
        ULONGLONG Reserved : 4;
        ULONGLONG NextEntry : 60; /* the address of the first entry, whose low four bits are 0, shifted right by 4 */
    } HeaderX64;
} SLIST_HEADER, *PSLIST_HEADER;

C_ASSERT(sizeof(SLIST_HEADER) == 16);
C_ASSERT(sizeof(SLIST_ENTRY) == 16);

/* Initializes an empty list. Zeroed memory is one too. Since XP. */
INTERLOCK_API VOID InitializeSListHead(PSLIST_HEADER ListHead);

/* Pushes an entry. Returns the entry that was first before; NULL if the list was empty. Since XP. */
INTERLOCK_API PSLIST_ENTRY InterlockedPushEntrySList(PSLIST_HEADER ListHead, PSLIST_ENTRY ListEntry);

/* Pushes a chain of Count entries atomically. Returns the entry that was first before. Since 8. */
INTERLOCK_API PSLIST_ENTRY InterlockedPushListSListEx(PSLIST_HEADER ListHead, PSLIST_ENTRY List, PSLIST_ENTRY ListEnd,
                                                    ULONG Count);

/* Pops and returns the first entry; NULL if the list is empty. Differs: handles SIGSEGV and SIGBUS from the first pop
   on. Since XP. */
INTERLOCK_API PSLIST_ENTRY InterlockedPopEntrySList(PSLIST_HEADER ListHead);

/* Removes all entries and returns the first. Since XP. */
INTERLOCK_API PSLIST_ENTRY InterlockedFlushSList(PSLIST_HEADER ListHead);

/* Returns the number of entries modulo 65536. Since XP. */
INTERLOCK_API USHORT QueryDepthSList(PSLIST_HEADER ListHead);

/* Returns the first entry without removing it; NULL if the list is empty. Since Vista. */
NTSYSAPI PSLIST_ENTRY RtlFirstEntrySList(const SLIST_HEADER *ListHead);

#define InterlockedPushListSList InterlockedPushListSListEx

/* The names of the user-mode runtime. */
#define RtlInitializeSListHead InitializeSListHead
#define RtlInterlockedPushEntrySList InterlockedPushEntrySList
#define RtlInterlockedPushListSListEx InterlockedPushListSListEx
#define RtlInterlockedPopEntrySList InterlockedPopEntrySList
#define RtlInterlockedFlushSList InterlockedFlushSList
#define RtlQueryDepthSList QueryDepthSList

INTERLOCK_END

/* Names of the compiler's intrinsics. */
#define _InterlockedIncrement                  InterlockedIncrement
#define _InterlockedIncrement_acq              InterlockedIncrementAcquire
#define _InterlockedIncrement_rel              InterlockedIncrementRelease
#define _InterlockedIncrement_nf               InterlockedIncrementNoFence
#define _InterlockedIncrement64                InterlockedIncrement64
#define _InterlockedIncrement64_acq            InterlockedIncrementAcquire64
#define _InterlockedIncrement64_rel            InterlockedIncrementRelease64
#define _InterlockedIncrement64_nf             InterlockedIncrementNoFence64
#define _InterlockedDecrement                  InterlockedDecrement
#define _InterlockedDecrement_acq              InterlockedDecrementAcquire
#define _InterlockedDecrement_rel              InterlockedDecrementRelease
#define _InterlockedDecrement_nf               InterlockedDecrementNoFence
#define _InterlockedDecrement64                InterlockedDecrement64
#define _InterlockedDecrement64_acq            InterlockedDecrementAcquire64
#define _InterlockedDecrement64_rel            InterlockedDecrementRelease64
#define _InterlockedDecrement64_nf             InterlockedDecrementNoFence64
#define _InterlockedAdd                        InterlockedAdd
#define _InterlockedAdd_acq                    InterlockedAddAcquire
#define _InterlockedAdd_rel                    InterlockedAddRelease
#define _InterlockedAdd_nf                     InterlockedAddNoFence
#define _InterlockedAdd64                      InterlockedAdd64
#define _InterlockedAdd64_acq                  InterlockedAddAcquire64
#define _InterlockedAdd64_rel                  InterlockedAddRelease64
#define _InterlockedAdd64_nf                   InterlockedAddNoFence64
#define _InterlockedExchangeAdd                InterlockedExchangeAdd
#define _InterlockedExchangeAdd_acq            InterlockedExchangeAddAcquire
#define _InterlockedExchangeAdd_rel            InterlockedExchangeAddRelease
#define _InterlockedExchangeAdd_nf             InterlockedExchangeAddNoFence
#define _InterlockedExchangeAdd64              InterlockedExchangeAdd64
#define _InterlockedExchangeAdd64_acq          InterlockedExchangeAddAcquire64
#define _InterlockedExchangeAdd64_rel          InterlockedExchangeAddRelease64
#define _InterlockedExchangeAdd64_nf           InterlockedExchangeAddNoFence64
#define _InterlockedExchange                   InterlockedExchange
#define _InterlockedExchange_acq               InterlockedExchangeAcquire
#define _InterlockedExchange_rel               InterlockedExchangeRelease
#define _InterlockedExchange_nf                InterlockedExchangeNoFence
#define _InterlockedExchange64                 InterlockedExchange64
#define _InterlockedExchange64_acq             InterlockedExchangeAcquire64
#define _InterlockedExchange64_rel             InterlockedExchangeRelease64
#define _InterlockedExchange64_nf              InterlockedExchangeNoFence64
#define _InterlockedCompareExchange            InterlockedCompareExchange
#define _InterlockedCompareExchange_acq        InterlockedCompareExchangeAcquire
#define _InterlockedCompareExchange_rel        InterlockedCompareExchangeRelease
#define _InterlockedCompareExchange_nf         InterlockedCompareExchangeNoFence
#define _InterlockedCompareExchange64          InterlockedCompareExchange64
#define _InterlockedCompareExchange64_acq      InterlockedCompareExchangeAcquire64
#define _InterlockedCompareExchange64_rel      InterlockedCompareExchangeRelease64
#define _InterlockedCompareExchange64_nf       InterlockedCompareExchangeNoFence64
#define _InterlockedAnd                        InterlockedAnd
#define _InterlockedAnd_acq                    InterlockedAndAcquire
#define _InterlockedAnd_rel                    InterlockedAndRelease
#define _InterlockedAnd_nf                     InterlockedAndNoFence
#define _InterlockedAnd64                      InterlockedAnd64
#define _InterlockedAnd64_acq                  InterlockedAnd64Acquire
#define _InterlockedAnd64_rel                  InterlockedAnd64Release
#define _InterlockedAnd64_nf                   InterlockedAnd64NoFence
#define _InterlockedOr                         InterlockedOr
#define _InterlockedOr_acq                     InterlockedOrAcquire
#define _InterlockedOr_rel                     InterlockedOrRelease
#define _InterlockedOr_nf                      InterlockedOrNoFence
#define _InterlockedOr64                       InterlockedOr64
#define _InterlockedOr64_acq                   InterlockedOr64Acquire
#define _InterlockedOr64_rel                   InterlockedOr64Release
#define _InterlockedOr64_nf                    InterlockedOr64NoFence
#define _InterlockedXor                        InterlockedXor
#define _InterlockedXor_acq                    InterlockedXorAcquire
#define _InterlockedXor_rel                    InterlockedXorRelease
#define _InterlockedXor_nf                     InterlockedXorNoFence
#define _InterlockedXor64                      InterlockedXor64
#define _InterlockedXor64_acq                  InterlockedXor64Acquire
#define _InterlockedXor64_rel                  InterlockedXor64Release
#define _InterlockedXor64_nf                   InterlockedXor64NoFence
#define _InterlockedIncrement16                InterlockedIncrement16
#define _InterlockedIncrement16_acq            InterlockedIncrementAcquire16
#define _InterlockedIncrement16_rel            InterlockedIncrementRelease16
#define _InterlockedIncrement16_nf             InterlockedIncrementNoFence16
#define _InterlockedDecrement16                InterlockedDecrement16
#define _InterlockedDecrement16_acq            InterlockedDecrementAcquire16
#define _InterlockedDecrement16_rel            InterlockedDecrementRelease16
#define _InterlockedDecrement16_nf             InterlockedDecrementNoFence16
#define _InterlockedCompareExchange16          InterlockedCompareExchange16
#define _InterlockedCompareExchange16_acq      InterlockedCompareExchangeAcquire16
#define _InterlockedCompareExchange16_rel      InterlockedCompareExchangeRelease16
#define _InterlockedCompareExchange16_nf       InterlockedCompareExchangeNoFence16
#define _InterlockedExchange16                 InterlockedExchange16
#define _InterlockedExchangeAdd16              InterlockedExchangeAdd16
#define _InterlockedAnd16                      InterlockedAnd16
#define _InterlockedOr16                       InterlockedOr16
#define _InterlockedXor16                      InterlockedXor16
#define _InterlockedCompareExchange8           InterlockedCompareExchange8
#define _InterlockedExchange8                  InterlockedExchange8
#define _InterlockedExchangeAdd8               InterlockedExchangeAdd8
#define _InterlockedAnd8                       InterlockedAnd8
#define _InterlockedOr8                        InterlockedOr8
#define _InterlockedXor8                       InterlockedXor8
#define _InterlockedExchangePointer            InterlockedExchangePointer
#define _InterlockedExchangePointer_acq        InterlockedExchangePointerAcquire
#define _InterlockedExchangePointer_rel        InterlockedExchangePointerRelease
#define _InterlockedExchangePointer_nf         InterlockedExchangePointerNoFence
#define _InterlockedCompareExchangePointer     InterlockedCompareExchangePointer
#define _InterlockedCompareExchangePointer_acq InterlockedCompareExchangePointerAcquire
#define _InterlockedCompareExchangePointer_rel InterlockedCompareExchangePointerRelease
#define _InterlockedCompareExchangePointer_nf  InterlockedCompareExchangePointerNoFence
#define _InterlockedCompareExchange128         InterlockedCompareExchange128
#define _InterlockedCompareExchange128_acq     InterlockedCompareExchange128
#define _InterlockedCompareExchange128_rel     InterlockedCompareExchange128
#define _InterlockedCompareExchange128_nf      InterlockedCompareExchange128
#define _interlockedbittestandset              InterlockedBitTestAndSet
#define _interlockedbittestandset_acq          InterlockedBitTestAndSetAcquire
#define _interlockedbittestandset_rel          InterlockedBitTestAndSetRelease
#define _interlockedbittestandset_nf           InterlockedBitTestAndSetNoFence
#define _interlockedbittestandreset            InterlockedBitTestAndReset
#define _interlockedbittestandreset_acq        InterlockedBitTestAndResetAcquire
#define _interlockedbittestandreset_rel        InterlockedBitTestAndResetRelease
#define _interlockedbittestandreset_nf         InterlockedBitTestAndResetNoFence
#define _interlockedbittestandcomplement       InterlockedBitTestAndComplement
#define _interlockedbittestandset64            InterlockedBitTestAndSet64
#define _interlockedbittestandset64_acq        InterlockedBitTestAndSet64Acquire
#define _interlockedbittestandset64_rel        InterlockedBitTestAndSet64Release
#define _interlockedbittestandset64_nf         InterlockedBitTestAndSet64NoFence
#define _interlockedbittestandreset64          InterlockedBitTestAndReset64
#define _interlockedbittestandreset64_acq      InterlockedBitTestAndReset64Acquire
#define _interlockedbittestandreset64_rel      InterlockedBitTestAndReset64Release
#define _interlockedbittestandreset64_nf       InterlockedBitTestAndReset64NoFence
#define _interlockedbittestandcomplement64     InterlockedBitTestAndComplement64
#define _bittest                               BitTest
#define _bittestandset                         BitTestAndSet
#define _bittestandreset                       BitTestAndReset
#define _bittestandcomplement                  BitTestAndComplement
#define _bittest64                             BitTest64
#define _bittestandset64                       BitTestAndSet64
#define _bittestandreset64                     BitTestAndReset64
#define _bittestandcomplement64                BitTestAndComplement64
#define _BitScanForward                        BitScanForward
#define _BitScanForward64                      BitScanForward64
#define _BitScanReverse                        BitScanReverse
#define _BitScanReverse64                      BitScanReverse64

/* Windows has macros for these, which sources look for with #ifndef. */
#define BitScanForward                           BitScanForward
#define BitScanForward64                         BitScanForward64
#define BitScanReverse                           BitScanReverse
#define BitScanReverse64                         BitScanReverse64
#define BitTest                                  BitTest
#define BitTest64                                BitTest64
#define BitTestAndComplement                     BitTestAndComplement
#define BitTestAndComplement64                   BitTestAndComplement64
#define BitTestAndReset                          BitTestAndReset
#define BitTestAndReset64                        BitTestAndReset64
#define BitTestAndSet                            BitTestAndSet
#define BitTestAndSet64                          BitTestAndSet64
#define InterlockedAdd                           InterlockedAdd
#define InterlockedAdd64                         InterlockedAdd64
#define InterlockedAddAcquire                    InterlockedAddAcquire
#define InterlockedAddAcquire64                  InterlockedAddAcquire64
#define InterlockedAddNoFence                    InterlockedAddNoFence
#define InterlockedAddNoFence64                  InterlockedAddNoFence64
#define InterlockedAddRelease                    InterlockedAddRelease
#define InterlockedAddRelease64                  InterlockedAddRelease64
#define InterlockedAnd                           InterlockedAnd
#define InterlockedAnd16                         InterlockedAnd16
#define InterlockedAnd64                         InterlockedAnd64
#define InterlockedAnd64Acquire                  InterlockedAnd64Acquire
#define InterlockedAnd64NoFence                  InterlockedAnd64NoFence
#define InterlockedAnd64Release                  InterlockedAnd64Release
#define InterlockedAnd8                          InterlockedAnd8
#define InterlockedAndAcquire                    InterlockedAndAcquire
#define InterlockedAndNoFence                    InterlockedAndNoFence
#define InterlockedAndRelease                    InterlockedAndRelease
#define InterlockedBitTestAndComplement          InterlockedBitTestAndComplement
#define InterlockedBitTestAndComplement64        InterlockedBitTestAndComplement64
#define InterlockedBitTestAndReset               InterlockedBitTestAndReset
#define InterlockedBitTestAndReset64             InterlockedBitTestAndReset64
#define InterlockedBitTestAndReset64Acquire      InterlockedBitTestAndReset64Acquire
#define InterlockedBitTestAndReset64NoFence      InterlockedBitTestAndReset64NoFence
#define InterlockedBitTestAndReset64Release      InterlockedBitTestAndReset64Release
#define InterlockedBitTestAndResetAcquire        InterlockedBitTestAndResetAcquire
#define InterlockedBitTestAndResetNoFence        InterlockedBitTestAndResetNoFence
#define InterlockedBitTestAndResetRelease        InterlockedBitTestAndResetRelease
#define InterlockedBitTestAndSet                 InterlockedBitTestAndSet
#define InterlockedBitTestAndSet64               InterlockedBitTestAndSet64
#define InterlockedBitTestAndSet64Acquire        InterlockedBitTestAndSet64Acquire
#define InterlockedBitTestAndSet64NoFence        InterlockedBitTestAndSet64NoFence
#define InterlockedBitTestAndSet64Release        InterlockedBitTestAndSet64Release
#define InterlockedBitTestAndSetAcquire          InterlockedBitTestAndSetAcquire
#define InterlockedBitTestAndSetNoFence          InterlockedBitTestAndSetNoFence
#define InterlockedBitTestAndSetRelease          InterlockedBitTestAndSetRelease
#define InterlockedCompareExchange               InterlockedCompareExchange
#define InterlockedCompareExchange128            InterlockedCompareExchange128
#define InterlockedCompareExchange16             InterlockedCompareExchange16
#define InterlockedCompareExchange64             InterlockedCompareExchange64
#define InterlockedCompareExchange8              InterlockedCompareExchange8
#define InterlockedCompareExchangeAcquire        InterlockedCompareExchangeAcquire
#define InterlockedCompareExchangeAcquire16      InterlockedCompareExchangeAcquire16
#define InterlockedCompareExchangeAcquire64      InterlockedCompareExchangeAcquire64
#define InterlockedCompareExchangeNoFence        InterlockedCompareExchangeNoFence
#define InterlockedCompareExchangeNoFence16      InterlockedCompareExchangeNoFence16
#define InterlockedCompareExchangeNoFence64      InterlockedCompareExchangeNoFence64
#define InterlockedCompareExchangePointer        InterlockedCompareExchangePointer
#define InterlockedCompareExchangePointerAcquire InterlockedCompareExchangePointerAcquire
#define InterlockedCompareExchangePointerNoFence InterlockedCompareExchangePointerNoFence
#define InterlockedCompareExchangePointerRelease InterlockedCompareExchangePointerRelease
#define InterlockedCompareExchangeRelease        InterlockedCompareExchangeRelease
#define InterlockedCompareExchangeRelease16      InterlockedCompareExchangeRelease16
#define InterlockedCompareExchangeRelease64      InterlockedCompareExchangeRelease64
#define InterlockedDecrement                     InterlockedDecrement
#define InterlockedDecrement16                   InterlockedDecrement16
#define InterlockedDecrement64                   InterlockedDecrement64
#define InterlockedDecrementAcquire              InterlockedDecrementAcquire
#define InterlockedDecrementAcquire16            InterlockedDecrementAcquire16
#define InterlockedDecrementAcquire64            InterlockedDecrementAcquire64
#define InterlockedDecrementNoFence              InterlockedDecrementNoFence
#define InterlockedDecrementNoFence16            InterlockedDecrementNoFence16
#define InterlockedDecrementNoFence64            InterlockedDecrementNoFence64
#define InterlockedDecrementRelease              InterlockedDecrementRelease
#define InterlockedDecrementRelease16            InterlockedDecrementRelease16
#define InterlockedDecrementRelease64            InterlockedDecrementRelease64
#define InterlockedExchange                      InterlockedExchange
#define InterlockedExchange16                    InterlockedExchange16
#define InterlockedExchange64                    InterlockedExchange64
#define InterlockedExchange8                     InterlockedExchange8
#define InterlockedExchangeAcquire               InterlockedExchangeAcquire
#define InterlockedExchangeAcquire64             InterlockedExchangeAcquire64
#define InterlockedExchangeAdd                   InterlockedExchangeAdd
#define InterlockedExchangeAdd16                 InterlockedExchangeAdd16
#define InterlockedExchangeAdd64                 InterlockedExchangeAdd64
#define InterlockedExchangeAdd8                  InterlockedExchangeAdd8
#define InterlockedExchangeAddAcquire            InterlockedExchangeAddAcquire
#define InterlockedExchangeAddAcquire64          InterlockedExchangeAddAcquire64
#define InterlockedExchangeAddNoFence            InterlockedExchangeAddNoFence
#define InterlockedExchangeAddNoFence64          InterlockedExchangeAddNoFence64
#define InterlockedExchangeAddRelease            InterlockedExchangeAddRelease
#define InterlockedExchangeAddRelease64          InterlockedExchangeAddRelease64
#define InterlockedExchangeNoFence               InterlockedExchangeNoFence
#define InterlockedExchangeNoFence64             InterlockedExchangeNoFence64
#define InterlockedExchangePointer               InterlockedExchangePointer
#define InterlockedExchangePointerAcquire        InterlockedExchangePointerAcquire
#define InterlockedExchangePointerNoFence        InterlockedExchangePointerNoFence
#define InterlockedExchangePointerRelease        InterlockedExchangePointerRelease
#define InterlockedExchangeRelease               InterlockedExchangeRelease
#define InterlockedExchangeRelease64             InterlockedExchangeRelease64
#define InterlockedIncrement                     InterlockedIncrement
#define InterlockedIncrement16                   InterlockedIncrement16
#define InterlockedIncrement64                   InterlockedIncrement64
#define InterlockedIncrementAcquire              InterlockedIncrementAcquire
#define InterlockedIncrementAcquire16            InterlockedIncrementAcquire16
#define InterlockedIncrementAcquire64            InterlockedIncrementAcquire64
#define InterlockedIncrementNoFence              InterlockedIncrementNoFence
#define InterlockedIncrementNoFence16            InterlockedIncrementNoFence16
#define InterlockedIncrementNoFence64            InterlockedIncrementNoFence64
#define InterlockedIncrementRelease              InterlockedIncrementRelease
#define InterlockedIncrementRelease16            InterlockedIncrementRelease16
#define InterlockedIncrementRelease64            InterlockedIncrementRelease64
#define InterlockedOr                            InterlockedOr
#define InterlockedOr16                          InterlockedOr16
#define InterlockedOr64                          InterlockedOr64
#define InterlockedOr64Acquire                   InterlockedOr64Acquire
#define InterlockedOr64NoFence                   InterlockedOr64NoFence
#define InterlockedOr64Release                   InterlockedOr64Release
#define InterlockedOr8                           InterlockedOr8
#define InterlockedOrAcquire                     InterlockedOrAcquire
#define InterlockedOrNoFence                     InterlockedOrNoFence
#define InterlockedOrRelease                     InterlockedOrRelease
#define InterlockedXor                           InterlockedXor
#define InterlockedXor16                         InterlockedXor16
#define InterlockedXor64                         InterlockedXor64
#define InterlockedXor64Acquire                  InterlockedXor64Acquire
#define InterlockedXor64NoFence                  InterlockedXor64NoFence
#define InterlockedXor64Release                  InterlockedXor64Release
#define InterlockedXor8                          InterlockedXor8
#define InterlockedXorAcquire                    InterlockedXorAcquire
#define InterlockedXorNoFence                    InterlockedXorNoFence
#define InterlockedXorRelease                    InterlockedXorRelease

#endif
