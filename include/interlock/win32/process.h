/* win32/process.h: the threads of the C library. process.h includes it. */
#ifndef INTERLOCK_WIN32_PROCESS_H
#define INTERLOCK_WIN32_PROCESS_H

#include <interlock/win32/thread.h>

INTERLOCK_BEGIN

/* C runtime threads. */

typedef void (*_beginthread_proc_type)(void *);
typedef unsigned (*_beginthreadex_proc_type)(void *);

/* Starts a thread that closes its own handle when it ends. Returns -1 and sets errno on failure. Since NT 3.1. */
WINBASEAPI uintptr_t _beginthread(_beginthread_proc_type _StartAddress, unsigned _StackSize, void *_ArgList);

/* Ends the calling thread of _beginthread and closes its handle. Does not return. Since NT 3.1. */
WINBASEAPI DECLSPEC_NORETURN void _endthread(void);

/* CreateThread by the C runtime's name. Returns 0 and sets errno on failure. Since NT 3.1. */
WINBASEAPI uintptr_t _beginthreadex(void *_Security, unsigned _StackSize, _beginthreadex_proc_type _StartAddress,
                                    void *_ArgList, unsigned _InitFlag, unsigned *_ThrdAddr);

/* Ends the calling thread with an exit code. Does not return. Since NT 3.1. */
WINBASEAPI DECLSPEC_NORETURN void _endthreadex(unsigned _Retval);

/* GetCurrentProcessId by the C library's name. Since NT 3.1. */
FORCEINLINE int _getpid(void)
{
    return (int)GetCurrentProcessId();
}

INTERLOCK_END

#endif
