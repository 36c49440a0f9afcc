#ifndef INTERLOCK_WDK_WDM_H
#define INTERLOCK_WDK_WDM_H

#include <interlock/bugcodes.h>
#include <interlock/exception.h>
#include <interlock/io.h>
#include <interlock/irp.h>
#include <interlock/ps.h>
#include <interlock/threadpool.h>

#endif
