/* commandline.h: from what CreateProcess is given to what the host starts. Everything is UTF-8. */
#ifndef INTERLOCK_WIN32_COMMANDLINE_H
#define INTERLOCK_WIN32_COMMANDLINE_H

#include "base.h"

/* An array of strings in one piece of memory, ended by NULL; NULL when there is no memory. Freed by HalFree. */
PSTR *BaseSplitCommandLine(PCSTR CommandLine);
PSTR *BaseSplitEnvironment(PCSTR Block);

#endif
