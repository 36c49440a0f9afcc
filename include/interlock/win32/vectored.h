#ifndef INTERLOCK_OLD_WIN32_VECTORED_H
#define INTERLOCK_OLD_WIN32_VECTORED_H

#include <interlock/win32/base.h>

#endif
