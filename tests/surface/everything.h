/* The whole surface. */
#ifndef INTERLOCK_TESTS_SURFACE_EVERYTHING_H
#define INTERLOCK_TESTS_SURFACE_EVERYTHING_H

#include <interlock/bugcodes.h>
#include <interlock/dbg.h>
#include <interlock/ex.h>
#include <interlock/exception.h>
#include <interlock/interlocked.h>
#include <interlock/io.h>
#include <interlock/ke.h>
#include <interlock/nt.h>
#include <interlock/ntdef.h>
#include <interlock/ntstatus.h>
#include <interlock/ob.h>
#include <interlock/ps.h>
#include <interlock/rtl.h>
#include <interlock/verifier.h>
#include <interlock/win32.h>
#include <interlock/win32/crt.h>
#include <interlock/win32/extra.h>
#include <interlock/win32/language.h>
#include <interlock/winerror.h>

#endif
