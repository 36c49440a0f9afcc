#ifndef INTERLOCK_WIN32_WINERROR_H
#define INTERLOCK_WIN32_WINERROR_H

#include <interlock/winerror.h>

#endif
