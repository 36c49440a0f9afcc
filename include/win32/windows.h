#ifndef INTERLOCK_WIN32_WINDOWS_H
#define INTERLOCK_WIN32_WINDOWS_H

#include <interlock/windef.h> /* first: it refuses other targets before the host's headers fail */

#include <interlock/win32.h>
#include <interlock/win32/language.h>

#include <corecrt.h>
#include <sdkddkver.h>
#include <winapifamily.h>

#endif
