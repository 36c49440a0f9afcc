#ifndef INTERLOCK_WIN32_WINTERNL_H
#define INTERLOCK_WIN32_WINTERNL_H

#include <windows.h>
#include <interlock/nt.h>
#include <interlock/rtl.h>

#endif
