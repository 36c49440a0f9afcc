/*
 * descriptor.h: the bridge between objects and file descriptors of Linux. Part of io.h, which includes it; programs that
 * include windows.h include this file beside it. None of it exists on Windows.
 *
 * A descriptor as an object: a handle to wait on, alone or among others, that is signaled while the descriptor is ready
 * for one of the given events. The object keeps a duplicate of the descriptor; the original may be closed. Like poll(2),
 * a wait that it satisfies takes nothing away.
 *
 * An object as a descriptor: a descriptor for poll, epoll, io_uring or the loop of a library, readable once the object
 * has satisfied a wait. That wait is done by Interlock and consumes what a wait consumes: an auto-reset event is reset,
 * a semaphore is one lower. IoAcceptExport takes it over and begins the next wait; nothing is to be read from or
 * written to the descriptor itself. Closing the export closes the descriptor and gives back what was not accepted.
 * Mutexes cannot be exported, since only a thread can own one.
 */
#ifndef INTERLOCK_DESCRIPTOR_H
#define INTERLOCK_DESCRIPTOR_H

#include <interlock/ob.h>

INTERLOCK_BEGIN

/* Events; errors and hang-ups always count. */
#define IO_DESCRIPTOR_READABLE 0x001
#define IO_DESCRIPTOR_URGENT 0x002
#define IO_DESCRIPTOR_WRITABLE 0x004
#define IO_DESCRIPTOR_FAILED 0x008
#define IO_DESCRIPTOR_CLOSED 0x010

#define IO_DESCRIPTOR_QUERY_STATE 0x0001
#define IO_DESCRIPTOR_ALL_ACCESS (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | IO_DESCRIPTOR_QUERY_STATE)
#define IO_EXPORT_ACCEPT 0x0001
#define IO_EXPORT_ALL_ACCESS (STANDARD_RIGHTS_REQUIRED | IO_EXPORT_ACCEPT)

NTKERNELAPI NTSTATUS IoCreateDescriptorObject(PHANDLE Handle, ACCESS_MASK DesiredAccess,
                                              POBJECT_ATTRIBUTES ObjectAttributes, int Descriptor, ULONG Events);
/* Which of its events the descriptor is ready for now, and the object's own descriptor; either pointer may be NULL. */
NTKERNELAPI NTSTATUS IoQueryDescriptorObject(HANDLE Handle, PULONG ReadyEvents, int *Descriptor);

NTKERNELAPI NTSTATUS IoExportObject(HANDLE Object, PHANDLE Export, int *Descriptor);
NTKERNELAPI NTSTATUS IoAcceptExport(HANDLE Export); /* STATUS_TIMEOUT: the object has not satisfied the wait yet */

INTERLOCK_END

#endif
