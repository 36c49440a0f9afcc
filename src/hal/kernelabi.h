/*
 * kernelabi.h: what hal uses of the kernel's own headers. A second C library (musl-gcc) does not have them; these
 * numbers and structures are the kernel's binary interface and never change.
 */
#ifndef INTERLOCK_KERNELABI_H
#define INTERLOCK_KERNELABI_H

#if __has_include(<linux/futex.h>)

#include <linux/capability.h>
#include <linux/futex.h>
#include <linux/membarrier.h>

#else

#define FUTEX_WAIT             0
#define FUTEX_WAKE             1
#define FUTEX_WAIT_BITSET      9
#define FUTEX_PRIVATE_FLAG     128
#define FUTEX_CLOCK_REALTIME   256
#define FUTEX_BITSET_MATCH_ANY 0xFFFFFFFF

#define MEMBARRIER_CMD_GLOBAL                     (1 << 0)
#define MEMBARRIER_CMD_PRIVATE_EXPEDITED          (1 << 3)
#define MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED (1 << 4)

#define _LINUX_CAPABILITY_VERSION_3 0x20080522
#define _LINUX_CAPABILITY_U32S_3    2
#define CAP_SYS_NICE                23
#define CAP_TO_INDEX(Capability)    ((Capability) >> 5)
#define CAP_TO_MASK(Capability)     (1U << ((Capability) & 31))
struct __user_cap_header_struct {
    unsigned int version;
    int pid;
};
struct __user_cap_data_struct {
    unsigned int effective;
    unsigned int permitted;
    unsigned int inheritable;
};

#endif

#endif
