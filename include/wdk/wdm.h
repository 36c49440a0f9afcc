#ifndef INTERLOCK_WDK_WDM_H
#define INTERLOCK_WDK_WDM_H

#include <interlock/bugcodes.h>
#include <interlock/dbg.h>
#include <interlock/exception.h>
#include <interlock/io.h>
#include <interlock/nt.h>
#include <interlock/ps.h>
#include <interlock/rtldriver.h>
#include <interlock/threadpool.h>
#include <interlock/win32/language.h>
#include <interlock/win32/sal1.h>

#include <guiddef.h>

#endif
