/* Functions found at run time, as programs do that also run on older versions of Windows. */
#include <windows.h>
#include <stdio.h>

typedef HANDLE(WINAPI *PFN_CREATE_EVENT)(LPSECURITY_ATTRIBUTES, BOOL, BOOL, LPCSTR);
typedef BOOL(WINAPI *PFN_CLOSE_HANDLE)(HANDLE);
typedef LONG(WINAPI *PFN_NT_CLOSE)(HANDLE);

int main(void)
{
    static const char *const names[] = {
        "CreateEventW",     "WaitForMultipleObjectsEx", "InitializeConditionVariable", "WaitOnAddress", "CreateThread",
        "GetTickCount64",   "AcquireSRWLockShared",     "CreateThreadpoolWork",        "FlsAlloc",      "SleepEx",
        "InitOnceComplete", "CreateIoCompletionPort",
    };
    HMODULE kernel = GetModuleHandle(TEXT("kernel32.dll")), nt = GetModuleHandle(TEXT("ntdll.dll"));
    PFN_CREATE_EVENT create = (PFN_CREATE_EVENT)(void *)GetProcAddress(kernel, "CreateEventA");
    PFN_CLOSE_HANDLE close = (PFN_CLOSE_HANDLE)(void *)GetProcAddress(kernel, "CloseHandle");
    PFN_NT_CLOSE nt_close = (PFN_NT_CLOSE)(void *)GetProcAddress(nt, "NtClose");
    HANDLE first, second;
    size_t i;

    if (create == NULL || close == NULL || nt_close == NULL)
        return 1;
    first = create(NULL, TRUE, FALSE, NULL);
    second = create(NULL, TRUE, FALSE, NULL);
    if (!close(first) || nt_close(second) != 0)
        return 2;
    for (i = 0; i < ARRAYSIZE(names); i++) {
        if (GetProcAddress(kernel, names[i]) == NULL) {
            fprintf(stderr, "%s was not found\n", names[i]);
            return 3;
        }
    }
    if (GetProcAddress(kernel, "puts") != NULL || GetLastError() != ERROR_PROC_NOT_FOUND)
        return 4;
    if (GetProcAddress(kernel, "MessageBoxW") != NULL || GetProcAddress(nt, "KeSetEvent") != NULL)
        return 5;
    return GetProcAddress(NULL, "main_is_not_exported") == NULL ? 0 : 6;
}
