/* addresses.c: waiting on addresses, and singly linked lists. */
#include "report.h"

static volatile LONG flags[2];
static volatile LONG woken;

static DWORD WINAPI WaitForFlag(LPVOID parameter)
{
    LONG zero = 0;
    while (InterlockedCompareExchange((volatile LONG *)parameter, 0, 0) == 0) {
        WaitOnAddress((volatile VOID *)parameter, &zero, sizeof(zero), INFINITE);
    }
    return (DWORD)InterlockedIncrement(&woken);
}

static void Addresses(void)
{
    ULONG64 value = 5, same = 5, other = 6, partly;
    HANDLE threads[2];
    SHOW(WaitOnAddress(&value, &other, 8, INFINITE));
    SHOW(WaitOnAddress(&value, &same, 8, 0));
    SHOW(WaitOnAddress(&value, &same, 8, 10));
    SHOW(WaitOnAddress(&value, &same, 3, 0));
    SHOW(WaitOnAddress(&value, &same, 16, 0));
    SHOW(WaitOnAddress(&value, &same, 0, 0));
    partly = value | 0xff00000000ull;
    SHOW(WaitOnAddress(&value, &partly, 4, 0));
    SHOW(WaitOnAddress(&value, &partly, 8, 0));
    WakeByAddressSingle(&value);
    WakeByAddressAll(&value);
    WakeByAddressAll(NULL);
    threads[0] = StartThread(WaitForFlag, (LPVOID)&flags[0]);
    threads[1] = StartThread(WaitForFlag, (LPVOID)&flags[1]);
    Sleep(20);
    InterlockedExchange(&flags[0], 1);
    WakeByAddressAll((PVOID)&flags[0]);
    JoinThread(threads[0]);
    SHOW(woken);
    InterlockedExchange(&flags[1], 1);
    WakeByAddressSingle((PVOID)&flags[1]);
    JoinThread(threads[1]);
    SHOW(woken);
}

typedef struct Item {
    SLIST_ENTRY entry;
    LONG number;
} Item;

static LONG NumberOf(PSLIST_ENTRY entry)
{
    return entry == NULL ? -1 : CONTAINING_RECORD(entry, Item, entry)->number;
}

static void Lists(void)
{
    static SLIST_HEADER head;
    static Item items[3];
    LONG i;
    InitializeSListHead(&head);
    SHOW(NumberOf(InterlockedPopEntrySList(&head)));
    for (i = 0; i < 3; i++) {
        items[i].number = i;
        SHOW(NumberOf(InterlockedPushEntrySList(&head, &items[i].entry)));
    }
    SHOW(QueryDepthSList(&head));
    SHOW(NumberOf(InterlockedPopEntrySList(&head)));
    SHOW(NumberOf(InterlockedFlushSList(&head)));
    SHOW(QueryDepthSList(&head));
    SHOW(NumberOf(InterlockedFlushSList(&head)));
}

int main(void)
{
    Addresses();
    Lists();
    return 0;
}
