/*
 * crt.c: functions of Microsoft's C library that are not inline: formatted output and input, invalid parameters, sorting, dates.
 * These set errno, as theirs do.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <interlock/win32/crt.h>
#include <interlock/win32/extra.h>

#include "../ex/text.h"
#include "../hal/hal.h"
#include "base.h"

#define BASE_EINVAL 22 /* on Windows and on every host, as */
#define BASE_ENOMEM 12

/* Invalid parameters. */

static volatile _invalid_parameter_handler BaseInvalidParameterHandler;

_invalid_parameter_handler _set_invalid_parameter_handler(_invalid_parameter_handler _Handler)
{
    /* acq_rel: a thread that reads the handler also sees the data that it uses */
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

/*
 * Formatted output with Microsoft's conversions, by the formatter of ex/text.h: of 16-bit strings, and of 8-bit
 * strings for sources that `interlock cc` compiles.
 *
 * The 8-bit functions pass a format to the host's functions unless one of its conversions is Microsoft's own. They
 * write to a stream once per call, so the output of concurrent calls is not mixed.
 */

static BOOLEAN BaseWriteToStream(PVOID Context, PCCH Text, SIZE_T Length)
{
    return fwrite(Text, 1, Length, Context) == Length;
}

int InterlockVsnwprintf(WCHAR *Buffer, size_t Count, const WCHAR *Format, va_list Arguments)
{
    EXP_OUTPUT Output = {.Buffer = Buffer, .Room = Count, .Wide = TRUE};
    ExpFormatWide(&Output, EXP_FORMAT_STRICT, Format, Arguments);
    if (Count != 0) {
        Buffer[Output.Length < Count ? Output.Length : Count - 1] = 0;
    }
    return Output.Failed || Output.Length >= Count || Output.Length > INT_MAX ? -1 : (int)Output.Length;
}

int InterlockSnwprintf(WCHAR *Buffer, size_t Count, const WCHAR *Format, ...)
{
    va_list Arguments;
    int Length;
    va_start(Arguments, Format);
    Length = InterlockVsnwprintf(Buffer, Count, Format, Arguments);
    va_end(Arguments);
    return Length;
}

int InterlockVfwprintf(FILE *Stream, const WCHAR *Format, va_list Arguments)
{
    EXP_OUTPUT Output = {.Wide = TRUE, .Write = BaseWriteToStream, .Context = Stream};
    ExpFormatWide(&Output, EXP_FORMAT_STRICT, Format, Arguments);
    return Output.Failed || Output.Length > INT_MAX ? -1 : (int)Output.Length;
}

int InterlockFwprintf(FILE *Stream, const WCHAR *Format, ...)
{
    va_list Arguments;
    int Length;
    va_start(Arguments, Format);
    Length = InterlockVfwprintf(Stream, Format, Arguments);
    va_end(Arguments);
    return Length;
}

int InterlockWprintf(const WCHAR *Format, ...)
{
    va_list Arguments;
    int Length;
    va_start(Arguments, Format);
    Length = InterlockVfwprintf(stdout, Format, Arguments);
    va_end(Arguments);
    return Length;
}

int InterlockVwprintf(const WCHAR *Format, va_list Arguments)
{
    return InterlockVfwprintf(stdout, Format, Arguments);
}

/* 8-bit formats. */

#define BASE_FIRST_TRY 512

/* Does the host's printf print the same? */
static BOOLEAN BaseIsOfHost(PCSTR Format)
{
    while ((Format = strchr(Format, '%')) != NULL) {
        Format += 1 + strspn(Format + 1, "-+ #0123456789.*");
        size_t Size = strspn(Format, "hlwI");
        CHAR Type = Format[Size];
        if (Format[0] == 'I' || Format[0] == 'w' || Type == 'S' || Type == 'C' || Type == 'p') {
            return FALSE;
        }
        if (Size == 1 && Format[0] == 'h' && (Type == 's' || Type == 'c')) {
            return FALSE;
        }
        if (Size == 1 && Format[0] == 'l' && Type != 0 && strchr("diuoxXsc", Type) != NULL) {
            return FALSE;
        }
        Format += Type == '%' ? Size + 1 : Size;
    }
    return TRUE;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
/* The length of the whole text; -1: the format is wrong. Stores no terminator. */
static int BaseFormatBytes(CHAR *Buffer, size_t Room, PCSTR Format, va_list Arguments)
{
    EXP_OUTPUT Output = {.Buffer = Buffer, .Room = Room};
    va_list Copy;
    va_copy(Copy, Arguments);
    ExpFormatNarrow(&Output, EXP_FORMAT_STRICT, Format, Copy);
    va_end(Copy);
    if (Output.Failed || Output.Length > INT_MAX) {
        HalSetError(HalErrorInvalid);
        return -1;
    }
    return (int)Output.Length;
}

int InterlockVsnprintf(char *Buffer, size_t Count, const char *Format, va_list Arguments)
{
    if (BaseIsOfHost(Format)) {
        return vsnprintf(Buffer, Count, Format, Arguments);
    }
    int Length = BaseFormatBytes(Buffer, Count, Format, Arguments);
    if (Count != 0) {
        Buffer[Length < 0 ? 0 : (size_t)Length < Count ? (size_t)Length : Count - 1] = 0;
    }
    return Length;
}

int InterlockVfprintf(FILE *Stream, const char *Format, va_list Arguments)
{
    CHAR Small[BASE_FIRST_TRY];
    CHAR *Text = Small;
    if (BaseIsOfHost(Format)) {
        return vfprintf(Stream, Format, Arguments);
    }
    int Length = BaseFormatBytes(Small, sizeof(Small), Format, Arguments);
    if (Length > (int)sizeof(Small)) {
        Text = malloc((size_t)Length);
        if (Text == NULL) {
            return -1; /* malloc has set errno */
        }
        Length = BaseFormatBytes(Text, (size_t)Length, Format, Arguments);
    }
    if (Length > 0 && fwrite(Text, 1, (size_t)Length, Stream) != (size_t)Length) {
        Length = -1;
    }
    if (Text != Small) {
        free(Text);
    }
    return Length;
}
#pragma GCC diagnostic pop

int InterlockVsprintf(char *Buffer, const char *Format, va_list Arguments)
{
    return InterlockVsnprintf(Buffer, INT_MAX, Format, Arguments);
}

int InterlockVprintf(const char *Format, va_list Arguments)
{
    return InterlockVfprintf(stdout, Format, Arguments);
}

int _vsnprintf(char *Buffer, size_t Count, const char *Format, va_list Arguments)
{
    int Length = BaseFormatBytes(Buffer, Count, Format, Arguments);
    if (Length >= 0 && (size_t)Length < Count) {
        Buffer[Length] = 0;
    }
    return Buffer != NULL && Length >= 0 && (size_t)Length > Count ? -1 : Length;
}

/* Calls the function of the same name with a va_list. */
#define BASE_CALL_WITH_LIST(Call)                                                                                      \
    va_list Arguments;                                                                                                 \
    va_start(Arguments, Format);                                                                                       \
    int Length = Call;                                                                                                 \
    va_end(Arguments);                                                                                                 \
    return Length

int InterlockPrintf(const char *Format, ...)
{
    BASE_CALL_WITH_LIST(InterlockVfprintf(stdout, Format, Arguments));
}

int InterlockFprintf(FILE *Stream, const char *Format, ...)
{
    BASE_CALL_WITH_LIST(InterlockVfprintf(Stream, Format, Arguments));
}

int InterlockSprintf(char *Buffer, const char *Format, ...)
{
    BASE_CALL_WITH_LIST(InterlockVsprintf(Buffer, Format, Arguments));
}

int InterlockSnprintf(char *Buffer, size_t Count, const char *Format, ...)
{
    BASE_CALL_WITH_LIST(InterlockVsnprintf(Buffer, Count, Format, Arguments));
}

int _snprintf(char *Buffer, size_t Count, const char *Format, ...)
{
    BASE_CALL_WITH_LIST(_vsnprintf(Buffer, Count, Format, Arguments));
}

/*
 * Scanf_s and similar functions: input with Microsoft's conversions, where %s, %c and %[ take the size of their
 * buffer as a further argument. The format is split, and each conversion is passed to the host's scanf separately.
 * Strings are read into memory that the host allocates, and stored if they fit; if not, the buffer becomes empty and
 * the scan ends. An l is 32 bits, as for printf.
 */

#define BASE_LONGEST_DIRECTIVE 300 /* a %[ with a set of characters */
#define BASE_FORMAT_SIZE (BASE_LONGEST_DIRECTIVE + 32) /* with sign, width and size */

typedef struct _BASE_INPUT {
    PCSTR Text;   /* the rest of the string; or */
    FILE *Stream; /* the stream */
} BASE_INPUT, *PBASE_INPUT;

/* Wraps va_list, so that it can be passed by address. */
typedef struct _BASE_TARGETS {
    va_list List;
} BASE_TARGETS, *PBASE_TARGETS;

typedef struct _BASE_DIRECTIVE {
    BOOLEAN Discards; /* %*d */
    ULONG Width;      /* 0: none */
    CHAR Size[3];     /* of the host: "", "hh", "h", "ll", "L" */
    PCSTR Type;       /* the letter, or a set of characters in brackets, and */
    SIZE_T Length;    /* of that */
} BASE_DIRECTIVE, *PBASE_DIRECTIVE;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
/* One conversion or literal. Returns the result of the host's scanf. */
static int BaseScanOne(PBASE_INPUT Input, PCSTR Format, PVOID Target)
{
    CHAR Counted[BASE_FORMAT_SIZE + sizeof("%n")];
    int Used = -1;
    if (Input->Stream != NULL) {
        return fscanf(Input->Stream, Format, Target);
    }
    snprintf(Counted, sizeof(Counted), "%s%%n", Format);
    int Result = Target != NULL ? sscanf(Input->Text, Counted, Target, &Used) : sscanf(Input->Text, Counted, &Used);
    Input->Text += Used > 0 ? Used : 0;
    return Result >= 0 && Used < 0 && Target == NULL ? -2 : Result; /* -2: a literal that does not match */
}
#pragma GCC diagnostic pop

static PCSTR BaseReadScanSize(PCSTR Format, PBASE_DIRECTIVE Directive)
{
    static const struct {
        PCSTR Word;
        PCSTR Host;
    } Sizes[] = {{"hh", "hh"}, {"h", "h"}, {"ll", "ll"}, {"l", ""},  {"I64", "ll"}, {"I32", ""},
                 {"I", "ll"},  {"z", "ll"}, {"t", "ll"}, {"j", "ll"}, {"L", "L"},    {"w", "w"}};
    for (SIZE_T Index = 0; Index < RTL_NUMBER_OF(Sizes); Index++) {
        SIZE_T Length = strlen(Sizes[Index].Word);
        if (strncmp(Format, Sizes[Index].Word, Length) == 0) {
            strcpy(Directive->Size, Sizes[Index].Host);
            if (Sizes[Index].Word[0] == 'l' && Length == 1 && Format[1] != 0 && strchr("aAeEfFgG", Format[1]) != NULL) {
                strcpy(Directive->Size, "l"); /* a double */
            }
            return Format + Length;
        }
    }
    return Format;
}

/* Format points after the '%'. NULL: it is not a conversion. */
static PCSTR BaseReadDirective(PCSTR Format, PBASE_DIRECTIVE Directive)
{
    *Directive = (BASE_DIRECTIVE){.Length = 1};
    Directive->Discards = *Format == '*';
    Format += Directive->Discards;
    while (*Format >= '0' && *Format <= '9') {
        Directive->Width = Directive->Width < MAXUSHORT ? Directive->Width * 10 + (ULONG)(*Format - '0') : MAXUSHORT;
        Format++;
    }
    Format = BaseReadScanSize(Format, Directive);
    Directive->Type = Format;
    if (*Format == '[') { /* a bracket at the beginning of the set belongs to it */
        SIZE_T First = Format[1] == '^' ? 2 : 1;
        PCSTR End = strchr(Format + First + (Format[First] == ']'), ']');
        if (End == NULL) {
            return NULL;
        }
        Directive->Length = (SIZE_T)(End - Format) + 1;
    }
    if (*Format == 0 || strchr("diouxXpaAeEfFgGcs[n", *Format) == NULL || Directive->Size[0] == 'w' ||
        Directive->Length > BASE_LONGEST_DIRECTIVE) {
        return NULL;
    }
    return Format + Directive->Length;
}

static VOID BaseWriteDirective(const BASE_DIRECTIVE *Directive, PCSTR Allocate, PSTR Format, SIZE_T Size)
{
    CHAR Width[16] = "";
    if (Directive->Width != 0) {
        snprintf(Width, sizeof(Width), "%u", (UINT)Directive->Width);
    }
    snprintf(Format, Size, "%%%s%s%s%s%.*s", Directive->Discards ? "*" : "", Width, Allocate,
             *Allocate != 0 ? "" : Directive->Size, (int)Directive->Length, Directive->Type);
}

/* %c stores as many characters as its width says, and no terminator. */
static int BaseScanCharacters(PBASE_INPUT Input, const BASE_DIRECTIVE *Directive, PSTR Buffer, SIZE_T Room)
{
    CHAR Format[BASE_FORMAT_SIZE];
    if ((Directive->Width != 0 ? Directive->Width : 1) > Room) {
        if (Room != 0) {
            *Buffer = 0;
        }
        return 0;
    }
    BaseWriteDirective(Directive, "", Format, sizeof(Format));
    return BaseScanOne(Input, Format, Buffer);
}

static int BaseScanText(PBASE_INPUT Input, const BASE_DIRECTIVE *Directive, PBASE_TARGETS Targets)
{
    CHAR Format[BASE_FORMAT_SIZE];
    PSTR Buffer = va_arg(Targets->List, PSTR);
    SIZE_T Room = va_arg(Targets->List, UINT);
    PSTR Found = NULL;
    if (*Directive->Type == 'c') {
        return BaseScanCharacters(Input, Directive, Buffer, Room);
    }
    BaseWriteDirective(Directive, "m", Format, sizeof(Format));
    int Result = BaseScanOne(Input, Format, (PVOID)&Found);
    if (Result != 1) {
        return Result;
    }
    SIZE_T Size = strlen(Found) + 1;
    if (Size <= Room) {
        memcpy(Buffer, Found, Size);
    } else {
        Result = 0;
        if (Room != 0) {
            *Buffer = 0;
        }
    }
    free(Found);
    return Result;
}

/* 1: assigned. 0, -1, -2: the scan ends. 2: matched without an assignment. */
static int BaseScanDirective(PBASE_INPUT Input, const BASE_DIRECTIVE *Directive, PBASE_TARGETS Targets)
{
    CHAR Format[BASE_FORMAT_SIZE];
    if (!Directive->Discards && strchr("sc[", *Directive->Type) != NULL) {
        return BaseScanText(Input, Directive, Targets);
    }
    BaseWriteDirective(Directive, "", Format, sizeof(Format));
    if (Directive->Discards) {
        int Result = BaseScanOne(Input, Format, NULL);
        return Result == 0 ? 2 : Result;
    }
    return BaseScanOne(Input, Format, va_arg(Targets->List, PVOID));
}

/* The text before the next conversion: white space and other characters, which the input must contain. */
static int BaseScanLiteral(PBASE_INPUT Input, PCSTR *Format)
{
    CHAR Literal[BASE_LONGEST_DIRECTIVE];
    SIZE_T Length = 0;
    while (**Format != 0 && Length < sizeof(Literal) - 3 && (**Format != '%' || (*Format)[1] == '%')) {
        if (**Format == '%') {
            Literal[Length++] = *(*Format)++;
        }
        Literal[Length++] = *(*Format)++;
    }
    Literal[Length] = 0;
    return Length != 0 ? BaseScanOne(Input, Literal, NULL) : 0;
}

static int BaseScan(PBASE_INPUT Input, PCSTR Format, va_list List)
{
    BASE_TARGETS Targets;
    int Assigned = 0, Result = 0;
    if (Format == NULL || (Input->Stream == NULL && Input->Text == NULL)) {
        HalSetError(HalErrorInvalid);
        _invalid_parameter_noinfo();
        return EOF;
    }
    va_copy(Targets.List, List);
    while (*Format != 0) {
        BASE_DIRECTIVE Directive;
        Result = BaseScanLiteral(Input, &Format);
        if (Result < 0 || *Format == 0) {
            break;
        }
        if (*Format != '%') {
            continue;
        }
        Format = BaseReadDirective(Format + 1, &Directive);
        if (Format == NULL) {
            break;
        }
        Result = BaseScanDirective(Input, &Directive, &Targets);
        if (Result <= 0) {
            break;
        }
        Assigned += Result == 1;
        Result = 0;
    }
    va_end(Targets.List);
    return Result == EOF && Assigned == 0 ? EOF : Assigned;
}

int vsscanf_s(const char *Buffer, const char *Format, va_list Arguments)
{
    BASE_INPUT Input = {.Text = Buffer};
    return BaseScan(&Input, Format, Arguments);
}

int vfscanf_s(FILE *Stream, const char *Format, va_list Arguments)
{
    BASE_INPUT Input = {.Stream = Stream};
    return BaseScan(&Input, Format, Arguments);
}

int vscanf_s(const char *Format, va_list Arguments)
{
    return vfscanf_s(stdin, Format, Arguments);
}

int sscanf_s(const char *Buffer, const char *Format, ...)
{
    va_list Arguments;
    va_start(Arguments, Format);
    int Assigned = vsscanf_s(Buffer, Format, Arguments);
    va_end(Arguments);
    return Assigned;
}

int fscanf_s(FILE *Stream, const char *Format, ...)
{
    va_list Arguments;
    va_start(Arguments, Format);
    int Assigned = vfscanf_s(Stream, Format, Arguments);
    va_end(Arguments);
    return Assigned;
}

int scanf_s(const char *Format, ...)
{
    va_list Arguments;
    va_start(Arguments, Format);
    int Assigned = vfscanf_s(stdin, Format, Arguments);
    va_end(Arguments);
    return Assigned;
}
