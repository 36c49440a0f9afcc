#ifndef INTERLOCK_WDK_NTDDK_H
#define INTERLOCK_WDK_NTDDK_H

#include <interlock/bugcodes.h>
#include <interlock/ex.h>
#include <interlock/exception.h>
#include <interlock/interlocked.h>
#include <interlock/io.h>
#include <interlock/ke.h>
#include <interlock/ntdef.h>
#include <interlock/ntstatus.h>
#include <interlock/ob.h>
#include <interlock/ps.h>
#include <interlock/rtl.h>

#endif
