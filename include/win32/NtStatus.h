#ifndef INTERLOCK_WIN32_SPELLED_NtStatus_h
#define INTERLOCK_WIN32_SPELLED_NtStatus_h

#include <ntstatus.h>

#endif
