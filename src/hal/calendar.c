/* calendar.c: the host's time zone. */
#include "halp.h"

#include <stdio.h>
#include <time.h>

#define HALP_HOUR 3600
#define HALP_DAY (24 * HALP_HOUR)

BOOLEAN HalBreakDownTime(LONGLONG Seconds, BOOLEAN Local, struct tm *Fields)
{
    HALP_HOST_CALLS;
    time_t Time = (time_t)Seconds;

    tzset();
    return (Local ? localtime_r(&Time, Fields) : gmtime_r(&Time, Fields)) != NULL;
}

static BOOLEAN HalpDaylightAt(time_t Time, struct tm *Fields)
{
    return localtime_r(&Time, Fields) != NULL && Fields->tm_isdst > 0;
}

/* The first second at which the time of year changes between two times at which it differs. */
static time_t HalpFindChange(time_t Before, time_t After)
{
    struct tm Fields;
    BOOLEAN Daylight = HalpDaylightAt(Before, &Fields);

    while (After - Before > 1) {
        time_t Middle = Before + (After - Before) / 2;
        if (HalpDaylightAt(Middle, &Fields) == Daylight) {
            Before = Middle;
        } else {
            After = Middle;
        }
    }
    return After;
}

static VOID HalpDescribeSeason(PHAL_SEASON Season, const struct tm *Fields)
{
    Season->Offset = (LONG)Fields->tm_gmtoff;
    Season->Known = TRUE;
    snprintf(Season->Name, sizeof(Season->Name), "%s", Fields->tm_zone != NULL ? Fields->tm_zone : "");
}

/* A year of days: the two seasons, and the local time on the clock of the other one when each begins. */
VOID HalQueryTimeZone(LONGLONG Now, PHAL_TIME_ZONE Zone)
{
    HALP_HOST_CALLS;
    time_t Day, First;
    struct tm Fields;
    BOOLEAN Before;

    RtlZeroMemory(Zone, sizeof(*Zone));
    tzset();
    Zone->Daylight = HalpDaylightAt((time_t)Now, &Fields);
    HalpDescribeSeason(&Zone->Seasons[Zone->Daylight], &Fields);
    First = (time_t)Now - (time_t)Fields.tm_yday * HALP_DAY - Fields.tm_hour * HALP_HOUR;
    Before = HalpDaylightAt(First, &Fields);
    for (Day = First; Day < First + 366 * (time_t)HALP_DAY; Day += HALP_DAY) {
        BOOLEAN After = HalpDaylightAt(Day + HALP_DAY, &Fields);
        if (After != Before) {
            LONG Clock;
            time_t Change = HalpFindChange(Day, Day + HALP_DAY);
            HalpDaylightAt(Change - 1, &Fields);
            HalpDescribeSeason(&Zone->Seasons[Before], &Fields);
            Clock = Zone->Seasons[Before].Offset;
            HalpDaylightAt(Change, &Fields);
            HalpDescribeSeason(&Zone->Seasons[After], &Fields);
            Zone->Seasons[After].Begins = (LONGLONG)Change + Clock;
        }
        Before = After;
    }
}
