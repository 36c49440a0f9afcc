/* names.h: functions and headers of the Windows SDK and of the WDK, from sdk-names.txt, and which of them Interlock has. */
#ifndef INTERLOCK_PORT_NAMES_H
#define INTERLOCK_PORT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct sdk_area {
    const char *name;
    bool in_scope; /* Interlock covers this area */
} sdk_area;

typedef struct sdk_name {
    const char *name;
    unsigned char area; /* of sdk_areas */
    bool there;
} sdk_name;

/* names.py makes them; sorted by name. */
extern const sdk_area sdk_areas[];
extern const size_t sdk_area_count;
extern const sdk_name sdk_functions[], sdk_headers[];
extern const size_t sdk_function_count, sdk_header_count;

#endif
