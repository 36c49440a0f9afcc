/* neighbours.h: two words whose waiters are in one bucket of the hash. */
#ifndef LAB_NEIGHBOURS_H
#define LAB_NEIGHBOURS_H

#include <interlock/lab.h>

#include "rtl/rtlp.h"

/* The hash spreads consecutive words evenly: this many of them include one in a given bucket, wherever they begin. */
#define NEIGHBOURS_CANDIDATES (16 * EXP_WAITER_BUCKETS)

static volatile ULONG *first, *second;

static PEXP_WAITER_BUCKET bucket_of(volatile ULONG *address)
{
    EXP_WAIT_KEY key = RtlpWaitKey(address, RtlpAddressWait);
    return ExpBucketOf(&key);
}

static void find_neighbours(void)
{
    static volatile ULONG words[NEIGHBOURS_CANDIDATES];
    first = second = &words[0];
    do {
        second += 1;
        LabAssert(second != &words[NEIGHBOURS_CANDIDATES]);
    } while (bucket_of(second) != bucket_of(first));
}

#endif
