/* error.h: the last error of a thread, and texts for it. Part of win32.h. */
#ifndef INTERLOCK_WIN32_ERROR_H
#define INTERLOCK_WIN32_ERROR_H

#include <stdarg.h>

#include <interlock/win32/base.h>
#include <interlock/winerror.h>

#define FORMAT_MESSAGE_ALLOCATE_BUFFER 0x00000100
#define FORMAT_MESSAGE_IGNORE_INSERTS 0x00000200
#define FORMAT_MESSAGE_FROM_STRING 0x00000400
#define FORMAT_MESSAGE_FROM_HMODULE 0x00000800
#define FORMAT_MESSAGE_FROM_SYSTEM 0x00001000
#define FORMAT_MESSAGE_ARGUMENT_ARRAY 0x00002000
#define FORMAT_MESSAGE_MAX_WIDTH_MASK 0x000000FF
#define LANG_NEUTRAL 0x00
#define LANG_ENGLISH 0x09
#define SUBLANG_NEUTRAL 0x00
#define SUBLANG_DEFAULT 0x01
#define SUBLANG_ENGLISH_US 0x01
#define MAKELANGID(Primary, Sub) ((WORD)((WORD)(Sub) << 10 | (WORD)(Primary)))

INTERLOCK_BEGIN

WINBASEAPI DWORD WINAPI GetLastError(VOID);
WINBASEAPI VOID WINAPI SetLastError(DWORD dwErrCode);
WINBASEAPI VOID WINAPI SetLastErrorEx(DWORD dwErrCode, DWORD dwType);
WINBASEAPI VOID WINAPI RestoreLastError(DWORD dwErrCode);

/* Texts of system errors only, without inserts: FORMAT_MESSAGE_FROM_SYSTEM, with or without IGNORE_INSERTS and
   ALLOCATE_BUFFER (free with LocalFree). The text is the name of the error in words. */
WINBASEAPI DWORD WINAPI FormatMessageA(DWORD dwFlags, LPCVOID lpSource, DWORD dwMessageId, DWORD dwLanguageId,
                                       LPSTR lpBuffer, DWORD nSize, va_list *Arguments);
WINBASEAPI DWORD WINAPI FormatMessageW(DWORD dwFlags, LPCVOID lpSource, DWORD dwMessageId, DWORD dwLanguageId,
                                       LPWSTR lpBuffer, DWORD nSize, va_list *Arguments);
#define FormatMessage INTERLOCK_AW(FormatMessage)

INTERLOCK_END

#endif
