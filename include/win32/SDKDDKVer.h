#ifndef INTERLOCK_WIN32_SPELLED_SDKDDKVer_h
#define INTERLOCK_WIN32_SPELLED_SDKDDKVer_h

#include <sdkddkver.h>

#endif
