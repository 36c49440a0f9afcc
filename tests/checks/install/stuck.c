/* stuck.c: two threads take two critical sections in opposite order, and deadlock. */
#include <windows.h>

static CRITICAL_SECTION sections[2];
static HANDLE both_have_one;
static LONG volatile taken;

static DWORD WINAPI take(void *argument)
{
    int first = argument != NULL;

    EnterCriticalSection(&sections[first]);
    if (InterlockedIncrement(&taken) == 2) {
        SetEvent(both_have_one);
    }
    WaitForSingleObject(both_have_one, INFINITE);
    EnterCriticalSection(&sections[!first]);
    return 0;
}

int main(void)
{
    HANDLE other;

    both_have_one = CreateEventA(NULL, TRUE, FALSE, NULL);
    InitializeCriticalSection(&sections[0]);
    InitializeCriticalSection(&sections[1]);
    other = CreateThread(NULL, 0, take, &sections, 0, NULL);
    take(NULL);
    return WaitForSingleObject(other, INFINITE) == WAIT_OBJECT_0 ? 0 : 1;
}
