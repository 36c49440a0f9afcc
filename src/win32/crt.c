/* crt.c: functions of Microsoft's C library that are not inline. These set errno, as theirs do. */
#include <stdio.h>
#include <stdlib.h>

#include <interlock/win32/extra.h>
#include <interlock/win32/crt.h>

#include "../hal/hal.h"
#include "../hal/machine.h"
#include "local.h"

#define BASE_EINVAL 22 /* on Windows and on every host, as */
#define BASE_ENOMEM 12

/* Invalid parameters. */

static volatile _invalid_parameter_handler BaseInvalidParameterHandler;

_invalid_parameter_handler _set_invalid_parameter_handler(_invalid_parameter_handler _Handler)
{
    /* acq_rel: a caller that reads the handler sees what it uses */
    return __atomic_exchange_n(&BaseInvalidParameterHandler, _Handler, __ATOMIC_ACQ_REL);
}

_invalid_parameter_handler _get_invalid_parameter_handler(void)
{
    return __atomic_load_n(&BaseInvalidParameterHandler, __ATOMIC_ACQUIRE);
}

_invalid_parameter_handler _set_thread_local_invalid_parameter_handler(_invalid_parameter_handler _Handler)
{
    PBASE_THREAD Own = BaseCurrentThread();
    _invalid_parameter_handler Before = (_invalid_parameter_handler)Own->InvalidParameterHandler;
    Own->InvalidParameterHandler = (PVOID)_Handler;
    return Before;
}

_invalid_parameter_handler _get_thread_local_invalid_parameter_handler(void)
{
    return (_invalid_parameter_handler)BaseCurrentThread()->InvalidParameterHandler;
}

void _invalid_parameter_noinfo(void)
{
    _invalid_parameter_handler Handler = _get_thread_local_invalid_parameter_handler();
    if (Handler == NULL) {
        Handler = _get_invalid_parameter_handler();
    }
    if (Handler == NULL) {
        RtlFailFast(FAST_FAIL_INVALID_ARG);
    }
    Handler(NULL, NULL, NULL, 0, 0);
}

static errno_t BaseInvalidParameter(VOID)
{
    HalSetError(HalErrorInvalid);
    _invalid_parameter_noinfo();
    return BASE_EINVAL;
}

/* Numbers, sorting and searching. */

errno_t rand_s(unsigned int *RandomValue)
{
    if (RandomValue == NULL) {
        return BaseInvalidParameter();
    }
    if (!HalQueryRandom(RandomValue, sizeof(*RandomValue))) {
        *RandomValue = 0;
        HalSetError(HalErrorMemory);
        return BASE_ENOMEM;
    }
    return 0;
}

typedef int BASE_COMPARE(void *Context, const void *First, const void *Second);

typedef struct _BASE_SORT {
    BASE_COMPARE *Compare;
    PVOID Context;
} BASE_SORT, *PBASE_SORT;

static int BaseCompareForSort(const void *First, const void *Second, void *Context)
{
    PBASE_SORT Sort = Context;
    return Sort->Compare(Sort->Context, First, Second);
}

void qsort_s(void *Base, size_t Count, size_t Width, int (*Compare)(void *, const void *, const void *), void *Context)
{
    BASE_SORT Sort = {Compare, Context};
    if ((Base == NULL && Count != 0) || Width == 0 || Compare == NULL) {
        BaseInvalidParameter();
        return;
    }
    if (Count > 1) {
        qsort_r(Base, Count, Width, BaseCompareForSort, &Sort);
    }
}

void *bsearch_s(const void *Key, const void *Base, size_t Count, size_t Width,
                int (*Compare)(void *, const void *, const void *), void *Context)
{
    if ((Base == NULL && Count != 0) || Width == 0 || Compare == NULL) {
        BaseInvalidParameter();
        return NULL;
    }
    for (size_t First = 0; Count != 0;) {
        size_t Middle = First + Count / 2;
        PVOID Entry = (PUCHAR)Base + Middle * Width;
        int Order = Compare(Context, Key, Entry);
        if (Order == 0) {
            return Entry;
        }
        First = Order > 0 ? Middle + 1 : First;
        Count = Order > 0 ? Count - Count / 2 - 1 : Count / 2;
    }
    return NULL;
}

/* The calendar. */

static errno_t BaseBreakDownTime(struct tm *Fields, const time_t *Time, BOOLEAN Local)
{
    if (Fields == NULL) {
        return BaseInvalidParameter();
    }
    memset(Fields, 0xFF, sizeof(*Fields)); /* every member is -1 */
    if (Time == NULL) {
        return BaseInvalidParameter();
    }
    if (*Time < 0 || !HalBreakDownTime(*Time, Local, Fields)) {
        HalSetError(HalErrorInvalid);
        return BASE_EINVAL;
    }
    return 0;
}

errno_t localtime_s(struct tm *_Tm, const time_t *_Time)
{
    return BaseBreakDownTime(_Tm, _Time, TRUE);
}

errno_t gmtime_s(struct tm *_Tm, const time_t *_Time)
{
    return BaseBreakDownTime(_Tm, _Time, FALSE);
}

errno_t _ftime_s(struct _timeb *_Time)
{
    TIME_ZONE_INFORMATION Zone;
    LARGE_INTEGER Now;
    DWORD Season;
    if (_Time == NULL) {
        return BaseInvalidParameter();
    }
    GetSystemTimeAsFileTime((LPFILETIME)&Now);
    Season = GetTimeZoneInformation(&Zone);
    Now.QuadPart = Now.QuadPart / 10000 - BASE_MILLISECONDS_TO_1970;
    _Time->time = Now.QuadPart / 1000;
    _Time->millitm = (unsigned short)(Now.QuadPart % 1000);
    _Time->timezone = (short)Zone.Bias;
    _Time->dstflag = Season == TIME_ZONE_ID_DAYLIGHT;
    return 0;
}

void _ftime(struct _timeb *_Time)
{
    _ftime_s(_Time);
}

/* Keys. */

int _getch(void)
{
    return HalReadKey(FALSE);
}

int _getche(void)
{
    return HalReadKey(TRUE);
}

int _kbhit(void)
{
    return HalIsKeyReady();
}

int _putch(int _Ch)
{
    return putchar(_Ch) == EOF || fflush(stdout) != 0 ? -1 : (UCHAR)_Ch;
}

int _cputs(const char *_Str)
{
    if (_Str == NULL) {
        BaseInvalidParameter();
        return -1;
    }
    return fputs(_Str, stdout) == EOF || fflush(stdout) != 0 ? -1 : 0;
}
