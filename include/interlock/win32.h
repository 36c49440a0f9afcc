/* win32.h: kernel32's functions. */
#ifndef INTERLOCK_WIN32_H
#define INTERLOCK_WIN32_H

#include <interlock/slist.h>
#include <interlock/win32/base.h>
#include <interlock/win32/completion.h>
#include <interlock/win32/error.h>
#include <interlock/win32/event.h>
#include <interlock/win32/handle.h>
#include <interlock/win32/lock.h>
#include <interlock/win32/memory.h>
#include <interlock/win32/module.h>
#include <interlock/win32/mutex.h>
#include <interlock/win32/process.h>
#include <interlock/win32/semaphore.h>
#include <interlock/win32/string.h>
#include <interlock/win32/system.h>
#include <interlock/win32/thread.h>
#include <interlock/win32/threadpool.h>
#include <interlock/win32/time.h>
#include <interlock/win32/timer.h>
#include <interlock/win32/tls.h>
#include <interlock/win32/vectored.h>
#include <interlock/win32/wait.h>
#include <interlock/win32/wide.h>

#endif
