/* Every interlocked operation at every width, against a sequential model. */
#include "support.h"

#include <inttypes.h>
#include <string.h>

#include <interlock/interlocked.h>

/* X(model operation, type, function) */
#define WORD_OPERATIONS(X)                                                                         \
    X(increment, LONG, InterlockedIncrement)                                                       \
    X(increment, LONG, InterlockedIncrementAcquire)                                                \
    X(increment, LONG, InterlockedIncrementRelease)                                                \
    X(increment, LONG, InterlockedIncrementNoFence)                                                \
    X(increment, LONG64, InterlockedIncrement64)                                                   \
    X(increment, LONG64, InterlockedIncrementAcquire64)                                            \
    X(increment, LONG64, InterlockedIncrementRelease64)                                            \
    X(increment, LONG64, InterlockedIncrementNoFence64)                                            \
    X(increment, SHORT, InterlockedIncrement16)                                                    \
    X(increment, SHORT, InterlockedIncrementAcquire16)                                             \
    X(increment, SHORT, InterlockedIncrementRelease16)                                             \
    X(increment, SHORT, InterlockedIncrementNoFence16)                                             \
    X(increment, SIZE_T, InterlockedIncrementSizeT)                                                \
    X(increment, LONG, _InterlockedIncrement)                                                      \
    X(increment, LONG, _InterlockedIncrement_acq)                                                  \
    X(increment, LONG, _InterlockedIncrement_rel)                                                  \
    X(increment, LONG, _InterlockedIncrement_nf)                                                   \
    X(increment, LONG64, _InterlockedIncrement64)                                                  \
    X(increment, LONG64, _InterlockedIncrement64_acq)                                              \
    X(increment, LONG64, _InterlockedIncrement64_rel)                                              \
    X(increment, LONG64, _InterlockedIncrement64_nf)                                               \
    X(increment, SHORT, _InterlockedIncrement16)                                                   \
    X(increment, SHORT, _InterlockedIncrement16_acq)                                               \
    X(increment, SHORT, _InterlockedIncrement16_rel)                                               \
    X(increment, SHORT, _InterlockedIncrement16_nf)                                                \
    X(decrement, LONG, InterlockedDecrement)                                                       \
    X(decrement, LONG, InterlockedDecrementAcquire)                                                \
    X(decrement, LONG, InterlockedDecrementRelease)                                                \
    X(decrement, LONG, InterlockedDecrementNoFence)                                                \
    X(decrement, LONG64, InterlockedDecrement64)                                                   \
    X(decrement, LONG64, InterlockedDecrementAcquire64)                                            \
    X(decrement, LONG64, InterlockedDecrementRelease64)                                            \
    X(decrement, LONG64, InterlockedDecrementNoFence64)                                            \
    X(decrement, SHORT, InterlockedDecrement16)                                                    \
    X(decrement, SHORT, InterlockedDecrementAcquire16)                                             \
    X(decrement, SHORT, InterlockedDecrementRelease16)                                             \
    X(decrement, SHORT, InterlockedDecrementNoFence16)                                             \
    X(decrement, SIZE_T, InterlockedDecrementSizeT)                                                \
    X(decrement, LONG, _InterlockedDecrement)                                                      \
    X(decrement, LONG, _InterlockedDecrement_acq)                                                  \
    X(decrement, LONG, _InterlockedDecrement_rel)                                                  \
    X(decrement, LONG, _InterlockedDecrement_nf)                                                   \
    X(decrement, LONG64, _InterlockedDecrement64)                                                  \
    X(decrement, LONG64, _InterlockedDecrement64_acq)                                              \
    X(decrement, LONG64, _InterlockedDecrement64_rel)                                              \
    X(decrement, LONG64, _InterlockedDecrement64_nf)                                               \
    X(decrement, SHORT, _InterlockedDecrement16)                                                   \
    X(decrement, SHORT, _InterlockedDecrement16_acq)                                               \
    X(decrement, SHORT, _InterlockedDecrement16_rel)                                               \
    X(decrement, SHORT, _InterlockedDecrement16_nf)                                                \
    X(add, LONG, InterlockedAdd)                                                                   \
    X(add, LONG, InterlockedAddAcquire)                                                            \
    X(add, LONG, InterlockedAddRelease)                                                            \
    X(add, LONG, InterlockedAddNoFence)                                                            \
    X(add, LONG64, InterlockedAdd64)                                                               \
    X(add, LONG64, InterlockedAddAcquire64)                                                        \
    X(add, LONG64, InterlockedAddRelease64)                                                        \
    X(add, LONG64, InterlockedAddNoFence64)                                                        \
    X(add, LONG, _InterlockedAdd)                                                                  \
    X(add, LONG, _InterlockedAdd_acq)                                                              \
    X(add, LONG, _InterlockedAdd_rel)                                                              \
    X(add, LONG, _InterlockedAdd_nf)                                                               \
    X(add, LONG64, _InterlockedAdd64)                                                              \
    X(add, LONG64, _InterlockedAdd64_acq)                                                          \
    X(add, LONG64, _InterlockedAdd64_rel)                                                          \
    X(add, LONG64, _InterlockedAdd64_nf)                                                           \
    X(exchange_add, LONG, InterlockedExchangeAdd)                                                  \
    X(exchange_add, LONG, InterlockedExchangeAddAcquire)                                           \
    X(exchange_add, LONG, InterlockedExchangeAddRelease)                                           \
    X(exchange_add, LONG, InterlockedExchangeAddNoFence)                                           \
    X(exchange_add, LONG64, InterlockedExchangeAdd64)                                              \
    X(exchange_add, LONG64, InterlockedExchangeAddAcquire64)                                       \
    X(exchange_add, LONG64, InterlockedExchangeAddRelease64)                                       \
    X(exchange_add, LONG64, InterlockedExchangeAddNoFence64)                                       \
    X(exchange_add, SHORT, InterlockedExchangeAdd16)                                               \
    X(exchange_add, CHAR, InterlockedExchangeAdd8)                                                 \
    X(exchange_add, SIZE_T, InterlockedExchangeAddSizeT)                                           \
    X(exchange_add, LONG, _InterlockedExchangeAdd)                                                 \
    X(exchange_add, LONG, _InterlockedExchangeAdd_acq)                                             \
    X(exchange_add, LONG, _InterlockedExchangeAdd_rel)                                             \
    X(exchange_add, LONG, _InterlockedExchangeAdd_nf)                                              \
    X(exchange_add, LONG64, _InterlockedExchangeAdd64)                                             \
    X(exchange_add, LONG64, _InterlockedExchangeAdd64_acq)                                         \
    X(exchange_add, LONG64, _InterlockedExchangeAdd64_rel)                                         \
    X(exchange_add, LONG64, _InterlockedExchangeAdd64_nf)                                          \
    X(exchange_add, SHORT, _InterlockedExchangeAdd16)                                              \
    X(exchange_add, CHAR, _InterlockedExchangeAdd8)                                                \
    X(exchange_subtract, ULONG, InterlockedExchangeSubtract)                                       \
    X(exchange, LONG, InterlockedExchange)                                                         \
    X(exchange, LONG, InterlockedExchangeAcquire)                                                  \
    X(exchange, LONG, InterlockedExchangeRelease)                                                  \
    X(exchange, LONG, InterlockedExchangeNoFence)                                                  \
    X(exchange, LONG64, InterlockedExchange64)                                                     \
    X(exchange, LONG64, InterlockedExchangeAcquire64)                                              \
    X(exchange, LONG64, InterlockedExchangeRelease64)                                              \
    X(exchange, LONG64, InterlockedExchangeNoFence64)                                              \
    X(exchange, SHORT, InterlockedExchange16)                                                      \
    X(exchange, CHAR, InterlockedExchange8)                                                        \
    X(exchange, PVOID, InterlockedExchangePointer)                                                 \
    X(exchange, PVOID, InterlockedExchangePointerAcquire)                                          \
    X(exchange, PVOID, InterlockedExchangePointerRelease)                                          \
    X(exchange, PVOID, InterlockedExchangePointerNoFence)                                          \
    X(exchange, LONG, _InterlockedExchange)                                                        \
    X(exchange, LONG, _InterlockedExchange_acq)                                                    \
    X(exchange, LONG, _InterlockedExchange_rel)                                                    \
    X(exchange, LONG, _InterlockedExchange_nf)                                                     \
    X(exchange, LONG64, _InterlockedExchange64)                                                    \
    X(exchange, LONG64, _InterlockedExchange64_acq)                                                \
    X(exchange, LONG64, _InterlockedExchange64_rel)                                                \
    X(exchange, LONG64, _InterlockedExchange64_nf)                                                 \
    X(exchange, SHORT, _InterlockedExchange16)                                                     \
    X(exchange, CHAR, _InterlockedExchange8)                                                       \
    X(exchange, PVOID, _InterlockedExchangePointer)                                                \
    X(exchange, PVOID, _InterlockedExchangePointer_acq)                                            \
    X(exchange, PVOID, _InterlockedExchangePointer_rel)                                            \
    X(exchange, PVOID, _InterlockedExchangePointer_nf)                                             \
    X(compare_exchange, LONG, InterlockedCompareExchange)                                          \
    X(compare_exchange, LONG, InterlockedCompareExchangeAcquire)                                   \
    X(compare_exchange, LONG, InterlockedCompareExchangeRelease)                                   \
    X(compare_exchange, LONG, InterlockedCompareExchangeNoFence)                                   \
    X(compare_exchange, LONG64, InterlockedCompareExchange64)                                      \
    X(compare_exchange, LONG64, InterlockedCompareExchangeAcquire64)                               \
    X(compare_exchange, LONG64, InterlockedCompareExchangeRelease64)                               \
    X(compare_exchange, LONG64, InterlockedCompareExchangeNoFence64)                               \
    X(compare_exchange, SHORT, InterlockedCompareExchange16)                                       \
    X(compare_exchange, SHORT, InterlockedCompareExchangeAcquire16)                                \
    X(compare_exchange, SHORT, InterlockedCompareExchangeRelease16)                                \
    X(compare_exchange, SHORT, InterlockedCompareExchangeNoFence16)                                \
    X(compare_exchange, CHAR, InterlockedCompareExchange8)                                         \
    X(compare_exchange, PVOID, InterlockedCompareExchangePointer)                                  \
    X(compare_exchange, PVOID, InterlockedCompareExchangePointerAcquire)                           \
    X(compare_exchange, PVOID, InterlockedCompareExchangePointerRelease)                           \
    X(compare_exchange, PVOID, InterlockedCompareExchangePointerNoFence)                           \
    X(compare_exchange, LONG, _InterlockedCompareExchange)                                         \
    X(compare_exchange, LONG, _InterlockedCompareExchange_acq)                                     \
    X(compare_exchange, LONG, _InterlockedCompareExchange_rel)                                     \
    X(compare_exchange, LONG, _InterlockedCompareExchange_nf)                                      \
    X(compare_exchange, LONG64, _InterlockedCompareExchange64)                                     \
    X(compare_exchange, LONG64, _InterlockedCompareExchange64_acq)                                 \
    X(compare_exchange, LONG64, _InterlockedCompareExchange64_rel)                                 \
    X(compare_exchange, LONG64, _InterlockedCompareExchange64_nf)                                  \
    X(compare_exchange, SHORT, _InterlockedCompareExchange16)                                      \
    X(compare_exchange, SHORT, _InterlockedCompareExchange16_acq)                                  \
    X(compare_exchange, SHORT, _InterlockedCompareExchange16_rel)                                  \
    X(compare_exchange, SHORT, _InterlockedCompareExchange16_nf)                                   \
    X(compare_exchange, CHAR, _InterlockedCompareExchange8)                                        \
    X(compare_exchange, PVOID, _InterlockedCompareExchangePointer)                                 \
    X(compare_exchange, PVOID, _InterlockedCompareExchangePointer_acq)                             \
    X(compare_exchange, PVOID, _InterlockedCompareExchangePointer_rel)                             \
    X(compare_exchange, PVOID, _InterlockedCompareExchangePointer_nf)                              \
    X(and, LONG, InterlockedAnd)                                                                   \
    X(and, LONG, InterlockedAndAcquire)                                                            \
    X(and, LONG, InterlockedAndRelease)                                                            \
    X(and, LONG, InterlockedAndNoFence)                                                            \
    X(and, LONG64, InterlockedAnd64)                                                               \
    X(and, LONG64, InterlockedAnd64Acquire)                                                        \
    X(and, LONG64, InterlockedAnd64Release)                                                        \
    X(and, LONG64, InterlockedAnd64NoFence)                                                        \
    X(and, SHORT, InterlockedAnd16)                                                                \
    X(and, CHAR, InterlockedAnd8)                                                                  \
    X(and, KAFFINITY, InterlockedAndAffinity)                                                      \
    X(and, LONG, _InterlockedAnd)                                                                  \
    X(and, LONG, _InterlockedAnd_acq)                                                              \
    X(and, LONG, _InterlockedAnd_rel)                                                              \
    X(and, LONG, _InterlockedAnd_nf)                                                               \
    X(and, LONG64, _InterlockedAnd64)                                                              \
    X(and, LONG64, _InterlockedAnd64_acq)                                                          \
    X(and, LONG64, _InterlockedAnd64_rel)                                                          \
    X(and, LONG64, _InterlockedAnd64_nf)                                                           \
    X(and, SHORT, _InterlockedAnd16)                                                               \
    X(and, CHAR, _InterlockedAnd8)                                                                 \
    X(or, LONG, InterlockedOr)                                                                     \
    X(or, LONG, InterlockedOrAcquire)                                                              \
    X(or, LONG, InterlockedOrRelease)                                                              \
    X(or, LONG, InterlockedOrNoFence)                                                              \
    X(or, LONG64, InterlockedOr64)                                                                 \
    X(or, LONG64, InterlockedOr64Acquire)                                                          \
    X(or, LONG64, InterlockedOr64Release)                                                          \
    X(or, LONG64, InterlockedOr64NoFence)                                                          \
    X(or, SHORT, InterlockedOr16)                                                                  \
    X(or, CHAR, InterlockedOr8)                                                                    \
    X(or, KAFFINITY, InterlockedOrAffinity)                                                        \
    X(or, LONG, _InterlockedOr)                                                                    \
    X(or, LONG, _InterlockedOr_acq)                                                                \
    X(or, LONG, _InterlockedOr_rel)                                                                \
    X(or, LONG, _InterlockedOr_nf)                                                                 \
    X(or, LONG64, _InterlockedOr64)                                                                \
    X(or, LONG64, _InterlockedOr64_acq)                                                            \
    X(or, LONG64, _InterlockedOr64_rel)                                                            \
    X(or, LONG64, _InterlockedOr64_nf)                                                             \
    X(or, SHORT, _InterlockedOr16)                                                                 \
    X(or, CHAR, _InterlockedOr8)                                                                   \
    X(xor, LONG, InterlockedXor)                                                                   \
    X(xor, LONG, InterlockedXorAcquire)                                                            \
    X(xor, LONG, InterlockedXorRelease)                                                            \
    X(xor, LONG, InterlockedXorNoFence)                                                            \
    X(xor, LONG64, InterlockedXor64)                                                               \
    X(xor, LONG64, InterlockedXor64Acquire)                                                        \
    X(xor, LONG64, InterlockedXor64Release)                                                        \
    X(xor, LONG64, InterlockedXor64NoFence)                                                        \
    X(xor, SHORT, InterlockedXor16)                                                                \
    X(xor, CHAR, InterlockedXor8)                                                                  \
    X(xor, LONG, _InterlockedXor)                                                                  \
    X(xor, LONG, _InterlockedXor_acq)                                                              \
    X(xor, LONG, _InterlockedXor_rel)                                                              \
    X(xor, LONG, _InterlockedXor_nf)                                                               \
    X(xor, LONG64, _InterlockedXor64)                                                              \
    X(xor, LONG64, _InterlockedXor64_acq)                                                          \
    X(xor, LONG64, _InterlockedXor64_rel)                                                          \
    X(xor, LONG64, _InterlockedXor64_nf)                                                           \
    X(xor, SHORT, _InterlockedXor16)                                                               \
    X(xor, CHAR, _InterlockedXor8)                                                                 \
    X(read, CHAR, ReadAcquire8)                                                                    \
    X(read, CHAR, ReadNoFence8)                                                                    \
    X(read, CHAR, ReadRaw8)                                                                        \
    X(read, SHORT, ReadAcquire16)                                                                  \
    X(read, SHORT, ReadNoFence16)                                                                  \
    X(read, SHORT, ReadRaw16)                                                                      \
    X(read, LONG, ReadAcquire)                                                                     \
    X(read, LONG, ReadNoFence)                                                                     \
    X(read, LONG, ReadRaw)                                                                         \
    X(read, LONG64, ReadAcquire64)                                                                 \
    X(read, LONG64, ReadNoFence64)                                                                 \
    X(read, LONG64, ReadRaw64)                                                                     \
    X(read, UCHAR, ReadUCharAcquire)                                                               \
    X(read, UCHAR, ReadUCharNoFence)                                                               \
    X(read, UCHAR, ReadUCharRaw)                                                                   \
    X(read, BOOLEAN, ReadBooleanAcquire)                                                           \
    X(read, BOOLEAN, ReadBooleanNoFence)                                                           \
    X(read, BOOLEAN, ReadBooleanRaw)                                                               \
    X(read, USHORT, ReadUShortAcquire)                                                             \
    X(read, USHORT, ReadUShortNoFence)                                                             \
    X(read, USHORT, ReadUShortRaw)                                                                 \
    X(read, ULONG, ReadULongAcquire)                                                               \
    X(read, ULONG, ReadULongNoFence)                                                               \
    X(read, ULONG, ReadULongRaw)                                                                   \
    X(read, ULONG64, ReadULong64Acquire)                                                           \
    X(read, ULONG64, ReadULong64NoFence)                                                           \
    X(read, ULONG64, ReadULong64Raw)                                                               \
    X(read, LONG_PTR, ReadLongPtrAcquire)                                                          \
    X(read, LONG_PTR, ReadLongPtrNoFence)                                                          \
    X(read, LONG_PTR, ReadLongPtrRaw)                                                              \
    X(read, ULONG_PTR, ReadULongPtrAcquire)                                                        \
    X(read, ULONG_PTR, ReadULongPtrNoFence)                                                        \
    X(read, ULONG_PTR, ReadULongPtrRaw)                                                            \
    X(read, PVOID, ReadPointerAcquire)                                                             \
    X(read, PVOID, ReadPointerNoFence)                                                             \
    X(read, PVOID, ReadPointerRaw)                                                                 \
    X(write, CHAR, WriteRelease8)                                                                  \
    X(write, CHAR, WriteNoFence8)                                                                  \
    X(write, CHAR, WriteRaw8)                                                                      \
    X(write, SHORT, WriteRelease16)                                                                \
    X(write, SHORT, WriteNoFence16)                                                                \
    X(write, SHORT, WriteRaw16)                                                                    \
    X(write, LONG, WriteRelease)                                                                   \
    X(write, LONG, WriteNoFence)                                                                   \
    X(write, LONG, WriteRaw)                                                                       \
    X(write, LONG64, WriteRelease64)                                                               \
    X(write, LONG64, WriteNoFence64)                                                               \
    X(write, LONG64, WriteRaw64)                                                                   \
    X(write, UCHAR, WriteUCharRelease)                                                             \
    X(write, UCHAR, WriteUCharNoFence)                                                             \
    X(write, UCHAR, WriteUCharRaw)                                                                 \
    X(write, BOOLEAN, WriteBooleanRelease)                                                         \
    X(write, BOOLEAN, WriteBooleanNoFence)                                                         \
    X(write, BOOLEAN, WriteBooleanRaw)                                                             \
    X(write, USHORT, WriteUShortRelease)                                                           \
    X(write, USHORT, WriteUShortNoFence)                                                           \
    X(write, USHORT, WriteUShortRaw)                                                               \
    X(write, ULONG, WriteULongRelease)                                                             \
    X(write, ULONG, WriteULongNoFence)                                                             \
    X(write, ULONG, WriteULongRaw)                                                                 \
    X(write, ULONG64, WriteULong64Release)                                                         \
    X(write, ULONG64, WriteULong64NoFence)                                                         \
    X(write, ULONG64, WriteULong64Raw)                                                             \
    X(write, LONG_PTR, WriteLongPtrRelease)                                                        \
    X(write, LONG_PTR, WriteLongPtrNoFence)                                                        \
    X(write, LONG_PTR, WriteLongPtrRaw)                                                            \
    X(write, ULONG_PTR, WriteULongPtrRelease)                                                      \
    X(write, ULONG_PTR, WriteULongPtrNoFence)                                                      \
    X(write, ULONG_PTR, WriteULongPtrRaw)                                                          \
    X(write, PVOID, WritePointerRelease)                                                           \
    X(write, PVOID, WritePointerNoFence)                                                           \
    X(write, PVOID, WritePointerRaw)

#define BIT_OPERATIONS(X)                                                                          \
    X(bit_set, LONG, InterlockedBitTestAndSet)                                                     \
    X(bit_set, LONG, InterlockedBitTestAndSetAcquire)                                              \
    X(bit_set, LONG, InterlockedBitTestAndSetRelease)                                              \
    X(bit_set, LONG, InterlockedBitTestAndSetNoFence)                                              \
    X(bit_set, LONG64, InterlockedBitTestAndSet64)                                                 \
    X(bit_set, LONG64, InterlockedBitTestAndSet64Acquire)                                          \
    X(bit_set, LONG64, InterlockedBitTestAndSet64Release)                                          \
    X(bit_set, LONG64, InterlockedBitTestAndSet64NoFence)                                          \
    X(bit_set, LONG, _interlockedbittestandset)                                                    \
    X(bit_set, LONG, _interlockedbittestandset_acq)                                                \
    X(bit_set, LONG, _interlockedbittestandset_rel)                                                \
    X(bit_set, LONG, _interlockedbittestandset_nf)                                                 \
    X(bit_set, LONG64, _interlockedbittestandset64)                                                \
    X(bit_set, LONG64, _interlockedbittestandset64_acq)                                            \
    X(bit_set, LONG64, _interlockedbittestandset64_rel)                                            \
    X(bit_set, LONG64, _interlockedbittestandset64_nf)                                             \
    X(bit_reset, LONG, InterlockedBitTestAndReset)                                                 \
    X(bit_reset, LONG, InterlockedBitTestAndResetAcquire)                                          \
    X(bit_reset, LONG, InterlockedBitTestAndResetRelease)                                          \
    X(bit_reset, LONG, InterlockedBitTestAndResetNoFence)                                          \
    X(bit_reset, LONG64, InterlockedBitTestAndReset64)                                             \
    X(bit_reset, LONG64, InterlockedBitTestAndReset64Acquire)                                      \
    X(bit_reset, LONG64, InterlockedBitTestAndReset64Release)                                      \
    X(bit_reset, LONG64, InterlockedBitTestAndReset64NoFence)                                      \
    X(bit_reset, LONG, _interlockedbittestandreset)                                                \
    X(bit_reset, LONG, _interlockedbittestandreset_acq)                                            \
    X(bit_reset, LONG, _interlockedbittestandreset_rel)                                            \
    X(bit_reset, LONG, _interlockedbittestandreset_nf)                                             \
    X(bit_reset, LONG64, _interlockedbittestandreset64)                                            \
    X(bit_reset, LONG64, _interlockedbittestandreset64_acq)                                        \
    X(bit_reset, LONG64, _interlockedbittestandreset64_rel)                                        \
    X(bit_reset, LONG64, _interlockedbittestandreset64_nf)                                         \
    X(bit_complement, LONG, InterlockedBitTestAndComplement)                                       \
    X(bit_complement, LONG, InterlockedBitTestAndComplementAcquire)                                \
    X(bit_complement, LONG, InterlockedBitTestAndComplementRelease)                                \
    X(bit_complement, LONG, InterlockedBitTestAndComplementNoFence)                                \
    X(bit_complement, LONG64, InterlockedBitTestAndComplement64)                                   \
    X(bit_complement, LONG64, InterlockedBitTestAndComplement64Acquire)                            \
    X(bit_complement, LONG64, InterlockedBitTestAndComplement64Release)                            \
    X(bit_complement, LONG64, InterlockedBitTestAndComplement64NoFence)                            \
    X(bit_complement, LONG, _interlockedbittestandcomplement)                                      \
    X(bit_complement, LONG64, _interlockedbittestandcomplement64)

enum kind {
    increment,
    decrement,
    add,
    exchange_add,
    exchange_subtract,
    exchange,
    compare_exchange,
    and,
    or
    , xor, read, write, bit_set, bit_reset, bit_complement,
};

struct outcome {
    uint64_t stored;
    uint64_t returned;
};

static uint64_t mask_of(unsigned size)
{
    return UINT64_MAX >> (64 - 8 * size);
}

/* first: the operand, or the value to store; second: the comparand. */
static struct outcome model(enum kind kind, unsigned size, uint64_t old, uint64_t first,
                            uint64_t second)
{
    struct outcome o = {old, old};

    switch (kind) {
    case increment:
        o.stored = o.returned = old + 1;
        break;
    case decrement:
        o.stored = o.returned = old - 1;
        break;
    case add:
        o.stored = o.returned = old + first;
        break;
    case exchange_add:
        o.stored = old + first;
        break;
    case exchange_subtract:
        o.stored = old - first;
        break;
    case exchange:
        o.stored = first;
        break;
    case compare_exchange:
        o.stored = old == second ? first : old;
        break;
    case and:
        o.stored = old & first;
        break;
    case or:
        o.stored = old | first;
        break;
    case xor:
        o.stored = old ^ first;
        break;
    case read:
        break;
    case write:
        o.stored = first;
        o.returned = 0;
        break;
    default:
        fail();
    }
    o.stored &= mask_of(size);
    o.returned &= mask_of(size);
    return o;
}

/* One function of the same type around each operation. */
typedef uint64_t call(volatile void *target, uint64_t first, uint64_t second);

#define CALL_increment(Type, Name)         return (uint64_t)Name((Type volatile *)target)
#define CALL_decrement(Type, Name)         return (uint64_t)Name((Type volatile *)target)
#define CALL_binary(Type, Name)            return (uint64_t)Name((Type volatile *)target, (Type)first)
#define CALL_add(Type, Name)               CALL_binary(Type, Name)
#define CALL_exchange_add(Type, Name)      CALL_binary(Type, Name)
#define CALL_exchange_subtract(Type, Name) CALL_binary(Type, Name)
#define CALL_exchange(Type, Name)          CALL_binary(Type, Name)
#define CALL_and(Type, Name)               CALL_binary(Type, Name)
#define CALL_or(Type, Name)                CALL_binary(Type, Name)
#define CALL_xor(Type, Name)               CALL_binary(Type, Name)
#define CALL_read(Type, Name)              return (uint64_t)Name((Type const volatile *)target)
#define CALL_compare_exchange(Type, Name)                                                          \
    return (uint64_t)Name((Type volatile *)target, (Type)first, (Type)second)
#define CALL_write(Type, Name)                                                                     \
    Name((Type volatile *)target, (Type)first);                                                    \
    return 0

#define DEFINE_CALL(Kind, Type, Name)                                                              \
    static uint64_t call_##Name(volatile void *target, uint64_t first, uint64_t second)            \
    {                                                                                              \
        (void)first;                                                                               \
        (void)second;                                                                              \
        CALL_##Kind(Type, Name);                                                                   \
    }
WORD_OPERATIONS(DEFINE_CALL)

struct operation {
    const char *name;
    enum kind kind;
    unsigned size;
    call *call;
};

#define OPERATION(Kind, Type, Name) {#Name, Kind, sizeof(Type), call_##Name},
static const struct operation operations[] = {WORD_OPERATIONS(OPERATION)};

static const uint64_t values[] = {
    0,
    1,
    2,
    UINT64_MAX,
    UINT64_MAX - 1,
    0x7e,
    0x7f,
    0x80,
    0x81,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x10000,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    0x100000000,
    0x7fffffffffffffff,
    0x8000000000000000,
    0x8000000000000001,
    0x5555555555555555,
    0xaaaaaaaaaaaaaaaa,
    0x0123456789abcdef,
};

static void check(const struct operation *op, uint64_t old, uint64_t first, uint64_t second)
{
    const uint64_t mask = mask_of(op->size);
    struct outcome expected;
    uint64_t returned, stored = 0;
    union {
        uint8_t bytes[24];
        uint64_t align;
    } memory, untouched;
    uint8_t *const target = memory.bytes + 8;

    old &= mask;
    first &= mask;
    second &= mask;
    memset(&memory, 0xa5, sizeof(memory));
    memcpy(target, &old, op->size);
    expected = model(op->kind, op->size, old, first, second);

    returned = op->call(target, first, second) & mask;
    memcpy(&stored, target, op->size);
    if (returned != expected.returned || stored != expected.stored)
        fail_msg("%s of %" PRIx64 " with %" PRIx64 ", %" PRIx64 ": returned %" PRIx64
                 " instead of %" PRIx64 ", stored %" PRIx64 " instead of %" PRIx64,
                 op->name, old, first, second, returned, expected.returned, stored,
                 expected.stored);
    memset(&untouched, 0xa5, sizeof(untouched));
    memcpy(untouched.bytes + 8, target, op->size);
    if (memcmp(memory.bytes, untouched.bytes, sizeof(memory.bytes)) != 0)
        fail_msg("%s wrote beside its target", op->name);
}

static void test_words(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(operations); i++)
        for (size_t a = 0; a < ARRAYSIZE(values); a++)
            for (size_t b = 0; b < ARRAYSIZE(values); b++) {
                check(&operations[i], values[a], values[b], values[a]);
                check(&operations[i], values[a], values[b], values[b]);
                check(&operations[i], values[a], values[b], ~values[a]);
            }
}

#define DEFINE_BIT_CALL(Kind, Type, Name)                                                          \
    static UCHAR call_##Name(volatile void *base, int bit)                                         \
    {                                                                                              \
        return Name((Type volatile *)base, bit);                                                   \
    }
BIT_OPERATIONS(DEFINE_BIT_CALL)

#define PLAIN_BIT_OPERATIONS(X)                                                                    \
    X(read, LONG, BitTest)                                                                         \
    X(read, LONG64, BitTest64)                                                                     \
    X(read, LONG, _bittest)                                                                        \
    X(read, LONG64, _bittest64)                                                                    \
    X(bit_set, LONG, BitTestAndSet)                                                                \
    X(bit_set, LONG64, BitTestAndSet64)                                                            \
    X(bit_set, LONG, _bittestandset)                                                               \
    X(bit_set, LONG64, _bittestandset64)                                                           \
    X(bit_reset, LONG, BitTestAndReset)                                                            \
    X(bit_reset, LONG64, BitTestAndReset64)                                                        \
    X(bit_reset, LONG, _bittestandreset)                                                           \
    X(bit_reset, LONG64, _bittestandreset64)                                                       \
    X(bit_complement, LONG, BitTestAndComplement)                                                  \
    X(bit_complement, LONG64, BitTestAndComplement64)                                              \
    X(bit_complement, LONG, _bittestandcomplement)                                                 \
    X(bit_complement, LONG64, _bittestandcomplement64)

#define DEFINE_PLAIN_BIT_CALL(Kind, Type, Name)                                                    \
    static UCHAR call_##Name(volatile void *base, int bit)                                         \
    {                                                                                              \
        return Name((Type *)base, bit);                                                            \
    }
PLAIN_BIT_OPERATIONS(DEFINE_PLAIN_BIT_CALL)

#define BIT_OPERATION(Kind, Type, Name) {#Name, Kind, call_##Name},
static const struct {
    const char *name;
    enum kind kind;
    UCHAR (*call)(volatile void *base, int bit);
} bit_operations[] = {BIT_OPERATIONS(BIT_OPERATION) PLAIN_BIT_OPERATIONS(BIT_OPERATION)};

static void test_bits(void **state)
{
    static const uint8_t patterns[] = {0x00, 0xff, 0x55, 0xaa, 0x93};
    enum { bytes = 48, base = 16 };

    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(bit_operations); i++)
        for (size_t p = 0; p < ARRAYSIZE(patterns); p++)
            for (int bit = -8 * base; bit < 8 * (bytes - base); bit++) {
                union {
                    uint8_t bytes[bytes];
                    uint64_t align;
                } memory, expected;
                uint8_t *byte = &expected.bytes[(bit + 8 * base) / 8];
                const uint8_t mask = (uint8_t)(1 << ((bit + 8 * base) % 8));
                UCHAR old, returned;

                memset(&memory, patterns[p], sizeof(memory));
                memset(&expected, patterns[p], sizeof(expected));
                old = (*byte & mask) != 0;
                if (bit_operations[i].kind == bit_set)
                    *byte |= mask;
                else if (bit_operations[i].kind == bit_reset)
                    *byte &= (uint8_t)~mask;
                else if (bit_operations[i].kind == bit_complement)
                    *byte ^= mask;
                returned = bit_operations[i].call(memory.bytes + base, bit);
                if (returned != old || memcmp(memory.bytes, expected.bytes, bytes) != 0)
                    fail_msg("%s of bit %d, pattern %02x", bit_operations[i].name, bit,
                             patterns[p]);
            }
}

static void test_compare_exchange_128(void **state)
{
    static const LONG64 halves[] = {0, 1, -1, INT64_MIN, INT64_MAX, 0x0123456789abcdef};
    _Alignas(16) LONG64 target[4];
    LONG64 comparand[2];

    (void)state;
    for (size_t low = 0; low < ARRAYSIZE(halves); low++)
        for (size_t high = 0; high < ARRAYSIZE(halves); high++)
            for (int differs = 0; differs < 4; differs++) {
                const LONG64 old[2] = {halves[low], halves[high]};

                target[0] = old[0];
                target[1] = old[1];
                target[2] = target[3] = 77;
                comparand[0] = old[0] ^ (differs & 1);
                comparand[1] = old[1] ^ (differs >> 1);
                assert_int_equal(InterlockedCompareExchange128(target, 0x1111, 0x2222, comparand),
                                 differs == 0);
                assert_true(comparand[0] == old[0] && comparand[1] == old[1]);
                assert_true(target[0] == (differs == 0 ? 0x2222 : old[0]));
                assert_true(target[1] == (differs == 0 ? 0x1111 : old[1]));
                assert_true(target[2] == 77 && target[3] == 77);
            }
    comparand[0] = target[0];
    comparand[1] = target[1];
    assert_int_equal(_InterlockedCompareExchange128(target, 3, 4, comparand), 1);
    assert_int_equal(_InterlockedCompareExchange128_acq(target, 5, 6, comparand), 0);
    assert_int_equal(_InterlockedCompareExchange128_rel(target, 5, 6, comparand), 1);
    assert_int_equal(_InterlockedCompareExchange128_nf(target, 7, 8, comparand), 0);
    assert_true(target[0] == 6 && target[1] == 5);
}

static void test_bit_scans(void **state)
{
    ULONG index = 1234;

    (void)state;
    assert_int_equal(BitScanForward(&index, 0), 0);
    assert_int_equal(BitScanReverse(&index, 0), 0);
    assert_int_equal(BitScanForward64(&index, 0), 0);
    assert_int_equal(BitScanReverse64(&index, 0), 0);
    assert_int_equal(index, 1234);
    for (unsigned low = 0; low < 64; low++)
        for (unsigned high = low; high < 64; high++) {
            const ULONG64 mask = (ULONG64)1 << low | (ULONG64)1 << high;

            assert_int_equal(BitScanForward64(&index, mask), 1);
            assert_int_equal(index, low);
            assert_int_equal(_BitScanReverse64(&index, mask), 1);
            assert_int_equal(index, high);
            if (high < 32) {
                assert_int_equal(_BitScanForward(&index, (ULONG)mask), 1);
                assert_int_equal(index, low);
                assert_int_equal(BitScanReverse(&index, (ULONG)mask), 1);
                assert_int_equal(index, high);
            }
        }
}

/* Ported code casts freely between types of one size: no optimization may rely on the types. */
static DECLSPEC_NOINLINE float punned(float *value, LONG volatile *same)
{
    *value = 1.0f;
    InterlockedOrNoFence(same, (LONG)0x80000000);
    WriteNoFence(same, ReadNoFence(same) | 0x00400000);
    return *value;
}

static void test_aliasing(void **state)
{
    float value;

    (void)state;
    assert_true(punned(&value, (LONG volatile *)&value) == -1.5f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_bits),
        cmocka_unit_test(test_compare_exchange_128),
        cmocka_unit_test(test_bit_scans),
        cmocka_unit_test(test_aliasing),
    };
    return cmocka_run_group_tests_name("interlocked/operations", tests, NULL, NULL);
}
