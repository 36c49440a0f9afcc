#ifndef INTERLOCK_WIN32_WINDOWS_H
#define INTERLOCK_WIN32_WINDOWS_H

#include <interlock/interlocked.h>
#include <interlock/ntdef.h>
#include <interlock/ntstatus.h>

#endif
