/* addresses.c: waiting on addresses, and singly linked lists. */
#include "report.h"

static UCHAR bytes[16];
static volatile LONG woken;

static DWORD WINAPI WaitForByte(LPVOID parameter)
{
    UCHAR zero = 0;
    while (*(volatile UCHAR *)parameter == 0) {
        WaitOnAddress(parameter, &zero, 1, INFINITE);
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
    threads[0] = StartThread(WaitForByte, &bytes[3]);
    threads[1] = StartThread(WaitForByte, &bytes[5]);
    Sleep(20);
    bytes[3] = 1;
    WakeByAddressAll(&bytes[3]);
    JoinThread(threads[0]);
    SHOW(woken);
    bytes[5] = 1;
    WakeByAddressSingle(&bytes[5]);
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
