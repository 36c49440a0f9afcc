/*
 * scan.c: scanf_s and similar functions: input with Microsoft's conversions, where %s, %c and %[ take the size of their
 * buffer as a further argument. The format is split, and each conversion is passed to the host's scanf separately.
 * Strings are read into memory that the host allocates, and stored if they fit; if not, the buffer becomes empty and
 * the scan ends. An l is 32 bits, as for printf (widefmt.c).
 */
#include <stdio.h>
#include <stdlib.h>

#include <interlock/win32/base.h>
#include <interlock/win32/crt.h>

#include "../hal/hal.h"

#define BASE_LONGEST_DIRECTIVE 300 /* a %[ with a set of characters */
#define BASE_FORMAT_SIZE (BASE_LONGEST_DIRECTIVE + 32) /* with sign, width and size */

typedef struct _BASE_INPUT {
    PCSTR Text;   /* what is left of the string; or */
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
