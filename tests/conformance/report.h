/*
 * report.h: the output of the behaviour programs. One line for each question, so that two runs of the same program, one
 * by another implementation of Win32, can be compared line by line. No addresses, ids or times are printed.
 */
#ifndef REPORT_H
#define REPORT_H

#include <windows.h>
#include <stdio.h>

#ifndef STATUS_USER_APC
#define STATUS_USER_APC ((DWORD)0x000000C0)
#endif

#define UNTOUCHED 0xdeadu

/* The value of an expression, and the last error that it leaves: "kept" if none was set. */
#define SHOW(expression)                                                                                               \
    do {                                                                                                               \
        SetLastError(UNTOUCHED);                                                                                       \
        ShowValue(#expression, (LONGLONG)(expression));                                                                \
    } while (0)

/* Only whether it is true: for handles, pointers and times. */
#define SHOW_TRUTH(expression)                                                                                         \
    do {                                                                                                               \
        SetLastError(UNTOUCHED);                                                                                       \
        ShowValue(#expression, (expression) ? 1 : 0);                                                                  \
    } while (0)

static void ShowValue(const char *text, LONGLONG value)
{
    DWORD error = GetLastError();
    if (value > -10 && value < 1000) {
        printf("%s = %d", text, (int)value);
    } else {
        printf("%s = 0x%x", text, (unsigned)value);
    }
    if (error == UNTOUCHED) {
        printf(", error kept\n");
    } else {
        printf(", error %u\n", (unsigned)error);
    }
    fflush(stdout);
}

static HANDLE StartThread(LPTHREAD_START_ROUTINE routine, LPVOID parameter)
{
    return CreateThread(NULL, 0, routine, parameter, 0, NULL);
}

static void JoinThread(HANDLE thread)
{
    if (WaitForSingleObject(thread, 60000) != WAIT_OBJECT_0) {
        printf("a thread hangs\n");
        fflush(stdout);
        ExitProcess(3);
    }
    CloseHandle(thread);
}

/* Runs to the end on a thread of its own. */
static inline void OnOtherThread(LPTHREAD_START_ROUTINE routine, LPVOID parameter)
{
    JoinThread(StartThread(routine, parameter));
}

#endif
