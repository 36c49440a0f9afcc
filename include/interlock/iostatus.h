/* iostatus.h: how a request ended. */
#ifndef INTERLOCK_IOSTATUS_H
#define INTERLOCK_IOSTATUS_H

#include <interlock/ntdef.h>

INTERLOCK_BEGIN

typedef struct _IO_STATUS_BLOCK {
    __extension__ union {
        NTSTATUS Status;
        PVOID Pointer;
    };
    ULONG_PTR Information;
} IO_STATUS_BLOCK, *PIO_STATUS_BLOCK;

C_ASSERT(sizeof(IO_STATUS_BLOCK) == 16);

INTERLOCK_END

#endif
