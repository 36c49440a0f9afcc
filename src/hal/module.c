/*
 * module.c: finds functions by name in this library and in the program.
 *
 * The host searches an object and all that it depends on, so a result counts only if it lies in the object itself.
 */
#include "halp.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>

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
