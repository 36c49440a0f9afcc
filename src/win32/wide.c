/* wide.c: the C library's functions for wide strings, for strings of 16-bit units. */
#include <stdlib.h>

#include <interlock/win32/wide.h>

#include "base.h"

#include "../hal/hal.h"

/* The longest number that is looked at: 64 binary digits, sign, prefix and room for zeroes in front. */
#define LONGEST_NUMBER 256

size_t InterlockWcsnlen(const WCHAR *String, size_t Limit)
{
    size_t Length = 0;
    while (Length < Limit && String[Length] != 0) {
        Length++;
    }
    return Length;
}

size_t InterlockWcslen(const WCHAR *String)
{
    return InterlockWcsnlen(String, MAXSIZE_T);
}

WCHAR *InterlockWcscpy(WCHAR *Target, const WCHAR *Source)
{
    return memcpy(Target, Source, (InterlockWcslen(Source) + 1) * sizeof(WCHAR));
}

WCHAR *InterlockWcsncpy(WCHAR *Target, const WCHAR *Source, size_t Count)
{
    size_t Length = InterlockWcsnlen(Source, Count);
    memcpy(Target, Source, Length * sizeof(WCHAR));
    memset(Target + Length, 0, (Count - Length) * sizeof(WCHAR));
    return Target;
}

WCHAR *InterlockWcscat(WCHAR *Target, const WCHAR *Source)
{
    InterlockWcscpy(Target + InterlockWcslen(Target), Source);
    return Target;
}

WCHAR *InterlockWcsncat(WCHAR *Target, const WCHAR *Source, size_t Count)
{
    size_t Length = InterlockWcsnlen(Source, Count);
    WCHAR *End = Target + InterlockWcslen(Target);
    memcpy(End, Source, Length * sizeof(WCHAR));
    End[Length] = 0;
    return Target;
}

static ULONG BaseFoldCase(WCHAR Character)
{
    return Character >= 'A' && Character <= 'Z' ? (ULONG)(Character + ('a' - 'A')) : Character;
}

static int BaseCompareWide(const WCHAR *First, const WCHAR *Second, size_t Count, BOOLEAN Fold)
{
    for (; Count != 0; Count--, First++, Second++) {
        ULONG A = Fold ? BaseFoldCase(*First) : *First;
        ULONG B = Fold ? BaseFoldCase(*Second) : *Second;
        if (A != B || A == 0) {
            return (A > B) - (A < B);
        }
    }
    return 0;
}

int InterlockWcscmp(const WCHAR *First, const WCHAR *Second)
{
    return BaseCompareWide(First, Second, MAXSIZE_T, FALSE);
}

int InterlockWcsncmp(const WCHAR *First, const WCHAR *Second, size_t Count)
{
    return BaseCompareWide(First, Second, Count, FALSE);
}

int InterlockWcsicmp(const WCHAR *First, const WCHAR *Second)
{
    return BaseCompareWide(First, Second, MAXSIZE_T, TRUE);
}

int InterlockWcsnicmp(const WCHAR *First, const WCHAR *Second, size_t Count)
{
    return BaseCompareWide(First, Second, Count, TRUE);
}

WCHAR *InterlockWcschr(const WCHAR *String, WCHAR Character)
{
    while (*String != Character) {
        if (*String++ == 0) {
            return NULL;
        }
    }
    return (WCHAR *)String;
}

WCHAR *InterlockWcsrchr(const WCHAR *String, WCHAR Character)
{
    size_t i = InterlockWcslen(String) + 1;
    while (i-- != 0) {
        if (String[i] == Character) {
            return (WCHAR *)String + i;
        }
    }
    return NULL;
}

WCHAR *InterlockWcsstr(const WCHAR *String, const WCHAR *Part)
{
    size_t Length = InterlockWcslen(Part);
    for (;; String++) {
        if (InterlockWcsncmp(String, Part, Length) == 0) {
            return (WCHAR *)String;
        }
        if (*String == 0) {
            return NULL;
        }
    }
}

/* How many characters from the start on are in the set, or are not. */
static size_t BaseSpan(const WCHAR *String, const WCHAR *Set, BOOLEAN InSet)
{
    size_t Length = 0;
    while (String[Length] != 0 && (InterlockWcschr(Set, String[Length]) != NULL) == InSet) {
        Length++;
    }
    return Length;
}

size_t InterlockWcsspn(const WCHAR *String, const WCHAR *Set)
{
    return BaseSpan(String, Set, TRUE);
}

size_t InterlockWcscspn(const WCHAR *String, const WCHAR *Set)
{
    return BaseSpan(String, Set, FALSE);
}

WCHAR *InterlockWcspbrk(const WCHAR *String, const WCHAR *Set)
{
    String += BaseSpan(String, Set, FALSE);
    return *String != 0 ? (WCHAR *)String : NULL;
}

WCHAR *InterlockWcsdup(const WCHAR *String)
{
    size_t Bytes = (InterlockWcslen(String) + 1) * sizeof(WCHAR);
    WCHAR *Copy = malloc(Bytes);
    return Copy != NULL ? memcpy(Copy, String, Bytes) : NULL;
}

/* The ASCII characters that String begins with, for the narrow functions: a number has no others. */
static VOID BaseNarrowNumber(const WCHAR *String, CHAR Text[LONGEST_NUMBER])
{
    size_t i;
    for (i = 0; i < LONGEST_NUMBER - 1 && String[i] != 0 && String[i] < 0x80; i++) {
        Text[i] = (CHAR)String[i];
    }
    Text[i] = 0;
}

/* FALSE: no number has that base, so that it stops where it began. */
static BOOLEAN BaseHasNumbers(int Base, const WCHAR *String, WCHAR **End)
{
    if (Base == 0 || (Base >= 2 && Base <= 36)) {
        return TRUE;
    }
    HalSetError(HalErrorInvalid);
    if (End != NULL) {
        *End = (WCHAR *)String;
    }
    return FALSE;
}

long InterlockWcstol(const WCHAR *String, WCHAR **End, int Base)
{
    CHAR Text[LONGEST_NUMBER];
    char *Stop;
    long Value;
    BaseNarrowNumber(String, Text);
    if (!BaseHasNumbers(Base, String, End)) {
        return 0;
    }
    Value = strtol(Text, &Stop, Base);
    if (End != NULL) {
        *End = (WCHAR *)String + (Stop - Text);
    }
    return Value;
}

unsigned long InterlockWcstoul(const WCHAR *String, WCHAR **End, int Base)
{
    CHAR Text[LONGEST_NUMBER];
    char *Stop;
    unsigned long Value;
    BaseNarrowNumber(String, Text);
    if (!BaseHasNumbers(Base, String, End)) {
        return 0;
    }
    Value = strtoul(Text, &Stop, Base);
    if (End != NULL) {
        *End = (WCHAR *)String + (Stop - Text);
    }
    return Value;
}

int InterlockWtoi(const WCHAR *String)
{
    return (int)InterlockWcstol(String, NULL, 10);
}
