/* A bugcheck in a static function that is the last call of its caller: the return address is after the function. */
#include <ntddk.h>

static __attribute__((noinline)) void inner(void)
{
    KeBugCheckEx(MANUALLY_INITIATED_CRASH, 1, 2, 3, 4);
}

static __attribute__((noinline)) void outer(void)
{
    inner();
    __asm__ volatile("");
}

int main(void)
{
    outer();
    return 0;
}
