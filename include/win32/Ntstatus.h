#ifndef INTERLOCK_WIN32_SPELLED_Ntstatus_h
#define INTERLOCK_WIN32_SPELLED_Ntstatus_h

#include <ntstatus.h>

#endif
