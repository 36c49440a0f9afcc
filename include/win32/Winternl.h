#ifndef INTERLOCK_WIN32_SPELLED_Winternl_h
#define INTERLOCK_WIN32_SPELLED_Winternl_h

#include <winternl.h>

#endif
