/*
 * win32/manyobjects.h: a wait for more than 64 handles. Windows has no such function; WaitForMultipleObjects stays at 64.
 *
 * Any: consumes exactly one object, the one with the lowest index that is signaled. All: consumes all objects at one
 * instant, or none. Both are those of WaitForMultipleObjects, and so are timeouts, APCs and abandoned mutexes. Only the
 * index is apart from the result, because WAIT_ABANDONED_0, WAIT_IO_COMPLETION and WAIT_TIMEOUT are indices here:
 *
 *     DWORD Index;
 *     switch (WaitForManyObjects(1000, Handles, FALSE, INFINITE, FALSE, &Index)) {
 *     case WAIT_OBJECT_0:    ... Handles[Index] ...
 *     case WAIT_ABANDONED_0: ... Handles[Index] is a mutex whose owner has ended ...
 *     }
 *
 * NtWaitForManyObjects (nt.h) and KeWaitForManyObjects (ke.h) are the same wait below this one.
 */
#ifndef INTERLOCK_WIN32_MANYOBJECTS_H
#define INTERLOCK_WIN32_MANYOBJECTS_H

#include <interlock/win32/base.h>

INTERLOCK_BEGIN

/* The most objects of one wait. */
#define MAXIMUM_MANY_OBJECTS 65535

/* Blocks until any object (the lowest index wins) or all of up to 65,535 are signaled. Returns WAIT_OBJECT_0 or
   WAIT_ABANDONED_0, with the index of the object in *lpIndex (0 after a wait for all); or WAIT_TIMEOUT,
   WAIT_IO_COMPLETION, WAIT_FAILED. lpIndex may be NULL. No or too many handles, or a duplicate object in a wait for all,
   are ERROR_INVALID_PARAMETER; a wait for all of more than 64 objects that are shared between processes is
   ERROR_NOT_SUPPORTED. Only in Interlock. */
WINBASEAPI DWORD WINAPI WaitForManyObjects(DWORD nCount, const HANDLE *lpHandles, BOOL bWaitAll, DWORD dwMilliseconds,
                                           BOOL bAlertable, DWORD *lpIndex);

INTERLOCK_END

#endif
