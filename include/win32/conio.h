#ifndef INTERLOCK_WIN32_INCLUDE_CONIO_H
#define INTERLOCK_WIN32_INCLUDE_CONIO_H

#include <stdio.h>

#include <interlock/win32/extra.h>

#define _cprintf printf
#define getch _getch
#define getche _getche
#define kbhit _kbhit
#define putch _putch
#define cputs _cputs

#endif
