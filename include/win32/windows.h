#ifndef INTERLOCK_WIN32_WINDOWS_H
#define INTERLOCK_WIN32_WINDOWS_H

#include <interlock/ntdef.h> /* first: it refuses other targets before the host's headers fail */

#include <interlock/exception.h>
#include <interlock/interlocked.h>
#include <interlock/ntstatus.h>
#include <interlock/win32.h>
#include <interlock/win32/language.h>

#endif
