/* stopreport.h: the report of a bugcheck, read back from a log (src/ke/bugcheck.c writes it). */
#ifndef INTERLOCK_KD_STOPREPORT_H
#define INTERLOCK_KD_STOPREPORT_H

#include "kd.h"

#include "ke/bugcheck.h"

#define KD_LARGEST_REPORT ((size_t)64 << 20) /* of a log */
#define KD_MOST_REPORT_FRAMES 128

typedef struct kd_stop_report {
    uint32_t code;
    uint64_t parameter[KI_BUGCHECK_PARAMETERS];
    char sentence[512];                              /* or empty; all of this text is clean */
    char explanation[KI_BUGCHECK_PARAMETERS][800];   /* of each value, or empty */
    char thread[256];                                /* the line about the thread, or empty */
    uint32_t thread_id;                              /* 0: not known */
    char frames[KD_MOST_REPORT_FRAMES][300];
    size_t frame_count;
} kd_stop_report;

/* NULL, or why there is no report. Of several reports the first one counts: it is the cause. */
const char *kd_read_report(const char *text, size_t length, kd_stop_report *report);

#endif
