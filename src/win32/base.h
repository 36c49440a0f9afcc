/* base.h: what the Win32 functions share: the last error, timeouts, the names of objects. */
#ifndef INTERLOCK_WIN32_BASE_PRIVATE_H
#define INTERLOCK_WIN32_BASE_PRIVATE_H

#include <interlock/nt.h>
#include <interlock/rtl.h>
#include <interlock/win32/base.h>

/* error.c */
VOID BaseSetLastError(ULONG Error);
ULONG BaseSetLastNTError(NTSTATUS Status); /* the error that it stands for */
BOOL BaseBoolStatus(NTSTATUS Status);      /* TRUE; or FALSE, with the last error set */

/* time.c. NULL: for ever. */
PLARGE_INTEGER BaseFormatTimeOut(PLARGE_INTEGER Timeout, ULONG Milliseconds);

/* codepage.c: how much Target would need; it is filled as far as Room goes. Invalid, if not NULL, tells whether
   something became U+FFFD; it is never set back. */
SIZE_T BaseUtf8ToWide(LPCSTR Source, SIZE_T Length, PWSTR Target, SIZE_T Room, PBOOLEAN Invalid);
SIZE_T BaseWideToUtf8(LPCWSTR Source, SIZE_T Length, PSTR Target, SIZE_T Room, PBOOLEAN Invalid);

/* objectname.c */

/* The longest path that a Win32 name becomes, with its null character. */
#define BASE_OBJECT_PATH (sizeof("\\BaseNamedObjects\\") + MAX_PATH)

typedef struct _BASE_OBJECT_ATTRIBUTES {
    OBJECT_ATTRIBUTES Attributes; /* what the Nt service is given */
    UNICODE_STRING Path;
    WCHAR Buffer[BASE_OBJECT_PATH];
} BASE_OBJECT_ATTRIBUTES, *PBASE_OBJECT_ATTRIBUTES;

/* Name may be NULL or empty: no name. */
NTSTATUS BaseFormatObjectAttributes(PBASE_OBJECT_ATTRIBUTES Object, LPSECURITY_ATTRIBUTES Security, LPCWSTR Name);

/* For an A form: the name in UTF-16, in Buffer; NULL stays NULL. */
typedef WCHAR BASE_WIDE_NAME[MAX_PATH + 1];
NTSTATUS BaseWidenName(LPCSTR Name, BASE_WIDE_NAME Buffer, LPCWSTR *Wide);

/* What a Create function returns for the status of its service, with the last error set. */
HANDLE BaseCreatedHandle(NTSTATUS Status, HANDLE Handle);
/* An Open function: its attributes, and what it returns. */
NTSTATUS BaseFormatOpenAttributes(PBASE_OBJECT_ATTRIBUTES Object, BOOL Inherit, LPCWSTR Name);
HANDLE BaseOpenedHandle(NTSTATUS Status, HANDLE Handle);

#endif
