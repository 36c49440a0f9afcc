/* win32/crt.h: what Microsoft's C library has beyond the host's. process.h, io.h and the others of its headers include it. */
#ifndef INTERLOCK_WIN32_CRT_H
#define INTERLOCK_WIN32_CRT_H

#include <stdint.h>

#include <interlock/win32/base.h>

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

INTERLOCK_END

#endif
