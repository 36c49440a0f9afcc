/* driver.h: the interface of driver.c for its test. */
#ifndef TESTS_PROCESS_DRIVER_H
#define TESTS_PROCESS_DRIVER_H

#include <ntifs.h>

#include <interlock/nt.h>
#include <interlock/rtl.h>

#define DRIVER_TAG 0x74736574 /* test */

enum { DRIVER_DONE, DRIVER_NO_MEMORY, DRIVER_NOT_SIGNALED };

int driver_finish(PKEVENT event);
int driver_notify(HANDLE event, RTL_CRITICAL_SECTION *section);

#endif
