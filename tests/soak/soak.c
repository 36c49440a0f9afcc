/* soak.c: the program. It starts the threads, watches their progress, and checks the counts at the end of the run. */
#include "soak.h"

#include <getopt.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define KEEPER_MILLISECONDS 5
#define LINE_SECONDS        10
#define STUCK_SECONDS       60

static ULONGLONG start;
static volatile LONG rounds; /* of the keeper, the main thread */
static volatile LONG nothing_left_to_watch;

static unsigned elapsed(void)
{
    return (unsigned)((GetTickCount64() - start) / 1000);
}

static ULONG handle_count(void)
{
    ULONG count = 0;

    require(NtQueryInformationProcess(GetCurrentProcess(), ProcessHandleCount, &count, sizeof(count), NULL) == 0);
    return count;
}

/* Hangs. */

static void run_command(const char *view, int process)
{
    char line[512];

    if (soak.command == NULL)
        return;
    snprintf(line, sizeof(line), "'%s' %s %d >&2", soak.command, view, process);
    fprintf(stderr, "--- interlock %s\n", view);
    if (system(line) != 0)
        fprintf(stderr, "(interlock %s failed)\n", view);
}

void show_waits(int process)
{
    run_command("threads --stack", process);
    run_command("locks", process);
}

static _Noreturn void report_hang(const char *what)
{
    fflush(stdout);
    fprintf(stderr, "no progress in %u s: %s (seed %llu)\n", STUCK_SECONDS * test_slowdown(), what,
            (unsigned long long)soak.seed);
    show_waits(getpid());
    watchdog_start(0); /* prints the stacks of all threads and aborts */
    for (;;)
        sleep(1);
}

typedef struct progress {
    unsigned long seen;
    unsigned since;
} progress;

static void expect_progress(progress *of, unsigned long now, const char *name)
{
    if (now != of->seen) {
        of->seen = now;
        of->since = elapsed();
    } else if (elapsed() - of->since > STUCK_SECONDS * test_slowdown()) {
        report_hang(name);
    }
}

/* Every family must make progress while workers run, the keeper until the end of the run. */
static void look_for_hangs(void)
{
    static progress families[256], keeper;
    const char *stuck = workers_stuck(STUCK_SECONDS * test_slowdown());

    require(soak_family_count <= ARRAYSIZE(families));
    if (stuck != NULL)
        report_hang(stuck);
    for (unsigned i = 0; i < soak_family_count && !load(&soak_over); i++)
        if (soak_is_chosen(i))
            expect_progress(&families[i], soak_steps(i), soak_families[i]->name);
    expect_progress(&keeper, (unsigned long)load(&rounds), "the keeper of the workers");
}

/* Output. */

static unsigned long all_steps(void)
{
    unsigned long sum = 0;

    for (unsigned i = 0; i < soak_family_count; i++)
        sum += soak_steps(i);
    return sum;
}

static void print_line(void)
{
    printf("%5u s  %lu steps, %lu workers, %lu forks;", elapsed(), all_steps(), workers_begun(), forks_done());
    for (unsigned i = 0; i < soak_family_count; i++)
        printf(" %s %lu", soak_families[i]->name, soak_steps(i));
    printf("\n");
    fflush(stdout);
}

static void print_table(void)
{
    unsigned seconds = elapsed() != 0 ? elapsed() : 1;

    printf("\n%-24s %12s %10s\n", "family", "steps", "a second");
    for (unsigned i = 0; i < soak_family_count; i++)
        printf("%-24s %12lu %10lu\n", soak_families[i]->name, soak_steps(i), soak_steps(i) / seconds);
    printf("%-24s %12lu %10lu\n\n", "all", all_steps(), all_steps() / seconds);
    disturbers_report();
    printf("%lu forks, %lu allocations refused\n", forks_done(), heap_refusals());
}

/* The run. */

/* The keeper allocates as workers do, so it pauses with them. */
static void keep(test_random *random)
{
    struct timespec pause = {.tv_nsec = 1000000L * KEEPER_MILLISECONDS};

    stand_still_begin();
    workers_keep(random);
    stand_still_end();
    nanosleep(&pause, NULL);
    add(&rounds, 1);
}

static void run(void)
{
    test_random random;

    random_seed(&random, soak.seed);
    while (elapsed() < soak.seconds)
        keep(&random);
    store(&soak_over, 1);
    forks_join();
    disturbers_join();
    workers_stop();
    while (!workers_have_ended())
        keep(&random);
}

static void *watch(void *unused)
{
    struct timespec pause = {.tv_nsec = 100000000};
    unsigned line = LINE_SECONDS;

    while (!load(&nothing_left_to_watch)) {
        nanosleep(&pause, NULL);
        look_for_hangs();
        if (elapsed() >= line) {
            print_line();
            line += LINE_SECONDS;
        }
    }
    return unused;
}

static void soak_all(void)
{
    pthread_t watcher;
    ULONG handles;

    WaitForSingleObject(GetCurrentProcess(), 0); /* so that what the library creates once exists before handles are
                                                    counted */
    handles = handle_count();
    for (unsigned i = 0; i < soak_family_count; i++)
        if (soak_families[i]->setup != NULL)
            soak_families[i]->setup();
    workers_start();
    require(pthread_create(&watcher, NULL, watch, NULL) == 0);
    disturbers_start();
    forks_start();
    run();
    store(&nothing_left_to_watch, 1);
    require(pthread_join(watcher, NULL) == 0);
    print_table();
    workers_check();
    disturbers_check();
    for (unsigned i = 0; i < soak_family_count; i++)
        if (soak_families[i]->check != NULL)
            soak_families[i]->check();
    require(handle_count() == handles);
}

static _Noreturn void usage(const char *program)
{
    fprintf(stderr,
            "usage: %s [--seconds N] [--seed N] [--workers N] [--family NAME] [--interlock COMMAND]\n"
            "Mixes every primitive for so many seconds; ends with 0 if everything added up. The same seed makes the\n"
            "same choices; the order of the threads is up to the host. COMMAND shows the locks of a run that hangs.\n",
            program);
    exit(2);
}

static uint64_t number(const char *text, const char *program)
{
    char *end;
    uint64_t value = strtoull(text, &end, 0);

    if (end == text || *end != '\0')
        usage(program);
    return value;
}

static bool is_a_family(void)
{
    for (unsigned i = 0; i < soak_family_count; i++)
        if (soak_is_chosen(i))
            return true;
    return false;
}

static void read_options(int count, char **arguments)
{
    static const struct option options[] = {
        {"seconds", required_argument, NULL, 's'},   {"seed", required_argument, NULL, 'r'},
        {"workers", required_argument, NULL, 'w'},   {"family", required_argument, NULL, 'f'},
        {"interlock", required_argument, NULL, 'i'}, {NULL, 0, NULL, 0}};
    int option;

    soak.seed = (uint64_t)time(NULL) * 1000 + (uint64_t)getpid();
    while ((option = getopt_long(count, arguments, "", options, NULL)) != -1) {
        if (option == 's')
            soak.seconds = (unsigned)number(optarg, arguments[0]);
        else if (option == 'r')
            soak.seed = number(optarg, arguments[0]);
        else if (option == 'w')
            soak.workers = (unsigned)number(optarg, arguments[0]);
        else if (option == 'f')
            soak.family = optarg;
        else if (option == 'i')
            soak.command = optarg;
        else
            usage(arguments[0]);
    }
    if (optind != count || soak.workers == 0 || !is_a_family())
        usage(arguments[0]);
}

int main(int count, char **arguments)
{
    read_options(count, arguments);
    start = GetTickCount64();
    printf("soak: seed %llu, %u workers, %u s, %u families\n", (unsigned long long)soak.seed, soak.workers,
           soak.seconds, soak_family_count);
    fflush(stdout);
    soak_all();
    printf("soak: all counts add up after %u s (seed %llu)\n", elapsed(), (unsigned long long)soak.seed);
    return 0;
}
