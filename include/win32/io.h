/* io.h: Microsoft's names of the host's functions for descriptors. */
#ifndef INTERLOCK_WIN32_INCLUDE_IO_H
#define INTERLOCK_WIN32_INCLUDE_IO_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define _O_RDONLY O_RDONLY
#define _O_WRONLY O_WRONLY
#define _O_RDWR O_RDWR
#define _O_APPEND O_APPEND
#define _O_CREAT O_CREAT
#define _O_TRUNC O_TRUNC
#define _O_EXCL O_EXCL
#define _O_TEXT 0x4000
#define _O_BINARY 0x8000
#ifndef O_BINARY
#define O_BINARY 0 /* every file of the host is binary */
#define O_TEXT 0
#endif

#define _access access
#define _close close
#define _dup dup
#define _dup2 dup2
#define _fileno fileno
#define _isatty isatty
#define _lseek lseek
#define _open open
#define _read read
#define _unlink unlink
#define _write write

/* Files have no text mode: the old mode is always binary. */
static inline int _setmode(int Descriptor, int Mode)
{
    return (void)Mode, fcntl(Descriptor, F_GETFD) < 0 ? -1 : _O_BINARY;
}

#endif
