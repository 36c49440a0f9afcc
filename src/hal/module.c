/*
 * module.c: finds functions by name in this library and in the program.
 *
 * The host searches an object and all that it depends on, so a result counts only if it lies in the object itself.
 */
#include "halp.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#define HALP_LONGEST_EXPORT 256 /* bytes, with the prefix; the longest name has 54 */

static BOOLEAN HalpAreInOneObject(PVOID One, PVOID Other)
{
    Dl_info PlaceOfOne, PlaceOfOther;

    return One != NULL && Other != NULL && dladdr(One, &PlaceOfOne) != 0 && dladdr(Other, &PlaceOfOther) != 0 &&
           PlaceOfOne.dli_fbase == PlaceOfOther.dli_fbase;
}

/* An address in the object: every object that the loader maps has a dynamic section. */
static PVOID HalpDynamicSection(PVOID Object)
{
    struct link_map *Map = NULL;

    return Object != NULL && dlinfo(Object, RTLD_DI_LINKMAP, &Map) == 0 ? Map->l_ld : NULL;
}

/* A library that is linked statically is in the program's object. */
static PVOID HalpOpenModule(HAL_MODULE Module)
{
    PVOID Program = dlopen(NULL, RTLD_LAZY);
    Dl_info Place;

    if (Module != HalLibrary || HalpAreInOneObject((PVOID)HalFindExport, HalpDynamicSection(Program)) ||
        dladdr((PVOID)HalFindExport, &Place) == 0) {
        return Program;
    }
    if (Program != NULL) {
        dlclose(Program);
    }
    return dlopen(Place.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

PVOID HalFindModuleBase(PVOID Address)
{
    HALP_HOST_CALLS;
    Dl_info Place;

    return dladdr(Address, &Place) != 0 ? Place.dli_fbase : NULL;
}

/* The name with the prefix that the library's symbols have; NULL if it is too long for any of them. */
static PCSTR HalpPrefixName(PCSTR Name, PSTR Buffer, SIZE_T Size)
{
    if (sizeof(INTERLOCK_SYMBOL_PREFIX) == 1) {
        return Name;
    }
    return snprintf(Buffer, Size, "%s%s", INTERLOCK_SYMBOL_PREFIX, Name) < (int)Size ? Buffer : NULL;
}

PVOID HalFindExport(HAL_MODULE Module, PCSTR Name)
{
    HALP_HOST_CALLS;
    PVOID Object = HalpOpenModule(Module);
    PVOID Found;
    CHAR Buffer[HALP_LONGEST_EXPORT];

    if (Object == NULL) {
        return NULL;
    }
    if (Module == HalLibrary) {
        Name = HalpPrefixName(Name, Buffer, sizeof(Buffer));
    }
    Found = Name != NULL ? dlsym(Object, Name) : NULL;
    if (!HalpAreInOneObject(Found, HalpDynamicSection(Object))) {
        Found = NULL;
    }
    dlclose(Object);
    return Found;
}

/*
 * Names of C++ functions as their sources have them, for reports.
 *
 * As a Windows debugger shows them: the qualified name, without parameters and return type. __cxa_demangle of the C++
 * library is not used: it allocates, and the heap may be locked or damaged when a report is written. Template arguments
 * become <...>. A name with something else in it (a substitution in the name itself, a decltype, a requirement) stays
 * as it is.
 */

#define LONGEST_DEMANGLED 256
#define DEEPEST_TYPE 64

typedef struct _HALP_DEMANGLER {
    PCSTR Next;
    CHAR Text[LONGEST_DEMANGLED];
    SIZE_T Length;
    SIZE_T Last; /* where the last component begins: a constructor repeats it */
    ULONG Depth;
    BOOLEAN Failed;
} HALP_DEMANGLER, *PHALP_DEMANGLER;

static VOID HalpGiveUpName(PHALP_DEMANGLER State)
{
    State->Failed = TRUE;
    State->Next = "";
}

static BOOLEAN HalpTake(PHALP_DEMANGLER State, PCSTR Text)
{
    SIZE_T Length = strlen(Text);

    if (strncmp(State->Next, Text, Length) != 0) {
        return FALSE;
    }
    State->Next += Length;
    return TRUE;
}

static VOID HalpAppend(PHALP_DEMANGLER State, PCSTR Text, SIZE_T Length)
{
    if (Length >= sizeof(State->Text) - State->Length) {
        HalpGiveUpName(State);
        return;
    }
    memcpy(State->Text + State->Length, Text, Length);
    State->Length += Length;
    State->Text[State->Length] = '\0';
}

static VOID HalpBeginComponent(PHALP_DEMANGLER State)
{
    if (State->Length != 0) {
        HalpAppend(State, "::", 2);
    }
    State->Last = State->Length;
}

static BOOLEAN HalpIsDigit(CHAR Character)
{
    return Character >= '0' && Character <= '9';
}

/* A length and as many characters. */
static PCSTR HalpTakeSourceName(PHALP_DEMANGLER State, SIZE_T *Length)
{
    PCSTR Name;

    *Length = 0;
    while (HalpIsDigit(*State->Next) && *Length < LONGEST_DEMANGLED) {
        *Length = *Length * 10 + (SIZE_T)(*State->Next++ - '0');
    }
    if (*Length == 0 || strnlen(State->Next, *Length) != *Length) {
        HalpGiveUpName(State);
        *Length = 0;
    }
    Name = State->Next;
    State->Next += *Length;
    return Name;
}

static VOID HalpSkipType(PHALP_DEMANGLER State);

/* Up to the E that ends it. */
static VOID HalpSkipList(PHALP_DEMANGLER State)
{
    while (!State->Failed && !HalpTake(State, "E")) {
        HalpSkipType(State);
    }
}

static VOID HalpSkipNumbered(PHALP_DEMANGLER State)
{
    while (HalpIsDigit(*State->Next) || (*State->Next >= 'A' && *State->Next <= 'Z')) {
        State->Next += 1;
    }
    if (!HalpTake(State, "_")) {
        HalpGiveUpName(State);
    }
}

/* A literal: its type, its digits, E. */
static VOID HalpSkipLiteral(PHALP_DEMANGLER State)
{
    if (*State->Next == '_') {
        HalpGiveUpName(State); /* the address of a function or variable */
        return;
    }
    HalpSkipType(State);
    while (HalpIsDigit(*State->Next) || *State->Next == 'n') {
        State->Next += 1;
    }
    if (!HalpTake(State, "E")) {
        HalpGiveUpName(State);
    }
}

static VOID HalpSkipType(PHALP_DEMANGLER State)
{
    CHAR Kind = *State->Next;
    SIZE_T Length;

    if (Kind == '\0' || ++State->Depth > DEEPEST_TYPE) {
        HalpGiveUpName(State);
        return;
    }
    if (HalpIsDigit(Kind)) {
        HalpTakeSourceName(State, &Length);
    } else if (strchr("PROKV", Kind) != NULL) {
        State->Next += 1; /* a qualifier or pointer: what it is about follows */
        HalpSkipType(State);
    } else if (strchr("NIJF", Kind) != NULL) {
        State->Next += 1;
        HalpSkipList(State);
    } else if (Kind == 'L') {
        State->Next += 1;
        HalpSkipLiteral(State);
    } else if (Kind == 'A') {
        State->Next += 1;
        HalpSkipNumbered(State);
        HalpSkipType(State);
    } else if (Kind == 'S' && strchr("tabsiod", State->Next[1]) != NULL && State->Next[1] != '\0') {
        State->Next += 2;
        if (State->Next[-1] == 't') {
            HalpSkipType(State); /* std:: and a name */
        }
    } else if (Kind == 'S' || Kind == 'T') {
        State->Next += 1;
        HalpSkipNumbered(State);
    } else if (Kind == 'D' && strchr("ndisaefhc", State->Next[1]) != NULL && State->Next[1] != '\0') {
        State->Next += 2;
    } else if (Kind == 'D' && State->Next[1] == 'p') {
        State->Next += 2;
        HalpSkipType(State);
    } else if (Kind >= 'a' && Kind <= 'z') {
        State->Next += 1;
    } else {
        HalpGiveUpName(State);
    }
    if (!State->Failed && *State->Next == 'I') {
        State->Next += 1;
        HalpSkipList(State);
    }
    State->Depth -= 1;
}

static VOID HalpAddSourceName(PHALP_DEMANGLER State)
{
    static const CHAR Anonymous[] = "_GLOBAL__N_";
    SIZE_T Length;
    PCSTR Name = HalpTakeSourceName(State, &Length);

    HalpBeginComponent(State);
    if (Length >= sizeof(Anonymous) - 1 && strncmp(Name, Anonymous, sizeof(Anonymous) - 1) == 0) {
        HalpAppend(State, "(anonymous namespace)", strlen("(anonymous namespace)"));
    } else {
        HalpAppend(State, Name, Length);
    }
}

static BOOLEAN HalpAddOperator(PHALP_DEMANGLER State)
{
    static const struct {
        CHAR Code[3];
        PCSTR Name;
    } Operators[] = {
        {"nw", " new"}, {"na", " new[]"}, {"dl", " delete"}, {"da", " delete[]"}, {"cl", "()"}, {"ix", "[]"}, {"pt", "->"},
        {"aS", "="},    {"eq", "=="},     {"ne", "!="},      {"lt", "<"},         {"gt", ">"},  {"le", "<="}, {"ge", ">="},
        {"ss", "<=>"},  {"pl", "+"},      {"mi", "-"},       {"ml", "*"},         {"dv", "/"},  {"rm", "%"},  {"pL", "+="},
        {"mI", "-="},   {"ls", "<<"},     {"rs", ">>"},      {"pp", "++"},        {"mm", "--"}, {"nt", "!"},  {"de", "*"},
        {"ad", "&"},    {"an", "&"},      {"or", "|"},       {"aa", "&&"},        {"oo", "||"}, {"co", "~"},  {"eo", "^"},
    };

    for (ULONG Index = 0; Index < RTL_NUMBER_OF(Operators); Index++) {
        if (HalpTake(State, Operators[Index].Code)) {
            HalpBeginComponent(State);
            HalpAppend(State, "operator", 8);
            HalpAppend(State, Operators[Index].Name, strlen(Operators[Index].Name));
            return TRUE;
        }
    }
    return FALSE;
}

/* C1, C2, C3, D0, D1, D2: the name of the class again. */
static BOOLEAN HalpAddConstructor(PHALP_DEMANGLER State)
{
    CHAR Kind = *State->Next;
    CHAR Class[LONGEST_DEMANGLED];
    PSTR Arguments;

    if ((Kind != 'C' && Kind != 'D') || !HalpIsDigit(State->Next[1]) || State->Length == 0) {
        return FALSE;
    }
    State->Next += 2;
    snprintf(Class, sizeof(Class), "%s%s", Kind == 'D' ? "~" : "", State->Text + State->Last);
    Arguments = strchr(Class, '<');
    if (Arguments != NULL) {
        *Arguments = '\0';
    }
    HalpBeginComponent(State);
    HalpAppend(State, Class, strlen(Class));
    return TRUE;
}

/* A lambda or a type without a name. */
static BOOLEAN HalpAddUnnamed(PHALP_DEMANGLER State)
{
    BOOLEAN Lambda = HalpTake(State, "Ul");

    if (!Lambda && !HalpTake(State, "Ut")) {
        return FALSE;
    }
    if (Lambda) {
        HalpSkipList(State);
    }
    HalpSkipNumbered(State);
    HalpBeginComponent(State);
    HalpAppend(State, Lambda ? "<lambda>" : "<unnamed>", Lambda ? 8 : 9);
    return TRUE;
}

/* One component, with what belongs to it. FALSE: there is none. */
static BOOLEAN HalpAddComponent(PHALP_DEMANGLER State)
{
    if (HalpTake(State, "L") || HalpIsDigit(*State->Next)) {
        HalpAddSourceName(State);
    } else if (!HalpAddConstructor(State) && !HalpAddUnnamed(State) && !HalpAddOperator(State)) {
        return FALSE;
    }
    while (HalpTake(State, "B")) {
        SIZE_T Length;
        HalpTakeSourceName(State, &Length); /* the tag of an ABI */
    }
    if (HalpTake(State, "I")) {
        HalpSkipList(State);
        HalpAppend(State, "<...>", 5);
    }
    return TRUE;
}

static VOID HalpAddStd(PHALP_DEMANGLER State)
{
    if (HalpTake(State, "St")) {
        HalpBeginComponent(State);
        HalpAppend(State, "std", 3);
    }
}

static VOID HalpAddEncoding(PHALP_DEMANGLER State)
{
    if (HalpTake(State, "Z")) {
        if (++State->Depth > DEEPEST_TYPE) {
            HalpGiveUpName(State);
            return;
        }
        HalpAddEncoding(State); /* a function, and something inside it */
        while (!State->Failed && *State->Next != 'E') {
            HalpSkipType(State);
        }
        if (!HalpTake(State, "E") || HalpTake(State, "s")) {
            HalpGiveUpName(State);
            return;
        }
        HalpAddEncoding(State);
    } else if (HalpTake(State, "N")) {
        while (*State->Next != '\0' && strchr("rVKRO", *State->Next) != NULL) {
            State->Next += 1; /* of a method */
        }
        HalpAddStd(State);
        while (!State->Failed && !HalpTake(State, "E")) {
            if (!HalpAddComponent(State)) {
                HalpGiveUpName(State);
            }
        }
    } else {
        HalpAddStd(State);
        if (!HalpAddComponent(State)) {
            HalpGiveUpName(State);
        }
    }
}

VOID HalpDemangle(PSTR Name, SIZE_T Size)
{
    HALP_DEMANGLER State = {.Next = Name};

    if (!HalpTake(&State, "_Z")) {
        return;
    }
    HalpAddEncoding(&State);
    if (!State.Failed && State.Length != 0) {
        snprintf(Name, Size, "%s", State.Text);
    }
}
