#ifndef INTERLOCK_WIN32_SPELLED_WinSDKVer_h
#define INTERLOCK_WIN32_SPELLED_WinSDKVer_h

#include <winsdkver.h>

#endif
