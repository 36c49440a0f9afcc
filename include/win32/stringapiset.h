#ifndef INTERLOCK_WIN32_STRINGAPISET_H
#define INTERLOCK_WIN32_STRINGAPISET_H

#include <windows.h>

#endif
