/* zone.c: the time zone of the host. */
#include "halp.h"

#include <time.h>

#define SECONDS_FROM_1601_TO_1970 11644473600LL

LONGLONG HalQueryZoneOffset(ULONGLONG SystemTime)
{
    HALP_HOST_CALLS;
    time_t Seconds = (time_t)((LONGLONG)(SystemTime / HALP_UNITS_PER_SECOND) - SECONDS_FROM_1601_TO_1970);
    struct tm Local;

    tzset();
    if (localtime_r(&Seconds, &Local) == NULL) {
        return 0;
    }
    return (LONGLONG)Local.tm_gmtoff * (LONGLONG)HALP_UNITS_PER_SECOND;
}
