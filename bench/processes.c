#include "processes.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

void *bench_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        bench_fail("mmap");
    return memory;
}

static void answer_for_ever(bench_pair *pair, unsigned place)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    bench_unbind();
    bench_bind(place);
    for (;;) {
        pair->await(place, 1);
        pair->signal(place, 0);
    }
}

static void start_partner(bench_pair *pair, unsigned place)
{
    if (pair->prepare != NULL)
        pair->prepare(place);
    pair->partner[place] = fork();
    if (pair->partner[place] == 0)
        answer_for_ever(pair, place);
    if (pair->partner[place] < 0)
        bench_fail("fork");
}

uint64_t bench_run_pair(bench_pair *pair, unsigned long count, const bench_row *row)
{
    unsigned place = row->number;
    uint64_t began;

    if (pair->partner[place] == 0)
        start_partner(pair, place);
    began = bench_now();
    for (unsigned long round = 0; round < count; round++) {
        pair->signal(place, 1);
        pair->await(place, 0);
    }
    return bench_now() - began;
}
