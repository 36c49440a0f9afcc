/* withverifier.h: for programs whose cases need the verifier. They turn it on themselves, so they can be started by hand. */
#ifndef INTERLOCK_TESTS_WITHVERIFIER_H
#define INTERLOCK_TESTS_WITHVERIFIER_H

#include <interlock/verifier.h>

/* A setup of cmocka. */
static inline int enable_verifier(void **state)
{
    (void)state;
    return VfEnableVerifier(TRUE) == STATUS_SUCCESS ? 0 : -1;
}

#endif
