/*
 * objectname.c: the names of Win32 objects as paths of the object manager. A name stands below \BaseNamedObjects, where
 * Local, Global and Session are links. Any other backslash is part of a path, whose directories must exist.
 */
#include <interlock/win32/wide.h>

#include "base.h"

#define BASE_DIRECTORY u"\\BaseNamedObjects\\"

/* The empty name is the directory itself. */
static NTSTATUS BaseFormatPath(PBASE_OBJECT_ATTRIBUTES Object, LPCWSTR Name)
{
    SIZE_T Directory = sizeof(BASE_DIRECTORY) - sizeof(WCHAR);
    SIZE_T Length = InterlockWcsnlen(Name, MAX_PATH + 1);
    if (Length > MAX_PATH) {
        return STATUS_NAME_TOO_LONG;
    }
    if (Name[0] == '\\') {
        return STATUS_OBJECT_PATH_SYNTAX_BAD;
    }
    if (Length == 0) {
        Directory -= sizeof(WCHAR);
    }
    memcpy(Object->Buffer, BASE_DIRECTORY, Directory);
    memcpy(Object->Buffer + Directory / sizeof(WCHAR), Name, (Length + 1) * sizeof(WCHAR));
    Object->Path.Buffer = Object->Buffer;
    Object->Path.Length = (USHORT)(Directory + Length * sizeof(WCHAR));
    Object->Path.MaximumLength = (USHORT)(Object->Path.Length + sizeof(WCHAR));
    return STATUS_SUCCESS;
}

NTSTATUS BaseFormatObjectAttributes(PBASE_OBJECT_ATTRIBUTES Object, LPSECURITY_ATTRIBUTES Security, LPCWSTR Name)
{
    ULONG Attributes = Security != NULL && Security->bInheritHandle ? OBJ_INHERIT : 0;
    PUNICODE_STRING Path = NULL;
    if (Name != NULL && Name[0] != 0) {
        NTSTATUS Status = BaseFormatPath(Object, Name);
        if (!NT_SUCCESS(Status)) {
            return Status;
        }
        Attributes |= OBJ_OPENIF;
        Path = &Object->Path;
    }
    InitializeObjectAttributes(&Object->Attributes, Path, Attributes, NULL,
                               Security != NULL ? Security->lpSecurityDescriptor : NULL);
    return STATUS_SUCCESS;
}

NTSTATUS BaseFormatOpenAttributes(PBASE_OBJECT_ATTRIBUTES Object, BOOL Inherit, LPCWSTR Name)
{
    NTSTATUS Status;
    if (Name == NULL) {
        return STATUS_INVALID_PARAMETER;
    }
    Status = BaseFormatPath(Object, Name);
    if (NT_SUCCESS(Status)) {
        InitializeObjectAttributes(&Object->Attributes, &Object->Path, Inherit ? OBJ_INHERIT : 0, NULL, NULL);
    }
    return Status;
}

NTSTATUS BaseWidenName(LPCSTR Name, BASE_WIDE_NAME Buffer, LPCWSTR *Wide)
{
    *Wide = NULL;
    if (Name == NULL) {
        return STATUS_SUCCESS;
    }
    if (BaseUtf8ToWide(Name, strlen(Name) + 1, Buffer, MAX_PATH + 1, NULL) > MAX_PATH + 1) {
        return STATUS_NAME_TOO_LONG;
    }
    *Wide = Buffer;
    return STATUS_SUCCESS;
}

HANDLE BaseCreatedHandle(NTSTATUS Status, HANDLE Handle)
{
    if (!NT_SUCCESS(Status)) {
        BaseSetLastNTError(Status);
        return NULL;
    }
    BaseSetLastError(Status == STATUS_OBJECT_NAME_EXISTS ? ERROR_ALREADY_EXISTS : ERROR_SUCCESS);
    return Handle;
}

HANDLE BaseOpenedHandle(NTSTATUS Status, HANDLE Handle)
{
    if (!NT_SUCCESS(Status)) {
        BaseSetLastNTError(Status);
        return NULL;
    }
    return Handle;
}
