/* win32.h: kernel32's functions, and those of the C library that Windows programs use. */
#ifndef INTERLOCK_WIN32_H
#define INTERLOCK_WIN32_H

#include <interlock/win32/base.h>
#include <interlock/win32/crt.h>
#include <interlock/win32/sync.h>
#include <interlock/win32/thread.h>
#include <interlock/win32/wct.h>

#endif
