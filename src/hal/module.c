/*
 * module.c: finding functions by name in this library and in the program.
 *
 * The host's search goes on from an object to what that depends on, so what it finds counts only if it lies in the
 * object that was meant.
 */
#include "halp.h"

#include <dlfcn.h>
#include <link.h>

static BOOLEAN HalpIsInObject(PVOID Address, const struct link_map *Object)
{
    struct link_map *Map = NULL;
    Dl_info Place;

    return dladdr1(Address, &Place, (void **)&Map, RTLD_DL_LINKMAP) != 0 && Map == Object;
}

/* Linked into the program, the library is where the program is. */
static PVOID HalpOpenModule(HAL_MODULE Module)
{
    struct link_map *Map = NULL;
    Dl_info Place;

    if (Module == HalLibrary && dladdr1((PVOID)HalFindExport, &Place, (void **)&Map, RTLD_DL_LINKMAP) != 0 &&
        Map->l_name != NULL && Map->l_name[0] != 0) {
        return dlopen(Map->l_name, RTLD_LAZY | RTLD_NOLOAD);
    }
    return dlopen(NULL, RTLD_LAZY);
}

PVOID HalFindExport(HAL_MODULE Module, PCSTR Name)
{
    struct link_map *Map = NULL;
    PVOID Object = HalpOpenModule(Module);
    PVOID Found = NULL;

    if (Object != NULL && dlinfo(Object, RTLD_DI_LINKMAP, &Map) == 0) {
        Found = dlsym(Object, Name);
    }
    if (Found != NULL && !HalpIsInObject(Found, Map)) {
        Found = NULL;
    }
    if (Object != NULL) {
        dlclose(Object);
    }
    return Found;
}
