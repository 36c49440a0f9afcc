#include <interlock/ke.h>

int main(void)
{
    KSEMAPHORE semaphore;

    KeInitializeSemaphore(&semaphore, 1, 2);
    KeWaitForSingleObject(&semaphore, Executive, KernelMode, FALSE, NULL);
    return KeReadStateSemaphore(&semaphore) == 0 ? 0 : 1;
}
