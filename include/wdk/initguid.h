/* From here on DEFINE_GUID defines. No guard: it may come after a header that includes guiddef.h. */
#ifndef INITGUID
#define INITGUID
#endif

#include <guiddef.h>
