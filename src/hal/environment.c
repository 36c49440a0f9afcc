/* environment.c: the program's variables and files. */
#include "environment.h"

#include "handler.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static volatile ULONG HalpEnvironmentLock; /* see HalpLockMasked */

SIZE_T HalQueryVariable(PCSTR Name, PSTR Buffer, SIZE_T Size)
{
    HALP_HOST_CALLS;
    SIZE_T Length = HAL_NO_VARIABLE;
    sigset_t Before;
    PCSTR Value;

    HalpLockMasked(&HalpEnvironmentLock, &Before);
    Value = getenv(Name);
    if (Value != NULL) {
        Length = strlen(Value);
        if (Length < Size) {
            memcpy(Buffer, Value, Length + 1);
        }
    }
    HalpUnlockMasked(&HalpEnvironmentLock, &Before);
    return Length;
}

BOOLEAN HalSetVariable(PCSTR Name, PCSTR Value)
{
    HALP_HOST_CALLS;
    sigset_t Before;
    int Result;

    HalpLockMasked(&HalpEnvironmentLock, &Before);
    Result = Value != NULL ? setenv(Name, Value, 1) : unsetenv(Name);
    HalpUnlockMasked(&HalpEnvironmentLock, &Before);
    return Result == 0;
}

/* With the lock held. */
static PSTR HalpCopyStrings(PSIZE_T Size)
{
    PSTR Block, Next;

    *Size = 1;
    for (char **Entry = environ; Entry != NULL && *Entry != NULL; Entry++) {
        *Size += strlen(*Entry) + 1;
    }
    Next = Block = HalAllocate(*Size, 1);
    for (char **Entry = environ; Block != NULL && Entry != NULL && *Entry != NULL; Entry++) {
        SIZE_T Length = strlen(*Entry) + 1;

        memcpy(Next, *Entry, Length);
        Next += Length;
    }
    return Block;
}

PSTR HalCopyVariables(PSIZE_T Size)
{
    HALP_HOST_CALLS;
    sigset_t Before;
    PSTR Block;

    HalpLockMasked(&HalpEnvironmentLock, &Before);
    Block = HalpCopyStrings(Size);
    HalpUnlockMasked(&HalpEnvironmentLock, &Before);
    return Block;
}

static SIZE_T HalpStorePath(PCSTR Path, PSTR Buffer, SIZE_T Size)
{
    SIZE_T Length = strlen(Path);

    if (Length >= Size) {
        return 0;
    }
    memcpy(Buffer, Path, Length + 1);
    return Length;
}

/* A library that is linked statically is in the program's file. */
SIZE_T HalQueryModulePath(HAL_MODULE Module, PSTR Buffer, SIZE_T Size)
{
    HALP_HOST_CALLS;
    CHAR Path[PATH_MAX];
    Dl_info Place;
    ssize_t Length;

    if (Module == HalLibrary && dladdr((PVOID)HalQueryModulePath, &Place) != 0 && Place.dli_fname[0] == '/' &&
        realpath(Place.dli_fname, Path) != NULL) {
        return HalpStorePath(Path, Buffer, Size);
    }
    Length = readlink("/proc/self/exe", Path, sizeof(Path) - 1);
    Path[Length > 0 ? Length : 0] = '\0';
    return HalpStorePath(Path, Buffer, Size);
}
