/* calls.h: system calls that do not come through a function of lab/posix. */
#ifndef LAB_CALLS_H
#define LAB_CALLS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

struct iovec;

/* The signal stack of this process. */
void lab_calls_start(void *stack, size_t size);
/* While a schedule runs. */
void lab_calls_watch(bool watches);
/* sigaction for a handler that runs in a schedule. */
void lab_calls_handle(int number, void (*handler)(int, siginfo_t *, void *), int flags);
/* TRUE: it cannot block, and the kernel may write what it returns. */
bool lab_calls_may_make(long number, const long arguments[6]);
long lab_calls_make(long number, const long arguments[6]);
const char *lab_calls_name(long number);
bool lab_calls_never_block(int descriptor);
void lab_calls_touch(const void *buffer, size_t size);
void lab_calls_touch_parts(const struct iovec *parts, long count);

#endif
