#ifndef INTERLOCK_WIN32_WINDOWS_H
#define INTERLOCK_WIN32_WINDOWS_H

#include <interlock/exception.h>
#include <interlock/interlocked.h>
#include <interlock/ntdef.h>
#include <interlock/ntstatus.h>
#include <interlock/win32.h>
#include <interlock/win32/language.h>

#endif
