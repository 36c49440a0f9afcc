/* proxies.h: proxies of shared objects without handles, for tests of waits. */
#ifndef INTERLOCK_TESTS_WO_PROXIES_H
#define INTERLOCK_TESTS_WO_PROXIES_H

#include "processes.h"

#define wait_for wait_for_object
#include "../ke/waittest.h"

typedef struct proxy {
    union {
        KEVENT event;
        KSEMAPHORE semaphore;
        KMUTANT mutant;
        KTIMER timer;
    };
    KI_OUTSIDE outside;
} proxy;

static PWO_VIEW view;

static inline void make_proxy(proxy *p, WO_TYPE type, UCHAR kernel_type, LONG state, LONG limit)
{
    WO_NEW new = {.Type = type, .State = state, .Limit = limit};
    memset(p, 0, sizeof(*p));
    p->outside.View = view;
    assert_int_equal(WoCreateObject(view, &new, &p->outside.Index), STATUS_SUCCESS);
    KiMakeOutside(&p->event.Header, kernel_type, &p->outside);
}

/* A process that has the same proxies. It runs body and exits. */
static inline pid_t fork_process(void (*body)(void *argument), void *argument)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        alarm(60 * test_slowdown());
        body(argument);
        _exit(0);
    }
    return child;
}

#endif
