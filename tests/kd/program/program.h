/* program.h: what the scenes share. */
#ifndef INTERLOCK_TESTS_KD_PROGRAM_H
#define INTERLOCK_TESTS_KD_PROGRAM_H

#include <ntddk.h>
#include <windows.h>

#include <interlock/ex.h>
#include <interlock/nt.h>
#include <interlock/rtl.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOAD(variable)         __atomic_load_n(&(variable), __ATOMIC_ACQUIRE)
#define STORE(variable, value) __atomic_store_n(&(variable), value, __ATOMIC_RELEASE)

extern HANDLE go[2];   /* each of two threads has what it takes first */
extern HANDLE started; /* set by a line "start" */
extern DWORD id_of_last_thread;
extern int threads_made;

void prepare(void);  /* before anything else */
void say(const char *name, const volatile void *address);
HANDLE make(LPTHREAD_START_ROUTINE routine, const char *name);
void meet(int self); /* both have their first one before either acquires its second */
void obey(void);     /* commands on standard input */
void never_runs(PKDPC dpc, void *context, void *argument1, void *argument2);

/* The scenes. */
void crossed_resources(void);
void srw_against_section(void);
void contended_srw(void);
void wait_all(void);
void wait_any(void);
void sleeping_owner(void);
void orphan(void);
void orphan_behind(void);
void join_deadlock(void);
void kernel_locks(void);
void blocking_dpc(void);
void queued_locks(void);
void zoo(void);
void shared_bucket(void);
void busy(void);
void nameless(void);
void healthy(void);
void busy_deadlock(void);
void handed_over(void);
void rtl_resource_against_section(void);
void service(void);
void crowd(void);
void fleet(void);
void turns(void);
void forked(void);
void crossed_fast_resources(void);
void condition_cycle(void);
void condition_chain(void);
void without_main(void);
void shared_lock(void);
void shared_choice(void);
void shared_mixed(void);
void pool_memory(void);
void many_objects(void);
void innocent(void);
void shared_busy(void);

#endif
