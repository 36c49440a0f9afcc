#ifndef INTERLOCK_WDK_WDM_H
#define INTERLOCK_WDK_WDM_H

/* What sources for several environments test. */
#define _WDMDDK_
#define WDM_MAJORVERSION 0x06
#define WDM_MINORVERSION 0x00

#include <interlock/bugcodes.h>
#include <interlock/dbg.h>
#include <interlock/exception.h>
#include <interlock/io.h>
#include <interlock/nt.h>
#include <interlock/ps.h>
#include <interlock/rtl.h>
#include <interlock/win32/language.h>

#define INTERLOCK_OLD_ANNOTATIONS
#include <interlock/annotations.h>

#include <guiddef.h>

#endif
