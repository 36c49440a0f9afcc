#ifndef INTERLOCK_WIN32_NTSTATUS_H
#define INTERLOCK_WIN32_NTSTATUS_H

#include <interlock/ntstatus.h>

#endif
