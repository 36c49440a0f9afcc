/* handles.c: duplicating, comparing, protecting and closing handles. */
#include "report.h"

static void Duplicate(void)
{
    HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL), copy = NULL, second = NULL, thread = NULL, process = NULL;
    SHOW(DuplicateHandle(GetCurrentProcess(), event, GetCurrentProcess(), &copy, 0, FALSE, DUPLICATE_SAME_ACCESS));
    SHOW(SetEvent(copy));
    SHOW(WaitForSingleObject(event, 0));
    SHOW(DuplicateHandle(GetCurrentProcess(), copy, GetCurrentProcess(), &second, EVENT_MODIFY_STATE, FALSE,
                         DUPLICATE_CLOSE_SOURCE));
    SHOW(WaitForSingleObject(second, 0));
    SHOW(ResetEvent(second));
    SHOW(WaitForSingleObject(event, 0));
    SHOW(CloseHandle(second));
    copy = event;
    SHOW(DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), &thread, 0, FALSE,
                         DUPLICATE_SAME_ACCESS));
    SHOW(GetThreadId(thread) == GetCurrentThreadId());
    SHOW(DuplicateHandle(GetCurrentProcess(), GetCurrentProcess(), GetCurrentProcess(), &process, 0, FALSE,
                         DUPLICATE_SAME_ACCESS));
    SHOW(WaitForSingleObject(process, 0));
    SHOW(DuplicateHandle(GetCurrentProcess(), NULL, GetCurrentProcess(), &event, 0, FALSE, DUPLICATE_SAME_ACCESS));
    SHOW(DuplicateHandle(copy, copy, GetCurrentProcess(), &event, 0, FALSE, DUPLICATE_SAME_ACCESS));
    SHOW(DuplicateHandle(GetCurrentProcess(), copy, GetCurrentProcess(), NULL, 0, FALSE, DUPLICATE_SAME_ACCESS));
    SHOW(((ULONG_PTR)copy & 3) == 0 && (ULONG_PTR)copy <= 0xffffffff);
    CloseHandle(copy);
    CloseHandle(thread);
    CloseHandle(process);
}

static void Flags(void)
{
    HANDLE event = CreateEventW(NULL, TRUE, FALSE, NULL);
    DWORD flags = 99;
    SHOW(GetHandleInformation(event, &flags));
    SHOW(flags);
    SHOW(SetHandleInformation(event, HANDLE_FLAG_INHERIT, HANDLE_FLAG_INHERIT));
    SHOW(GetHandleInformation(event, &flags));
    SHOW(flags);
    SHOW(SetHandleInformation(event, HANDLE_FLAG_PROTECT_FROM_CLOSE, HANDLE_FLAG_PROTECT_FROM_CLOSE));
    SHOW(GetHandleInformation(event, &flags));
    SHOW(flags);
    SHOW(CloseHandle(event));
    SHOW(SetHandleInformation(event, HANDLE_FLAG_PROTECT_FROM_CLOSE, 0));
    SHOW(CloseHandle(event));
    SHOW(GetHandleInformation(event, &flags));
    SHOW(CloseHandle(NULL));
}

static void Inherited(void)
{
    SECURITY_ATTRIBUTES attributes;
    DWORD flags = 99;
    HANDLE event;
    attributes.nLength = sizeof(attributes);
    attributes.lpSecurityDescriptor = NULL;
    attributes.bInheritHandle = TRUE;
    event = CreateEventW(&attributes, FALSE, FALSE, NULL);
    SHOW(GetHandleInformation(event, &flags));
    SHOW(flags);
    CloseHandle(event);
}

int main(void)
{
    Duplicate();
    Flags();
    Inherited();
    return 0;
}
