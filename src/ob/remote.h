/*
 * remote.h: handles of other processes. A process serves requests of others on its session thread (wo/wo.h): it exports an
 * object by handle, imports one, or closes a handle. An object that is exported becomes shared. A handle of a process is
 * passed by the id of that process.
 */
#ifndef INTERLOCK_OB_REMOTE_H
#define INTERLOCK_OB_REMOTE_H

#include "share.h"

/* An object between two handles. */
typedef struct _OBP_PARCEL {
    PVOID Object;                    /* a reference */
    ACCESS_MASK GrantedAccess;
    ULONG Attributes;                /* OBJ_INHERIT, OBJ_PROTECT_CLOSE, OBJ_KERNEL_HANDLE within the process */
    BOOLEAN Counted;                 /* the world has already counted a handle for it */
} OBP_PARCEL, *POBP_PARCEL;

/* The request to the source. */
typedef struct _OBP_PICKUP {
    HANDLE Handle;
    ACCESS_MASK DesiredAccess;
    ULONG Attributes;
    ULONG Options;                   /* DUPLICATE_ */
} OBP_PICKUP, *POBP_PICKUP;

NTSTATUS ObpTakeParcel(const OBP_PICKUP *Pickup, KPROCESSOR_MODE AccessMode, POBP_PARCEL Parcel); /* by a handle of this process */
NTSTATUS ObpDeliverParcel(POBP_PARCEL Parcel, PHANDLE Handle);                                    /* to this process */
VOID ObpDropParcel(POBP_PARCEL Parcel);

/* The same in another process. STATUS_NOT_SUPPORTED: it is not in the world, or the object cannot be shared;
   STATUS_PROCESS_IS_TERMINATING: it has ended. */
NTSTATUS ObpFetchParcel(ULONG ProcessId, const OBP_PICKUP *Pickup, POBP_PARCEL Parcel);
NTSTATUS ObpSendParcel(ULONG ProcessId, POBP_PARCEL Parcel, PHANDLE Handle);
NTSTATUS ObpCloseRemoteHandle(ULONG ProcessId, HANDLE Handle);

#endif
