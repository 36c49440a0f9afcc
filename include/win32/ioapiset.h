#ifndef INTERLOCK_WIN32_IOAPISET_H
#define INTERLOCK_WIN32_IOAPISET_H

#include <windows.h>

#endif
