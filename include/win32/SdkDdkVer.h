#ifndef INTERLOCK_WIN32_SPELLED_SdkDdkVer_h
#define INTERLOCK_WIN32_SPELLED_SdkDdkVer_h

#include <sdkddkver.h>

#endif
