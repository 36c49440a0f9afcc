/* win32.h: kernel32's functions. <windows.h> includes it. */
#ifndef INTERLOCK_WIN32_H
#define INTERLOCK_WIN32_H

#include <interlock/win32/base.h>
#include <interlock/win32/sync.h>
#include <interlock/win32/thread.h>

#endif
