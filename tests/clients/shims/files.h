/*
 * Files and consoles are out of scope. The tests of the clients need none of these, but their sources mention them: here no
 * file opens by a wide name, and nothing is a console. Included before every source.
 */
#ifndef CLIENTS_FILES_H
#define CLIENTS_FILES_H

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <windows.h>
#include <io.h>

#ifndef _O_BINARY
#define _O_BINARY 0
#endif
#ifndef _fileno
#define _fileno fileno
#endif
#ifndef _isatty
#define _isatty isatty
#endif
#define _setmode(descriptor, mode) ((void)(descriptor), (void)(mode), 0)
#define _get_osfhandle(descriptor) ((intptr_t)(descriptor))
#define _stati64 stat
#define _fstati64 fstat
#define _wstati64(path, status) ((void)(path), (void)(status), -1)
#define _wfopen(path, mode) ((void)(path), (void)(mode), (FILE *)NULL)
#define _wunlink(path) ((void)(path), -1)
#define _wrename(from, to) ((void)(from), (void)(to), -1)
#define WaitNamedPipeW(path, time) ((void)(path), (void)(time), FALSE)

#define GetConsoleMode(handle, mode) ((void)(handle), (void)(mode), FALSE)
#ifndef STD_OUTPUT_HANDLE
#define STD_OUTPUT_HANDLE ((DWORD)-11)
#define STD_ERROR_HANDLE ((DWORD)-12)
#define GetStdHandle(which) ((void)(which), INVALID_HANDLE_VALUE)
#define WriteConsoleW(handle, text, length, written, reserved) ((void)(written), FALSE)
#endif

#endif
