/*
 * wmain.c: the main of programs that have a wmain. It is an archive of its own, which the linker uses only if the program
 * has no main: in the library itself it would satisfy programs that forgot theirs.
 *
 * Compilers for Windows know wmain; to a C++ compiler here it is a function like any other, whose name it mangles. So
 * all of its forms are searched for.
 */
#include <interlock/win32.h>

extern char **environ;
int main(int Count, char **Arguments);

typedef int BASE_WIDE_MAIN(int Count, WCHAR **Arguments, WCHAR **Environment);

extern BASE_WIDE_MAIN wmain __attribute__((weak));
/* wmain(int, WCHAR **) and wmain(int, WCHAR **, WCHAR **), where WCHAR is char16_t or a short wchar_t; wmain(void) */
extern BASE_WIDE_MAIN BaseWideMain16 __asm__("_Z5wmainiPPDs") __attribute__((weak));
extern BASE_WIDE_MAIN BaseWideMain16Env __asm__("_Z5wmainiPPDsS0_") __attribute__((weak));
extern BASE_WIDE_MAIN BaseWideMainShort __asm__("_Z5wmainiPPw") __attribute__((weak));
extern BASE_WIDE_MAIN BaseWideMainShortEnv __asm__("_Z5wmainiPPwS0_") __attribute__((weak));
/* the same with const strings */
extern BASE_WIDE_MAIN BaseWideMainConst __asm__("_Z5wmainiPPKw") __attribute__((weak));
extern BASE_WIDE_MAIN BaseWideMainAllConst __asm__("_Z5wmainiPKPKw") __attribute__((weak));
extern BASE_WIDE_MAIN BaseWideMainVoid __asm__("_Z5wmainv") __attribute__((weak));

static PWSTR BaseWidenArgument(const char *Text)
{
    int Length = MultiByteToWideChar(CP_UTF8, 0, Text, -1, NULL, 0);
    PWSTR Wide = LocalAlloc(LMEM_FIXED, (SIZE_T)Length * sizeof(WCHAR));
    if (Wide != NULL) {
        MultiByteToWideChar(CP_UTF8, 0, Text, -1, Wide, Length);
    }
    return Wide;
}

/* Ended by NULL. NULL: no memory. */
static WCHAR **BaseWidenArguments(char **Texts)
{
    SIZE_T Count = 0;
    while (Texts[Count] != NULL) {
        Count++;
    }
    WCHAR **Wide = LocalAlloc(LMEM_FIXED | LMEM_ZEROINIT, (Count + 1) * sizeof(*Wide));
    for (SIZE_T Index = 0; Index < Count && Wide != NULL; Index++) {
        Wide[Index] = BaseWidenArgument(Texts[Index]);
        if (Wide[Index] == NULL) {
            return NULL;
        }
    }
    return Wide;
}

static BASE_WIDE_MAIN *BaseFindWideMain(VOID)
{
    BASE_WIDE_MAIN *const Forms[] = {wmain,           BaseWideMain16,       BaseWideMain16Env, BaseWideMainShort,
                                     BaseWideMainShortEnv, BaseWideMainConst,    BaseWideMainAllConst, BaseWideMainVoid};
    for (ULONG Index = 0; Index < ARRAYSIZE(Forms); Index++) {
        if (Forms[Index] != NULL) {
            return Forms[Index];
        }
    }
    return NULL;
}

int main(int Count, char **Arguments)
{
    static const char Missing[] = "interlock: the program has neither main nor wmain, or is out of memory\n";
    BASE_WIDE_MAIN *Main = BaseFindWideMain();
    static WCHAR **Wide, **Environment; /* as long as the process */
    Wide = BaseWidenArguments(Arguments);
    Environment = BaseWidenArguments(environ);
    if (Main == NULL || Wide == NULL || Environment == NULL) {
        OutputDebugStringA(Missing);
        return 1;
    }
    return Main(Count, Wide, Environment);
}
