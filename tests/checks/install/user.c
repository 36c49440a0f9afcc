#include <windows.h>
#include <process.h>
#include <string.h>
#include <time.h>

int main(void)
{
    HANDLE event = CreateEventA(NULL, TRUE, FALSE, "event");
    LONG volatile counter = 41;

    if (event == NULL || !SetEvent(event) || WaitForSingleObject(event, 0) != WAIT_OBJECT_0 || !CloseHandle(event)) {
        return 2;
    }
    if (strlen("abc") != 3 || time(NULL) == (time_t)-1) {
        return 3;
    }
    return InterlockedIncrement(&counter) == 42 ? 0 : 1;
}
