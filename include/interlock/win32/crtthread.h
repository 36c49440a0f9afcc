/* crtthread.h: the thread functions of the C runtime, which <process.h> declares. */
#ifndef INTERLOCK_WIN32_CRTTHREAD_H
#define INTERLOCK_WIN32_CRTTHREAD_H

#include <interlock/win32/base.h>

#include <stdint.h>

INTERLOCK_BEGIN

typedef void (*_beginthread_proc_type)(void *);
typedef unsigned (*_beginthreadex_proc_type)(void *);

WINBASEAPI uintptr_t _beginthread(_beginthread_proc_type _StartAddress, unsigned _StackSize, void *_ArgList);
WINBASEAPI DECLSPEC_NORETURN void _endthread(void);
WINBASEAPI uintptr_t _beginthreadex(void *_Security, unsigned _StackSize, _beginthreadex_proc_type _StartAddress,
                                    void *_ArgList, unsigned _InitFlag, unsigned *_ThrdAddr);
WINBASEAPI DECLSPEC_NORETURN void _endthreadex(unsigned _Retval);

INTERLOCK_END

#endif
