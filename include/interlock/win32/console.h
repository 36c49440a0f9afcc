/* win32/console.h: keys of the terminal. conio.h includes it. */
#ifndef INTERLOCK_WIN32_CONSOLE_H
#define INTERLOCK_WIN32_CONSOLE_H

#include <interlock/win32/base.h>

INTERLOCK_BEGIN

/* Keys of the terminal. They are read from standard input, which need not be a terminal. */

/* Returns the next byte without waiting for a line, in the second form with its echo; -1 at the end of the input.
   Differs: keys without a character are escape sequences of the terminal. Since NT 3.1. */
WINBASEAPI int _getch(void);
WINBASEAPI int _getche(void);

/* Returns a nonzero number if _getch would not block. Since NT 3.1. */
WINBASEAPI int _kbhit(void);

/* Writes a character, or a string, to standard output at once. Returns the character or 0; -1 on failure. Since NT
   3.1. */
WINBASEAPI int _putch(int _Ch);
WINBASEAPI int _cputs(const char *_Str);

INTERLOCK_END

#endif
