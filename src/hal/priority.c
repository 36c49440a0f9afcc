/*
 * priority.c: NT priorities on the host's scheduler. 16 to 31 are SCHED_FIFO 1 to 16. 0 to 15 are nice values, two
 * steps for each level; 8 is the nice value that the process started with. The host changes policy and nice value in
 * one call, so a refusal leaves the thread as it was.
 */
#include "halp.h"

#include <errno.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NORMAL_PRIORITY 8
#define LOW_REALTIME_PRIORITY 16
#define HIGH_PRIORITY 31
#define NICE_STEPS 2
#define LOWEST_NICE (-20)
#define HIGHEST_NICE 19

/* The host's struct sched_attr, first version; not every C library declares it. */
typedef struct _HALP_SCHEDULING {
    UINT32 Size;
    UINT32 Policy;
    UINT64 Flags;
    INT32 Nice;
    UINT32 Priority;
    UINT64 Runtime;
    UINT64 Deadline;
    UINT64 Period;
} HALP_SCHEDULING;

static int HalpBaseNice;

VOID HalpInitializePriorities(VOID)
{
    HalpBaseNice = getpriority(PRIO_PROCESS, 0);
}

static INT32 HalpNiceFromPriority(LONG NtPriority)
{
    LONG Nice = HalpBaseNice + (NORMAL_PRIORITY - NtPriority) * NICE_STEPS;

    return Nice < LOWEST_NICE ? LOWEST_NICE : Nice > HIGHEST_NICE ? HIGHEST_NICE : Nice;
}

static BOOLEAN HalpHasNiceCapability(VOID)
{
    struct __user_cap_header_struct Header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct Data[_LINUX_CAPABILITY_U32S_3] = {{0}};

    return syscall(SYS_capget, &Header, Data) == 0 &&
           (Data[CAP_TO_INDEX(CAP_SYS_NICE)].effective & CAP_TO_MASK(CAP_SYS_NICE)) != 0;
}

static BOOLEAN HalpMayReachNice(INT32 Nice)
{
    struct rlimit Limit;

    if (getrlimit(RLIMIT_NICE, &Limit) == 0 && Limit.rlim_cur >= (rlim_t)(20 - Nice)) {
        return TRUE;
    }
    return HalpHasNiceCapability();
}

BOOLEAN HalSetThreadPriority(ULONG ThreadId, LONG NtPriority)
{
    HALP_HOST_CALLS;
    HALP_SCHEDULING Current = {0};
    HALP_SCHEDULING New = {.Size = sizeof(New)};

    if (NtPriority < 0 || NtPriority > HIGH_PRIORITY ||
        syscall(SYS_sched_getattr, ThreadId, &Current, sizeof(Current), 0) != 0) {
        return FALSE;
    }
    if (NtPriority >= LOW_REALTIME_PRIORITY) {
        New.Policy = SCHED_FIFO;
        New.Priority = (UINT32)(NtPriority - LOW_REALTIME_PRIORITY + 1);
    } else {
        New.Policy = SCHED_OTHER;
        New.Nice = HalpNiceFromPriority(NtPriority);
        /* Whoever may not raise it again later must not lower it. */
        if (New.Nice > Current.Nice && !HalpMayReachNice(Current.Nice)) {
            return FALSE;
        }
    }
    return syscall(SYS_sched_setattr, ThreadId, &New, 0) == 0;
}
