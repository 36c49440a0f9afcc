/* main.c: the program that a test becomes. Every scenario runs in a process of its own. */
#include "engine.h"

#include "../posix/program.h"

#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SHORTEST_RATE 0.05 /* seconds: some hosts count processor time by ticks */
#define MAX_CHOSEN 256
#define MAX_JOBS   64
#define MAX_DEPTH  16

#define SCHEDULES     1000000
#define SECONDS       10   /* per scenario, by default */
#define LEAST_SECONDS 0.05 /* even if less is left */

int __wrap_main(int argc, char **argv);

static const char usage[] =
    "usage: %s [options] [scenario...]\n"
    "  --list                 lists the scenarios of this program\n"
    "  --strategy S           portfolio (default), dpor, bounded, pct, random, states (tso: dpor),\n"
    "                         bounded-states (tso: bounded)\n"
    "  --model M              memory model: sc (default), tso (x86), c11 (RC11: all that the memory orders\n"
    "                         allow, except load buffering)\n"
    "  --schedules N          the limit per scenario (default 1000000)\n"
    "  --seconds S            the time per scenario (default 10, or its share of --minutes)\n"
    "  --minutes M            the time for all scenarios: each gets its share of what is left\n"
    "  --preemptions N        bounded, bounded-states: the limit per schedule (default 2)\n"
    "  --precise              interrupts also come before plain accesses outside of the thread's stack\n"
    "  --abstract             waits for events, semaphores and alerts by thread id are single steps, as their own scenarios\n"
    "                         have shown them to be; no alerts, APCs or suspension\n"
    "  --abstract-locks       the acquisition of a spinlock or a lock of the kernel is a single step, and the sleep of a waiting\n"
    "                         thread too, as their own scenarios have shown them to be\n"
    "  --unreduced            bounded, states: also schedules that equal another one up to the order of independent steps\n"
    "  --replays              makes each schedule from its beginning; otherwise from the last state that was saved\n"
    "  --depth D              pct: the depth of bugs to search for (default 3)\n"
    "  --stale N              tso, c11: accesses per schedule behind the newest store (default 3; dpor under c11: any)\n"
    "  --behind N             c11: accesses of a thread in a row behind the same store (default 4; 0: any)\n"
    "  --timeouts N           timeouts per schedule while other threads could run (default 2; 0: any)\n"
    "  --reuse N              allocations per schedule that reuse a freed block (default 0)\n"
    "  --weak-failures N      spurious failures of weak compare-exchanges per schedule (default 0)\n"
    "  --steps N              a longer schedule is cut off (default 20000)\n"
    "  --patience N           a loop that reads the same values waits for a change after N iterations (default 1)\n"
    "  --processors N         of the simulated machine (default 2)\n"
    "  --seed N               of the random strategies\n"
    "  --jobs N               processes that share the work\n"
    "  --replay TOKEN         runs one schedule again and shows it\n"
    "  --strict               a schedule that is cut off is a failure\n"
    "  --calls                shows calls of the library, not the steps inside them\n"
    "  --html FILE            writes the trace of a failure as an HTML page\n"
    "  --checkpoint FILE      searches with dpor alone; FILE.SCENARIO stores the progress, and the same command continues\n"
    "  --brief                reports only the verdict of a failure: no minimised schedule, no trace\n"
    "  --function NAME        explores a function of the program instead of main\n"
    "  --argument WORD        an argument of main\n"
    "  --tap                  output for a test harness\n"
    "  --json FILE            also appends a line with the result of each scenario to it\n"
    "  --ends                 counts the states of memory in which schedules end, for --json: they are the same for every\n"
    "                         exhaustive search\n";

static const char nothing_to_explore[] =
    "lab: there is nothing to explore: no scenario and no main. A scenario is a list of functions that run as threads:\n"
    "    #include <interlock/lab.h>\n"
    "    LAB_SCENARIO(name, .Threads = {function, another});\n"
    "A function of the program can also be named: --function NAME.\n";

const char *const lab_model_names[MODELS] = {"sc", "tso", "c11"};

void lab_set_model(const char *name)
{
    for (int i = 0; i < MODELS; i++) {
        if (strcmp(name, lab_model_names[i]) == 0 || (i == MODEL_C11 && strcmp(name, "rc11") == 0)) {
            lab->options.model = (lab_model)i;
            lab->options.weak = i != MODEL_SC;
            return;
        }
    }
    fprintf(stderr, "lab: unknown memory model %s\n", name);
    exit(2);
}

typedef struct outcome {
    lab_result result;
    volatile int finished;
    int reported; /* in the first outcome: a process has reported the failure */
} outcome;

static outcome *outcomes;
static int host_status; /* how the last process ended */

static lab_strategy parse_strategy(const char *name)
{
    static const char *const names[] = {"portfolio", "dpor", "bounded", "pct", "random", "states", "bounded-states"};

    for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++)
        if (strcmp(names[i], name) == 0)
            return (lab_strategy)i;
    fprintf(stderr, "lab: unknown strategy %s\n", name);
    exit(2);
}

typedef struct arguments {
    int argc;
    char **argv;
    const char *chosen[MAX_CHOSEN];
    unsigned chosen_count;
    unsigned first_number; /* in the output for a test harness; 0: of the first process, which prints the plan */
    bool tap, list, help;
    double minutes; /* 0: no limit */
    const char *token, *processors;
} arguments;

/* A word that names no scenario is a mistake. */
static bool has_all_chosen(const arguments *a)
{
    for (unsigned i = 0; i < a->chosen_count; i++) {
        bool found = false;

        for (const LAB_SCENARIO *const *s = lab_program_scenarios(); *s != NULL; s++)
            found |= fnmatch(a->chosen[i], (*s)->Name, 0) == 0;
        if (!found) {
            fprintf(stderr, "lab: there is no scenario %s (--list names them)\n", a->chosen[i]);
            return false;
        }
    }
    return true;
}

/* The library reads the number of processors when it is loaded, so another number needs a new process. */
static void set_processors(char **argv, const char *count)
{
    const char *now = getenv("INTERLOCK_PROCESSORS");

    if (now != NULL && strcmp(now, count) == 0)
        return;
    setenv("INTERLOCK_PROCESSORS", count, 1);
    execv("/proc/self/exe", argv);
    perror("lab: execv");
    exit(2);
}

static const LAB_SCENARIO *find_scenario(const char *name, size_t length)
{
    for (const LAB_SCENARIO *const *s = lab_program_scenarios(); *s != NULL; s++)
        if (strlen((*s)->Name) == length && strncmp((*s)->Name, name, length) == 0)
            return *s;
    return NULL;
}

static int replay(char **argv, const char *token)
{
    const char *at = strchr(token, '@');
    const char *comma = at != NULL ? strchr(at, ',') : NULL;
    const char *colon = comma != NULL ? strchr(comma, ':') : NULL;
    const LAB_SCENARIO *scenario = at != NULL ? find_scenario(token, (size_t)(at - token)) : NULL;
    char processors[16];

    if (colon == NULL || scenario == NULL) {
        fprintf(stderr, "lab: this token belongs to no scenario of this program\n");
        return 2;
    }
    snprintf(processors, sizeof(processors), "%.*s", (int)strcspn(comma + 2, ",:"), comma + 2);
    set_processors(argv, processors);
    char model[16];
    snprintf(model, sizeof(model), "%.*s", (int)(comma - at - 1), at + 1);
    lab_set_model(model);
    const char *states = strstr(comma, ",states"), *abstract = strstr(comma, ",abstract"), *locks = strstr(comma, ",locks");
    lab->tracking = states != NULL && states < colon;
    lab->options.abstract = abstract != NULL && abstract < colon;
    lab->options.abstract_locks = locks != NULL && locks < colon;
    printf("%s:\n", scenario->Name);
    return lab_replay_run(scenario, colon + 1) ? 1 : 0;
}

bool lab_may_report(void)
{
    int none = 0;
    return __atomic_compare_exchange_n(&outcomes->reported, &none, 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void run_worker(const LAB_SCENARIO *scenario, uint32_t job)
{
    lab->options.show_progress &= job == 0;
    if (lab->options.to_stderr)
        dup2(STDERR_FILENO, STDOUT_FILENO);
    lab->options.job = job;
    lab->options.seed += job;
    lab_explore_scenario(scenario);
    lab_program_unmute();
    outcomes[job].result = lab->result;
    outcomes[job].finished = 1;
    fflush(stdout);
    _exit(0);
}

static void run_workers(const LAB_SCENARIO *scenario, uint32_t jobs)
{
    pid_t workers[MAX_JOBS];
    uint32_t left = jobs;

    memset(outcomes, 0, jobs * sizeof(*outcomes));
    fflush(stdout);
    for (uint32_t job = 0; job < jobs; job++) {
        workers[job] = fork();
        if (workers[job] == 0)
            run_worker(scenario, job);
    }
    if (lab->options.checkpoint != NULL)
        signal(SIGINT, SIG_IGN); /* the workers save first */
    while (left != 0) {
        int status;
        pid_t ended = waitpid(-1, &status, 0);

        host_status = status;

        for (uint32_t job = 0; job < jobs; job++) {
            if (workers[job] != ended)
                continue;
            left--;
            workers[job] = 0;
            /* One failure is enough. */
            if (outcomes[job].finished && outcomes[job].result.verdict != VERDICT_NONE)
                for (uint32_t other = 0; other < jobs; other++)
                    if (workers[other] > 0)
                        kill(workers[other], SIGKILL);
        }
    }
}

static lab_result combine(uint32_t jobs)
{
    lab_result all = outcomes[0].result;

    for (uint32_t job = 1; job < jobs; job++) {
        const lab_result *r = &outcomes[job].result;

        all.schedules += r->schedules;
        all.pruned += r->pruned;
        all.truncated += r->truncated;
        all.steps += r->steps;
        all.exhausted &= r->exhausted;
        all.cut |= r->cut;
        all.abstracted |= r->abstracted;
        all.bound = r->bound < all.bound ? r->bound : all.bound;
        all.seconds = r->seconds > all.seconds ? r->seconds : all.seconds;
        if (r->verdict != VERDICT_NONE && all.verdict == VERDICT_NONE) {
            all.verdict = r->verdict;
            all.found_at = r->found_at;
            all.found_by = r->found_by;
        }
    }
    return all;
}

static const char *describe_extent(const LAB_SCENARIO *scenario, const lab_result *r)
{
    static char text[512];
    char preemptions[48] = "", abstracted[64], limits[400];

    if (!r->exhausted && r->bound < 0)
        return "NOT exhaustive";
    if (!r->exhausted)
        snprintf(preemptions, sizeof(preemptions), " up to %d preemptions", r->bound);
    lab_bounds_describe(scenario, r, limits, sizeof(limits));
    lab_bounds_describe_abstracted(r, abstracted, sizeof(abstracted));
    snprintf(text, sizeof(text), "exhaustive%s%s%s%s%s", r->by_states ? " by states" : "", preemptions,
             abstracted[0] != '\0' ? " over proven " : "", abstracted, limits);
    return text;
}

static unsigned count_threads(const LAB_SCENARIO *scenario)
{
    unsigned count = 0;

    while (count < LAB_MAXIMUM_THREADS && scenario->Threads[count] != NULL)
        count++;
    return count;
}

static void write_json(const LAB_SCENARIO *scenario, const char *model, const lab_result *r)
{
    static const char *const search_names[3][2] = {{"part", "part"}, {"bounded", "bounded-states"}, {"dpor", "states"}};
    FILE *file = fopen(lab->options.json, "a");
    char limits[400], abstracted[64];

    if (file == NULL) {
        perror(lab->options.json);
        exit(2);
    }
    lab_bounds_describe(scenario, r, limits, sizeof(limits));
    bool bounded = !r->exhausted && r->bound >= 0;
    fprintf(file,
            "{\"scenario\": \"%s\", \"threads\": %u, \"model\": \"%s\", \"verdict\": \"%s\", \"search\": \"%s\", "
            "\"preemptions\": %d, \"limits\": \"%s\", \"schedules\": %lu, \"seconds\": %.2f",
            scenario->Name, count_threads(scenario), model, lab_verdict_names[r->verdict],
            search_names[r->exhausted ? 2 : bounded][r->by_states], bounded ? r->bound : -1,
            r->exhausted || bounded ? limits : "", r->schedules + r->pruned, r->seconds);
    if (lab->options.ends)
        fprintf(file, ", \"ends\": %lu, \"ends_hash\": \"%016lx\"", r->ends, r->ends_hash);
    lab_bounds_describe_abstracted(r, abstracted, sizeof(abstracted));
    if (abstracted[0] != '\0')
        fprintf(file, ", \"abstract\": \"%s\"", abstracted);
    fprintf(file, "}\n");
    fclose(file);
}

/* TRUE: as expected. */
static bool run_scenario(const LAB_SCENARIO *scenario, bool tap, unsigned number)
{
    uint32_t jobs = lab->options.jobs;
    const char *model = scenario->Model != NULL ? scenario->Model : lab_model_names[lab->options.model];

    lab->options.verbose = scenario->Expect == NULL && !lab->options.brief;
    lab->options.to_stderr = tap;
    lab->options.show_progress = !tap && isatty(STDERR_FILENO);
    if (!tap)
        printf("%s: ", scenario->Name);
    if (lab->options.verbose && !tap)
        printf("\n");
    run_workers(scenario, jobs);
    lab_result r = combine(jobs);
    bool ended = false;
    for (uint32_t job = 0; job < jobs; job++)
        ended |= outcomes[job].finished != 0;
    const char *wanted = scenario->Expect != NULL ? scenario->Expect : lab_verdict_names[VERDICT_NONE];
    bool good = ended && strcmp(wanted, lab_verdict_names[r.verdict]) == 0;
    char text[768], rate[48] = "";
    if (r.seconds >= SHORTEST_RATE)
        snprintf(rate, sizeof(rate), ", %.0f schedules/s", (double)(r.schedules + r.pruned) / r.seconds);
    if (!ended)
        snprintf(text, sizeof(text), "the explorer itself failed (status %#x)", host_status);
    else if (r.verdict != VERDICT_NONE)
        snprintf(
            text, sizeof(text), "%s%s after %lu schedules (%s)%s%s", scenario->Expect == NULL ? "FAILED: " : "",
            lab_verdict_names[r.verdict], r.found_at, r.found_by,
            good || scenario->Expect == NULL ? "" : ", but expected: ", good || scenario->Expect == NULL ? "" : wanted);
    else
        snprintf(text, sizeof(text), "%s, %lu schedules%s", describe_extent(scenario, &r), r.schedules,
                 good ? "" : ", but a failure was expected");
    if (tap)
        printf("%s %u - %s: %s\n", good ? "ok" : "not ok", number, scenario->Name, text);
    else
        printf("  %s%s, %lu pruned, %lu cut off, %.1f steps each, %.2f s%s, model %s%s\n",
               good && scenario->Expect != NULL ? "as expected: " : "", text, r.pruned, r.truncated,
               (double)r.steps / (double)(r.schedules + r.pruned + 1e-9), r.seconds, rate, model, strcmp(model, lab_model_names[MODEL_C11]) == 0 ? " (no load buffering)" : "");
    fflush(stdout);
    if (lab->options.json != NULL && ended)
        write_json(scenario, model, &r);
    return good;
}

static bool has_other_processors(const LAB_SCENARIO *scenario)
{
    return scenario->Processors != 0 && scenario->Processors != strtoul(getenv("INTERLOCK_PROCESSORS"), NULL, 10);
}

/* The library reads the number of processors when it is loaded: a new process, with the same options. */
static bool run_with_other_processors(const arguments *a, const LAB_SCENARIO *scenario, unsigned number)
{
    const char *argv[MAX_CHOSEN];
    char processors[16], first[16], seconds[32];
    int count = 0, status;

    snprintf(processors, sizeof(processors), "%u", scenario->Processors);
    snprintf(first, sizeof(first), "%u", number);
    snprintf(seconds, sizeof(seconds), "%.3f", lab->options.seconds);
    for (int i = 0; i < a->argc && count < MAX_CHOSEN - 12; i++) {
        bool chosen = false;
        for (unsigned c = 0; c < a->chosen_count; c++)
            chosen |= a->chosen[c] == a->argv[i];
        if (!chosen)
            argv[count++] = a->argv[i];
    }
    const char *const more[] = {"--processors", processors, "--first-number", first, "--minutes", "0",
                                "--seconds",    seconds,    scenario->Name,   NULL};
    memcpy(&argv[count], more, sizeof(more));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setenv("INTERLOCK_PROCESSORS", processors, 1);
        execv("/proc/self/exe", (char **)(void *)argv);
        _exit(2);
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void default_options(lab_options *o)
{
    *o = (lab_options){
        .strategy = STRATEGY_PORTFOLIO,
        .preemptions = 2,
        .depth = 3,
        .stale = DEFAULT_LIMIT,
        .timeouts = 2,
        .behind = 4,
        .jobs = 1,
        .seed = 1,
        .schedules = SCHEDULES,
        .max_steps = 20000,
        .patience = 1,
    };
}

static void __attribute__((noreturn)) refuse(const char *what, const char *text)
{
    fprintf(stderr, "lab: %s is not %s\n", text, what);
    exit(2);
}

static uint64_t large_number(const char *text)
{
    char *end;
    uint64_t value = strtoull(text, &end, 10);

    if (end == text || *end != '\0')
        refuse("a number", text);
    return value;
}

static uint32_t number(const char *text)
{
    return (uint32_t)large_number(text);
}

static double seconds(const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end != '\0')
        refuse("a number", text);
    return value;
}

/* An option with a value. FALSE: no option has that name. */
static bool take_option(arguments *a, const char *name, const char *value)
{
    static const char *const options[] = {"--preemptions", "--depth", "--stale", "--timeouts", "--weak-failures", "--steps",
                                          "--patience", "--jobs", "--first-number", "--strategy", "--model", "--schedules",
                                          "--seconds", "--minutes", "--seed", "--processors", "--replay", "--function",
                                          "--argument", "--html", "--checkpoint", "--json", "--behind", "--reuse"};
    bool known = false;

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
        known |= strcmp(name, options[i]) == 0;
    if (!known || value == NULL) {
        fprintf(stderr, known ? "lab: the option %s needs a value\n" : "lab: there is no option %s (--help names them)\n", name);
        return false;
    }
    lab_options *o = &lab->options;
    const struct {
        const char *name;
        uint32_t *target;
    } numbers[] = {
        {"--preemptions", &o->preemptions},
        {"--depth", &o->depth},
        {"--stale", &o->stale},
        {"--behind", &o->behind},
        {"--timeouts", &o->timeouts},
        {"--reuse", &o->reuses},
        {"--weak-failures", &o->weak_failures},
        {"--steps", &o->max_steps},
        {"--patience", &o->patience},
        {"--jobs", &o->jobs},
    };

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            bool limits = numbers[i].target == &o->stale || numbers[i].target == &o->behind ||
                          numbers[i].target == &o->timeouts;
            *numbers[i].target = limits && number(value) == 0 ? UNLIMITED : number(value);
            return true;
        }
    }
    if (strcmp(name, "--first-number") == 0)
        a->first_number = number(value);
    else if (strcmp(name, "--strategy") == 0)
        o->strategy = parse_strategy(value);
    else if (strcmp(name, "--model") == 0)
        lab_set_model(value);
    else if (strcmp(name, "--schedules") == 0)
        o->schedules = large_number(value);
    else if (strcmp(name, "--seconds") == 0)
        o->seconds = seconds(value);
    else if (strcmp(name, "--minutes") == 0)
        a->minutes = seconds(value);
    else if (strcmp(name, "--seed") == 0)
        o->seed = large_number(value);
    else if (strcmp(name, "--processors") == 0)
        a->processors = value;
    else if (strcmp(name, "--function") == 0)
        lab_program_add_function(value);
    else if (strcmp(name, "--argument") == 0)
        lab_program_add_argument(value);
    else if (strcmp(name, "--checkpoint") == 0)
        o->checkpoint = value;
    else if (strcmp(name, "--html") == 0)
        o->html = value;
    else if (strcmp(name, "--json") == 0)
        o->json = value;
    else if (strcmp(name, "--replay") == 0)
        a->token = value;
    else
        return false;
    return true;
}

static bool take_arguments(arguments *a, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--list") == 0)
            a->list = true;
        else if (strcmp(argv[i], "--ends") == 0)
            lab->options.ends = true;
        else if (strcmp(argv[i], "--precise") == 0)
            lab->options.precise = true;
        else if (strcmp(argv[i], "--abstract") == 0)
            lab->options.abstract = true;
        else if (strcmp(argv[i], "--abstract-locks") == 0)
            lab->options.abstract_locks = true;
        else if (strcmp(argv[i], "--unreduced") == 0)
            lab->options.unreduced = true;
        else if (strcmp(argv[i], "--replays") == 0)
            lab->options.replays = true;
        else if (strcmp(argv[i], "--strict") == 0)
            lab->options.strict = true;
        else if (strcmp(argv[i], "--brief") == 0)
            lab->options.brief = true;
        else if (strcmp(argv[i], "--tap") == 0)
            a->tap = true;
        else if (strcmp(argv[i], "--calls") == 0)
            lab->options.calls = true;
        else if (strcmp(argv[i], "--help") == 0)
            a->help = true;
        else if (argv[i][0] != '-' && a->chosen_count < MAX_CHOSEN)
            a->chosen[a->chosen_count++] = argv[i];
        else if (!take_option(a, argv[i], i + 1 < argc ? argv[i + 1] : NULL))
            return false;
        else
            i++;
    }
    return true;
}

static void limit_options(lab_options *o, double minutes)
{
    o->jobs = o->jobs == 0 || o->jobs > MAX_JOBS ? 1 : o->jobs;
    o->depth = o->depth > MAX_DEPTH ? MAX_DEPTH : o->depth;
    o->max_steps = o->max_steps > MAX_STEPS - 64 ? MAX_STEPS - 64 : o->max_steps;
    o->patience = o->patience == 0 ? 1 : o->patience;
    if (lab_compares_states(o->strategy))
        o->jobs = 1; /* each would visit all states */
    if (o->checkpoint != NULL) { /* random schedules are not in the tree */
        o->strategy = STRATEGY_DPOR;
        o->schedules = o->schedules == SCHEDULES ? UINT64_MAX : o->schedules;
        o->seconds = o->seconds <= 0 ? 1e9 : o->seconds;
    }
    if (o->seconds <= 0)
        o->seconds = minutes > 0 ? minutes * 60 : SECONDS;
}

static bool is_chosen(const arguments *a, const char *name)
{
    bool chosen = a->chosen_count == 0;

    for (unsigned i = 0; i < a->chosen_count; i++)
        chosen |= fnmatch(a->chosen[i], name, 0) == 0;
    return chosen;
}

static unsigned count_chosen(const arguments *a)
{
    unsigned count = 0;

    for (const LAB_SCENARIO *const *s = lab_program_scenarios(); *s != NULL; s++)
        count += is_chosen(a, (*s)->Name);
    return count;
}

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The unused share of a scenario goes to those after it. */
static double share(const arguments *a, double most, double until, unsigned left)
{
    double seconds = (until - seconds_now()) / left;

    if (a->minutes <= 0 || seconds > most)
        return most;
    return seconds > LEAST_SECONDS ? seconds : LEAST_SECONDS;
}

/* The number of scenarios that were not as expected. */
static unsigned run_scenarios(const arguments *a)
{
    unsigned count = 0, bad = 0, chosen = count_chosen(a);
    double most = lab->options.seconds, until = seconds_now() + a->minutes * 60;

    for (const LAB_SCENARIO *const *s = lab_program_scenarios(); *s != NULL; s++)
        if (is_chosen(a, (*s)->Name)) {
            lab->options.seconds = share(a, most, until, chosen - count);
            unsigned own = (a->first_number != 0 ? a->first_number : 1) + count++;
            bad += !(has_other_processors(*s) ? run_with_other_processors(a, *s, own) : run_scenario(*s, a->tap, own));
        }
    if (a->tap && a->first_number == 0)
        printf("1..%u\n", count);
    return count == 0 ? 1 : bad;
}

/* The linker gives it the name main, and the program's own main the name __real_main (--wrap). */
int __wrap_main(int argc, char **argv)
{
    arguments a = {.argc = argc, .argv = argv, .processors = getenv("INTERLOCK_PROCESSORS")};

    lab_memory_initialize();
    lab->started = true;
    lab_program_begin(argv[0]);
    default_options(&lab->options);
    if (!take_arguments(&a, argc, argv))
        return 2;
    if (a.help) {
        printf(usage, getenv("INTERLOCK_LAB_PROGRAM") != NULL ? "interlock lab FILE..." : argv[0]);
        return 0;
    }
    limit_options(&lab->options, a.minutes);
    lab_program_scenarios();
    if (a.token != NULL)
        return replay(argv, a.token);
    set_processors(argv, a.processors != NULL ? a.processors : "2");
    outcomes = mmap(NULL, MAX_JOBS * sizeof(*outcomes), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (lab_program_scenarios()[0] == NULL) {
        fputs(nothing_to_explore, stderr);
        return 2;
    }
    if (!has_all_chosen(&a))
        return 2;
    if (a.list) {
        for (const LAB_SCENARIO *const *s = lab_program_scenarios(); *s != NULL; s++)
            printf("%s\n", (*s)->Name);
        return 0;
    }
    return run_scenarios(&a) != 0;
}
