/* An idle process does not wake up. This is a test because it counts wakeups and measures no time. */
#include "idle.h"

#include <stdio.h>

#include "bench.h"

/* In this program nothing else is measured. */
void bench_register(bench_contenders *contenders)
{
    (void)contenders;
}

void bench_add_value(const char *family, bench_side side, const char *contender, double target, bench_value *value)
{
    (void)family;
    (void)side;
    (void)contender;
    (void)target;
    (void)value;
}

int main(void)
{
    bench_platform_begin();
    idle_ignore_present();
    idle_counts counts = idle_interlock();
    /* The expiration in progress when counting began, and the one in progress when it ended. */
    unsigned most = counts.expirations + 2;

    printf("# %u waiters, %u expirations, wakeups: %lu of waiters, %lu of other threads\n", counts.waiters,
           counts.expirations, counts.of_waiters, counts.of_others);
    printf("%s 1 - no waiter wakes up\n", counts.of_waiters == 0 ? "ok" : "not ok");
    printf("%s 2 - the timer expires, with one wakeup for each time\n",
           counts.expirations != 0 && counts.of_others <= most ? "ok" : "not ok");
    printf("1..2\n");
    return 0;
}
