/* utf8.c: UTF-8 and UTF-16. */
#include "utf8.h"

#define EXP_REPLACEMENT   0xFFFDu
#define EXP_LAST_ONE_UNIT 0xFFFFu

static ULONG ExpReplace(PBOOLEAN Invalid)
{
    if (Invalid != NULL) {
        *Invalid = TRUE;
    }
    return EXP_REPLACEMENT;
}

/* The number of continuation bytes, and the bounds of the next one; -1: no character begins with Lead. */
static LONG ExpLeadByte(UCHAR Lead, PUCHAR Low, PUCHAR High)
{
    *Low = Lead == 0xE0 ? 0xA0 : Lead == 0xF0 ? 0x90 : 0x80;
    *High = Lead == 0xED ? 0x9F : Lead == 0xF4 ? 0x8F : 0xBF;
    if (Lead < 0x80) {
        return 0;
    }
    if (Lead >= 0xC2 && Lead <= 0xDF) {
        return 1;
    }
    if (Lead >= 0xE0 && Lead <= 0xEF) {
        return 2;
    }
    return Lead >= 0xF0 && Lead <= 0xF4 ? 3 : -1;
}

static ULONG ExpNextUtf8(const UCHAR **Source, const UCHAR *End, PBOOLEAN Invalid)
{
    UCHAR Low, High;
    UCHAR Lead = *(*Source)++;
    LONG More = ExpLeadByte(Lead, &Low, &High);
    ULONG Character;
    if (More < 0) {
        return ExpReplace(Invalid);
    }
    Character = More == 0 ? Lead : Lead & (0x3F >> More);
    for (; More > 0; More--) {
        if (*Source == End || **Source < Low || **Source > High) {
            return ExpReplace(Invalid);
        }
        Character = Character << 6 | (*(*Source)++ & 0x3F);
        Low = 0x80;
        High = 0xBF;
    }
    return Character;
}

static ULONG ExpNextWide(PCWCH *Source, PCWCH End, PBOOLEAN Invalid)
{
    ULONG Unit = *(*Source)++;
    if ((Unit & 0xF800) != 0xD800) {
        return Unit;
    }
    if (Unit < 0xDC00 && *Source != End && (**Source & 0xFC00) == 0xDC00) {
        return 0x10000 + ((Unit & 0x3FF) << 10) + (*(*Source)++ & 0x3FF);
    }
    return ExpReplace(Invalid);
}

SIZE_T ExpUtf8ToWide(PCCH Source, SIZE_T Length, PWCH Target, SIZE_T Room, PBOOLEAN Invalid)
{
    const UCHAR *At = (const UCHAR *)Source;
    const UCHAR *End = At + Length;
    SIZE_T Used = 0;
    while (At != End) {
        ULONG Character = ExpNextUtf8(&At, End, Invalid);
        SIZE_T Units = Character > EXP_LAST_ONE_UNIT ? 2 : 1;
        if (Used + Units <= Room && Units == 1) {
            Target[Used] = (WCHAR)Character;
        } else if (Used + Units <= Room) {
            Target[Used] = (WCHAR)(0xD7C0 + (Character >> 10));
            Target[Used + 1] = (WCHAR)(0xDC00 + (Character & 0x3FF));
        }
        Used += Units;
    }
    return Used;
}

SIZE_T ExpWideToUtf8(PCWCH Source, SIZE_T Length, PCHAR Target, SIZE_T Room, PBOOLEAN Invalid)
{
    static const UCHAR Marks[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    PCWCH End = Source + Length;
    SIZE_T Used = 0;
    while (Source != End) {
        ULONG Character = ExpNextWide(&Source, End, Invalid);
        SIZE_T Bytes = Character < 0x80 ? 1 : Character < 0x800 ? 2 : Character <= EXP_LAST_ONE_UNIT ? 3 : 4;
        if (Used + Bytes <= Room) {
            for (SIZE_T Index = Bytes - 1; Index > 0; Index--) {
                Target[Used + Index] = (CHAR)(0x80 | (Character & 0x3F));
                Character >>= 6;
            }
            Target[Used] = (CHAR)(Marks[Bytes] | Character);
        }
        Used += Bytes;
    }
    return Used;
}
