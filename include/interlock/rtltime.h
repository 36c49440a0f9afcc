/* rtltime.h: times in 100 ns since 1601 as dates. Part of rtl.h, which includes it. */
#ifndef INTERLOCK_RTLTIME_H
#define INTERLOCK_RTLTIME_H

#include <interlock/ntdef.h>

INTERLOCK_BEGIN

typedef struct _TIME_FIELDS {
    CSHORT Year; /* 1601 to 30827 */
    CSHORT Month;
    CSHORT Day;
    CSHORT Hour;
    CSHORT Minute;
    CSHORT Second;
    CSHORT Milliseconds;
    CSHORT Weekday; /* 0: Sunday */
} TIME_FIELDS, *PTIME_FIELDS;

C_ASSERT(sizeof(TIME_FIELDS) == 16);

NTSYSAPI VOID RtlTimeToTimeFields(PLARGE_INTEGER Time, PTIME_FIELDS TimeFields);
NTSYSAPI BOOLEAN RtlTimeFieldsToTime(PTIME_FIELDS TimeFields, PLARGE_INTEGER Time); /* FALSE: no such date */

INTERLOCK_END

#endif
