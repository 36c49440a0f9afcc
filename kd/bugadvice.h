/* bugadvice.h: which rule a bugcheck stands for, and where to look. */
#ifndef INTERLOCK_KD_BUGADVICE_H
#define INTERLOCK_KD_BUGADVICE_H

#include <stdint.h>

typedef struct kd_advice {
    const char *rule;
    const char *look;
} kd_advice;

kd_advice kd_bug_advice(uint32_t code, uint64_t kind); /* kind: the first parameter */

#endif
