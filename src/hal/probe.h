/*
 * probe.h: static probes that perf, bpftrace, SystemTap and gdb find in the library, with provider `interlock`. A probe
 * is one nop and a note beside the code; its arguments are the registers or memory that already hold the values. None
 * may be a single byte: gdb does not know all registers of that size.
 */
#ifndef INTERLOCK_HAL_PROBE_H
#define INTERLOCK_HAL_PROBE_H

#ifdef INTERLOCK_USDT
#include <sys/sdt.h>
#define HAL_PROBE2(Name, First, Second) DTRACE_PROBE2(interlock, Name, First, Second)
#define HAL_PROBE3(Name, First, Second, Third) DTRACE_PROBE3(interlock, Name, First, Second, Third)
#define HAL_PROBE4(Name, First, Second, Third, Fourth) DTRACE_PROBE4(interlock, Name, First, Second, Third, Fourth)
#else
#define HAL_PROBE2(Name, First, Second) ((VOID)0)
#define HAL_PROBE3(Name, First, Second, Third) ((VOID)0)
#define HAL_PROBE4(Name, First, Second, Third, Fourth) ((VOID)0)
#endif

#endif
