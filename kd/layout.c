/* layout.c: checks, layer by layer, that the process's structures match those that the debugger was compiled with. */
#include "kd.h"

#include "trace/tracefile.h"

#include <string.h>

static const ULONG ex_pool[] = {EXP_POOL_LAYOUT};
static const ULONG ex_resource[] = {EXP_RESOURCE_LAYOUT};
static const ULONG ex_waiter[] = {EXP_WAITER_LAYOUT};
static const ULONG ob[] = {OBP_LAYOUT};
static const ULONG ps[] = {PSP_LAYOUT};
static const ULONG rtl_waiter[] = {RTLP_WAITER_LAYOUT};
static const ULONG trace[] = {TRACE_RECORDING_LAYOUT};
static const ULONG wo[] = {WO_LAYOUT};

static const struct {
    const char *name; /* as it is registered */
    const ULONG *layout;
    size_t size;
} layouts[] = {
    {"ExpPoolLayout", ex_pool, sizeof(ex_pool)},
    {"ExpResourceLayout", ex_resource, sizeof(ex_resource)}, {"ExpWaiterLayout", ex_waiter, sizeof(ex_waiter)},
    {"ObpLayout", ob, sizeof(ob)},                           {"PspLayout", ps, sizeof(ps)},
    {"RtlpWaiterLayout", rtl_waiter, sizeof(rtl_waiter)},         {"WopLayout", wo, sizeof(wo)},
    {"TraceRecordingLayout", trace, sizeof(trace)},
};

bool kd_has_known_layout(kd_target *target)
{
    ULONG theirs[64];

    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        size_t size = 0;
        kd_address address = kd_root(target, layouts[i].name, &size);

        if (address == 0) /* a static program without that part */
            continue;
        if (size != layouts[i].size || size > sizeof(theirs) || !kd_read(target, address, theirs, size) ||
            memcmp(theirs, layouts[i].layout, size) != 0)
            return false;
    }
    return true;
}
