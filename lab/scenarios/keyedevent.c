/* Keyed events: a release and a wait pair, even if the wait times out at that moment. */
#include <interlock/lab.h>

#include "ex/exp.h"

static EX_KEYED_EVENT keyed;
static int key DECLSPEC_ALIGN(2);
static NTSTATUS waited, released;

static void setup(void)
{
    ExpInitializeKeyedEvent(&keyed);
}

static void waiter(void)
{
    LabAssert(ExpWaitForKeyedEvent(&keyed, &key, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
}

static void releaser(void)
{
    LabAssert(ExpReleaseKeyedEvent(&keyed, &key, KernelMode, FALSE, NULL) == STATUS_SUCCESS);
}
LAB_SCENARIO(keyed_event_meet, .Setup = setup, .Threads = {waiter, releaser});

static void timed_waiter(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    waited = ExpWaitForKeyedEvent(&keyed, &key, KernelMode, FALSE, &timeout);
}

static void timed_releaser(void)
{
    LARGE_INTEGER timeout = {.QuadPart = -10000};
    released = ExpReleaseKeyedEvent(&keyed, &key, KernelMode, FALSE, &timeout);
}

/* Both paired, or neither did. */
static void agree(void)
{
    LabAssert(waited == released);
}
LAB_SCENARIO(keyed_event_timeouts, .Setup = setup, .Threads = {timed_waiter, timed_releaser}, .Finish = agree);
