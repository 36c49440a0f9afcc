/* walk.h: a walk along a path, through the directories of this process (namespace.c) and of a world (sharednames.c). */
#ifndef INTERLOCK_OB_WALK_H
#define INTERLOCK_OB_WALK_H

#include "share.h"

/* A component of a path, or the rest of one. */
typedef struct _OBP_TEXT {
    PCWCH Text;
    ULONG Length; /* in characters */
} OBP_TEXT;

/*
 * A walk of a path through the directories. Directory and Rest advance together; Buffer is the path as the last
 * symbolic link rewrote it.
 */
typedef struct _OBP_WALK {
    POBP_REQUEST Request;
    POBJECT_DIRECTORY Directory;
    OBP_TEXT Rest;                      /* relative to Directory, without the separator; empty: Directory itself */
    OBP_TEXT Component;                 /* the last one that was looked up */
    POBJECT_HEADER_NAME_INFO Found;     /* NULL: not found */
    PWCHAR Buffer;
    POBJECT_HEADER_NAME_INFO FreshName; /* for NewObject, with room for the last component */
    BOOLEAN CaseInsensitive;
    ULONG Links;
    PVOID Held;                         /* Directory, if it is a proxy that only the walk refers to */
    PVOID Candidate;                    /* for a proxy: sharednames.c */
    PWCHAR Target;                      /* room for the target of a link in the world, in characters: */
    ULONG TargetRoom;
} OBP_WALK, *POBP_WALK;

/* namespace.c */
/* Restarts the walk with the target of a link in place of the path to it. More: Rest comes after it. */
NTSTATUS ObpFollowLink(POBP_WALK Walk, OBP_TEXT Target, BOOLEAN More);
BOOLEAN ObpHasLocalName(POBP_WALK Walk);      /* Component, among the entries that Directory has in this process */
NTSTATUS ObpEnterLocalName(POBP_WALK Walk);   /* or STATUS_OBJECT_NAME_NOT_FOUND, if nothing will be created */

/* sharednames.c */
BOOLEAN ObpIsInWorld(POBJECT_DIRECTORY Directory);
/* Looks up Component in Directory, which is in a world. STATUS_REPARSE: the walk continues. */
NTSTATUS ObpWalkInWorld(POBP_WALK Walk, BOOLEAN More);
VOID ObpLeaveWorld(POBP_WALK Walk);           /* the walk is over */
/* FALSE: the object is not named in a world. */
BOOLEAN ObpSetPermanentInWorld(PVOID Object, BOOLEAN Permanent);
BOOLEAN ObpRemoveNameInWorld(PVOID Object);
BOOLEAN ObpQueryAttributesInWorld(PVOID Object, PULONG Attributes);
/* Of an object of a world that this process need not have a handle to. FALSE: it does not fit. */
BOOLEAN ObpQueryPathOfShared(PWO_VIEW View, WO_INDEX Index, PWCHAR Path, ULONG Capacity, PULONG Length);
BOOLEAN ObpQueryPathInWorld(PVOID Object, PWCHAR Path, ULONG Capacity, PULONG Length, BOOLEAN *Fits);
VOID ObpVisitEntriesInWorld(POBJECT_DIRECTORY Directory, ULONG Start, OBP_VISIT *Visit, PVOID Context);

#endif
