/* addressvalue.c: comparing what somebody waits on, at any alignment. acquire: pairs with the change of the value. */
#include "addressvalue.h"

/* By bytes, so that any address will do. A value that this catches half changed: the wake for it is yet to come. */
static BOOLEAN ExpIsSameInBytes(const volatile UCHAR *Address, const UCHAR *CompareAddress, SIZE_T Size)
{
    while (Size != 0 && __atomic_load_n(Address, __ATOMIC_ACQUIRE) == *CompareAddress) {
        Address += 1;
        CompareAddress += 1;
        Size -= 1;
    }
    return Size == 0;
}

#define EXP_SAME(Type, Address, CompareAddress)                                                                        \
    (__atomic_load_n((const volatile Type *)(Address), __ATOMIC_ACQUIRE) == *(const Type *)(CompareAddress))

BOOLEAN ExpIsSameValue(const volatile VOID *Address, const VOID *CompareAddress, SIZE_T Size)
{
    if (((ULONG_PTR)Address | (ULONG_PTR)CompareAddress) % Size != 0) {
        return ExpIsSameInBytes(Address, CompareAddress, Size);
    }
    switch (Size) {
    case sizeof(UCHAR):
        return EXP_SAME(UCHAR, Address, CompareAddress);
    case sizeof(USHORT):
        return EXP_SAME(USHORT, Address, CompareAddress);
    case sizeof(ULONG):
        return EXP_SAME(ULONG, Address, CompareAddress);
    default:
        return EXP_SAME(ULONG64, Address, CompareAddress);
    }
}

BOOLEAN ExpIsValueSize(SIZE_T Size)
{
    return Size == sizeof(UCHAR) || Size == sizeof(USHORT) || Size == sizeof(ULONG) || Size == sizeof(ULONG64);
}
