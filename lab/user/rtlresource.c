/* User-mode resources: sharers, owners, conversion, memory freed at once. */
#include <interlock/lab.h>

#include <ntddk.h>

#include <interlock/rtl.h>

#include "rtl/criticalsection.h"

static RTL_RESOURCE resource;
static int data;

static void initialize(void)
{
    RtlpTimeout = 0;
    RtlInitializeResource(&resource);
    RtlSetCriticalSectionSpinCount(&resource.CriticalSection, 0);
}

static void reader(void)
{
    RtlAcquireResourceShared(&resource, TRUE);
    int seen = data;
    LabYield();
    LabAssert(data == seen);
    RtlReleaseResource(&resource);
}

static void writer(void)
{
    RtlAcquireResourceExclusive(&resource, TRUE);
    data += 1;
    RtlReleaseResource(&resource);
}

static void converter(void)
{
    RtlAcquireResourceShared(&resource, TRUE);
    RtlConvertSharedToExclusive(&resource);
    data += 1;
    RtlConvertExclusiveToShared(&resource);
    LabAssert(data >= 1);
    RtlReleaseResource(&resource);
}

static void is_free(void)
{
    LabAssert(resource.NumberOfActive == 0);
    LabAssert(resource.NumberOfWaitingShared == 0 && resource.NumberOfWaitingExclusive == 0);
    LabAssert(resource.ExclusiveOwnerThread == NULL);
}
LAB_SCENARIO(rtl_resource_writers, .Setup = initialize, .Threads = {writer, writer}, .Finish = is_free);
LAB_SCENARIO(rtl_resource_mixed, .Setup = initialize, .Threads = {reader, writer, reader}, .Finish = is_free,
             .Flags = LAB_LARGE);
LAB_SCENARIO(rtl_resource_convert, .Setup = initialize, .Threads = {converter, reader, writer}, .Finish = is_free,
             .Flags = LAB_LARGE);
