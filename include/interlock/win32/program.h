/*
 * win32/program.h: what kernel32 knows of the program: its environment, its file, its console and standard handles, the
 * stack. Part of win32.h.
 */
#ifndef INTERLOCK_WIN32_PROGRAM_H
#define INTERLOCK_WIN32_PROGRAM_H

#include <interlock/win32/base.h>

INTERLOCK_BEGIN

/* Environment. It is the host's: getenv sees what SetEnvironmentVariable sets. */

/* Sets a variable, or removes it if the value is NULL. Fails with ERROR_INVALID_PARAMETER for a name that is empty or has
   an equals sign, with ERROR_ENVVAR_NOT_FOUND if there is nothing to remove. Differs: names are case sensitive. Since
   NT 3.1. */
WINBASEAPI BOOL WINAPI SetEnvironmentVariableA(LPCSTR lpName, LPCSTR lpValue);
WINBASEAPI BOOL WINAPI SetEnvironmentVariableW(LPCWSTR lpName, LPCWSTR lpValue);
#define SetEnvironmentVariable INTERLOCK_AW(SetEnvironmentVariable)

/* Returns a copy of all variables, each terminated, with an empty one at the end; NULL on failure. Since NT 3.1. */
WINBASEAPI LPCH WINAPI GetEnvironmentStringsA(VOID);
WINBASEAPI LPWCH WINAPI GetEnvironmentStringsW(VOID);
#define GetEnvironmentStrings INTERLOCK_AW(GetEnvironmentStrings)

/* Frees such a copy. Since NT 3.1. */
WINBASEAPI BOOL WINAPI FreeEnvironmentStringsA(LPCH penv);
WINBASEAPI BOOL WINAPI FreeEnvironmentStringsW(LPWCH penv);
#define FreeEnvironmentStrings INTERLOCK_AW(FreeEnvironmentStrings)

/* The file. */

/* Stores the path of a module's file and returns its length. If that does not fit it is truncated and terminated, the
   result is the size and the last error ERROR_INSUFFICIENT_BUFFER. Differs: a path of the host; the modules of Windows are
   the file of this library. Since NT 3.1. */
WINBASEAPI DWORD WINAPI GetModuleFileNameA(HMODULE hModule, LPSTR lpFilename, DWORD nSize);
WINBASEAPI DWORD WINAPI GetModuleFileNameW(HMODULE hModule, LPWSTR lpFilename, DWORD nSize);
#define GetModuleFileName INTERLOCK_AW(GetModuleFileName)

/* The stack. */

/* Stores the return addresses of the callers and a hash of them. Returns how many there are. Since XP. */
NTSYSAPI USHORT NTAPI RtlCaptureStackBackTrace(ULONG FramesToSkip, ULONG FramesToCapture, PVOID *BackTrace,
                                               PULONG BackTraceHash);
#define CaptureStackBackTrace RtlCaptureStackBackTrace

/* Error modes. */

/* Returns the thread's error mode. Since 7. */
WINBASEAPI DWORD WINAPI GetThreadErrorMode(VOID);

/* Sets the thread's error mode and stores the old one. Fails with ERROR_INVALID_PARAMETER for unknown bits. Differs:
   stored, without effect. Since 7. */
WINBASEAPI BOOL WINAPI SetThreadErrorMode(DWORD dwNewMode, LPDWORD lpOldMode);

/*
 * Standard handles and console. A standard handle is a descriptor object (io.h): it can be waited on, and passed to
 * CreateProcess. ReadFile and WriteFile take every descriptor object.
 */

#define STD_INPUT_HANDLE ((DWORD)-10)
#define STD_OUTPUT_HANDLE ((DWORD)-11)
#define STD_ERROR_HANDLE ((DWORD)-12)

#define FILE_TYPE_UNKNOWN 0x0000
#define FILE_TYPE_DISK 0x0001
#define FILE_TYPE_CHAR 0x0002
#define FILE_TYPE_PIPE 0x0003

#define CTRL_C_EVENT 0
#define CTRL_BREAK_EVENT 1
#define CTRL_CLOSE_EVENT 2
#define CTRL_LOGOFF_EVENT 5
#define CTRL_SHUTDOWN_EVENT 6

#define ENABLE_PROCESSED_INPUT 0x0001
#define ENABLE_LINE_INPUT 0x0002
#define ENABLE_ECHO_INPUT 0x0004
#define ENABLE_PROCESSED_OUTPUT 0x0001
#define ENABLE_WRAP_AT_EOL_OUTPUT 0x0002
#define ENABLE_VIRTUAL_TERMINAL_PROCESSING 0x0004

typedef BOOL(WINAPI *PHANDLER_ROUTINE)(DWORD CtrlType);

/* Returns a standard handle; NULL if its descriptor is closed, INVALID_HANDLE_VALUE if there is no such handle. Since
   NT 3.1. */
WINBASEAPI HANDLE WINAPI GetStdHandle(DWORD nStdHandle);

/* Sets a standard handle. Differs: the host's descriptors 0 to 2 stay what they are. Since NT 3.1. */
WINBASEAPI BOOL WINAPI SetStdHandle(DWORD nStdHandle, HANDLE hHandle);

/* Returns whether a handle is a file, a console or a pipe; FILE_TYPE_UNKNOWN on failure. Differs: of descriptor objects.
   Since NT 3.1. */
WINBASEAPI DWORD WINAPI GetFileType(HANDLE hFile);

/* Reads at least one byte and at most as many as asked; 0 at the end of a file. Fails with ERROR_BROKEN_PIPE at the end of
   a pipe. Differs: descriptor objects; overlapped is ERROR_NOT_SUPPORTED. Since NT 3.1. */
WINBASEAPI BOOL WINAPI ReadFile(HANDLE hFile, LPVOID lpBuffer, DWORD nNumberOfBytesToRead, LPDWORD lpNumberOfBytesRead,
                                LPOVERLAPPED lpOverlapped);

/* Writes all bytes. Fails with ERROR_NO_DATA if there is no reader; there is no SIGPIPE. Differs: as ReadFile. Since NT
   3.1. */
WINBASEAPI BOOL WINAPI WriteFile(HANDLE hFile, LPCVOID lpBuffer, DWORD nNumberOfBytesToWrite,
                                 LPDWORD lpNumberOfBytesWritten, LPOVERLAPPED lpOverlapped);

/* Writes text to a terminal, as UTF-8. Fails with ERROR_INVALID_HANDLE for anything else. Since NT 3.1. */
WINBASEAPI BOOL WINAPI WriteConsoleA(HANDLE hConsoleOutput, const VOID *lpBuffer, DWORD nNumberOfCharsToWrite,
                                     LPDWORD lpNumberOfCharsWritten, LPVOID lpReserved);
WINBASEAPI BOOL WINAPI WriteConsoleW(HANDLE hConsoleOutput, const VOID *lpBuffer, DWORD nNumberOfCharsToWrite,
                                     LPDWORD lpNumberOfCharsWritten, LPVOID lpReserved);
#define WriteConsole INTERLOCK_AW(WriteConsole)

/* Stores the mode of a terminal. Fails with ERROR_INVALID_HANDLE for anything else. Differs: always the default. Since
   NT 3.1. */
WINBASEAPI BOOL WINAPI GetConsoleMode(HANDLE hConsoleHandle, LPDWORD lpMode);

/* Sets the mode of a terminal. Differs: checked, without effect. Since NT 3.1. */
WINBASEAPI BOOL WINAPI SetConsoleMode(HANDLE hConsoleHandle, DWORD dwMode);

/* Adds a handler for console events, or removes it; NULL makes the process ignore CTRL_C_EVENT, or not. Each event calls
   the handlers on a thread of its own, the last one first, until one returns TRUE. If none does, the signal takes its
   default action. Fails with ERROR_INVALID_PARAMETER if there is no such handler. Differs: SIGINT is CTRL_C_EVENT, SIGQUIT
   CTRL_BREAK_EVENT, SIGHUP CTRL_CLOSE_EVENT, SIGTERM CTRL_SHUTDOWN_EVENT; the last two end the process even if a handler
   returns TRUE, without a time limit. Since NT 3.1. */
WINBASEAPI BOOL WINAPI SetConsoleCtrlHandler(PHANDLER_ROUTINE HandlerRoutine, BOOL Add);

/* Sends CTRL_C_EVENT or CTRL_BREAK_EVENT to a process group, 0: that of the caller. Differs: SIGINT and SIGQUIT to a group
   of the host. Since NT 3.1. */
WINBASEAPI BOOL WINAPI GenerateConsoleCtrlEvent(DWORD dwCtrlEvent, DWORD dwProcessGroupId);

INTERLOCK_END

#endif
