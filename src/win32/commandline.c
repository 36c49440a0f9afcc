/*
 * commandline.c: command lines and environments taken apart, by the rules of the C runtime on Windows.
 *
 * The first argument ends at a blank, or if it begins with a quotation mark at the next one. In the others a quotation
 * mark switches the meaning of blanks off and on; 2n backslashes before one are n backslashes and the mark counts,
 * 2n+1 are n backslashes and a mark that belongs to the text; two marks in a row inside of a quoted part are one of the
 * text. Backslashes elsewhere are themselves.
 */
#include "commandline.h"

#include "../hal/hal.h"

typedef struct _BASE_SPLIT {
    PCSTR Rest;
    PSTR Text;                       /* where the next character goes */
    PSTR *Next;                      /* where the next argument goes */
} BASE_SPLIT, *PBASE_SPLIT;

static BOOLEAN BaseIsBlank(CHAR Character)
{
    return Character == ' ' || Character == '\t';
}

static VOID BaseSkipBlanks(PBASE_SPLIT Split)
{
    while (BaseIsBlank(*Split->Rest)) {
        Split->Rest += 1;
    }
}

static VOID BaseBeginArgument(PBASE_SPLIT Split)
{
    *Split->Next++ = Split->Text;
}

static VOID BaseEndArgument(PBASE_SPLIT Split)
{
    *Split->Text++ = '\0';
}

static VOID BaseTakeProgram(PBASE_SPLIT Split)
{
    BOOLEAN Quoted = *Split->Rest == '"';
    BaseBeginArgument(Split);
    Split->Rest += Quoted;
    while (*Split->Rest != '\0' && (Quoted ? *Split->Rest != '"' : !BaseIsBlank(*Split->Rest))) {
        *Split->Text++ = *Split->Rest++;
    }
    if (Quoted && *Split->Rest == '"') {
        Split->Rest += 1;
    }
    BaseEndArgument(Split);
}

/* Backslashes, and the quotation mark behind them if it belongs to the text. */
static VOID BaseTakeBackslashes(PBASE_SPLIT Split)
{
    SIZE_T Count = 0;
    while (Split->Rest[Count] == '\\') {
        Count += 1;
    }
    Split->Rest += Count;
    BOOLEAN Mark = *Split->Rest == '"';
    for (SIZE_T Written = 0; Written < (Mark ? Count / 2 : Count); Written += 1) {
        *Split->Text++ = '\\';
    }
    if (Mark && Count % 2 != 0) {
        *Split->Text++ = *Split->Rest++;
    }
}

static VOID BaseTakeArgument(PBASE_SPLIT Split)
{
    BOOLEAN Quoted = FALSE;
    BaseBeginArgument(Split);
    while (*Split->Rest != '\0' && (Quoted || !BaseIsBlank(*Split->Rest))) {
        if (*Split->Rest == '\\') {
            BaseTakeBackslashes(Split);
        } else if (*Split->Rest != '"') {
            *Split->Text++ = *Split->Rest++;
        } else if (Quoted && Split->Rest[1] == '"') {
            *Split->Text++ = '"';
            Split->Rest += 2;
        } else {
            Quoted = !Quoted;
            Split->Rest += 1;
        }
    }
    BaseEndArgument(Split);
}

/* No argument is longer than its text, and each takes one character of the line with it at least. */
PSTR *BaseSplitCommandLine(PCSTR CommandLine)
{
    SIZE_T Length = strlen(CommandLine);
    SIZE_T Most = Length / 2 + 2;
    PSTR *Arguments = HalAllocate((Most + 1) * sizeof(*Arguments) + Length + Most + 1, sizeof(*Arguments));
    BASE_SPLIT Split = {CommandLine, (PSTR)(Arguments + Most + 1), Arguments};
    if (Arguments == NULL) {
        return NULL;
    }
    BaseSkipBlanks(&Split);
    BaseTakeProgram(&Split);
    for (BaseSkipBlanks(&Split); *Split.Rest != '\0'; BaseSkipBlanks(&Split)) {
        BaseTakeArgument(&Split);
    }
    return Arguments;
}

/* The block is a row of strings that ends with an empty one. */
PSTR *BaseSplitEnvironment(PCSTR Block)
{
    SIZE_T Count = 0;
    SIZE_T Length = 0;
    while (Block[Length] != '\0') {
        Length += strlen(Block + Length) + 1;
        Count += 1;
    }
    PSTR *Strings = HalAllocate((Count + 1) * sizeof(*Strings) + Length + 1, sizeof(*Strings));
    if (Strings == NULL) {
        return NULL;
    }
    PSTR Text = memcpy(Strings + Count + 1, Block, Length + 1);
    for (SIZE_T Index = 0; Index < Count; Index += 1) {
        Strings[Index] = Text;
        Text += strlen(Text) + 1;
    }
    return Strings;
}
