#ifndef INTERLOCK_WDK_WDM_H
#define INTERLOCK_WDK_WDM_H

/* What sources for several environments test. */
#define _WDMDDK_
#define WDM_MAJORVERSION 0x06
#define WDM_MINORVERSION 0x00

#include <interlock/bugcodes.h>
#include <interlock/dbg.h>
#include <interlock/exception.h>
#include <interlock/guid.h>
#include <interlock/io.h>
#include <interlock/lookaside.h>
#include <interlock/minmax.h>
#include <interlock/nt.h>
#include <interlock/irp.h>
#include <interlock/ps.h>
#include <interlock/rtlbitmap.h>
#include <interlock/rtlinteger.h>
#include <interlock/rtlrandom.h>
#include <interlock/rtltable.h>
#include <interlock/rtlversion.h>
#include <interlock/threadpool.h>
#include <interlock/widenames.h>
#include <interlock/win32/keywords.h>
#include <interlock/win32/sal1.h>

#endif
