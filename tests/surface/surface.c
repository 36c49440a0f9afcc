#include "surface.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "everything.h"

enum { BATCH = 40, WINDOW = 0x10000 };

/* Mistakes that the test must find. */

static uint64_t planted_hang(void)
{
    while (pause() != 0)
        continue;
    return 0;
}

static uint64_t planted_crash(void)
{
    return *(volatile uint64_t *)(uintptr_t)0x123450000;
}

static uint64_t planted_stop(void)
{
    KeBugCheck(MANUALLY_INITIATED_CRASH);
    return 0;
}

static uint64_t planted_trust(uint64_t pointer)
{
    return *(volatile uint8_t *)(uintptr_t)pointer != 0;
}

static uint64_t planted_accept(void)
{
    return STATUS_SUCCESS;
}

static uint64_t planted_leak(void)
{
    CreateEventW(NULL, FALSE, FALSE, NULL);
    return (uint32_t)STATUS_UNSUCCESSFUL;
}

static uint64_t planted_end(void)
{
    _exit(0);
}

static uint64_t planted_errno(void)
{
    errno = ENOENT;
    return 0;
}

static uint64_t planted_service(void)
{
    *service_depth() += 1;
    return 0;
}

static uint64_t planted_unsound(void)
{
    atexit(abort);
    return 0;
}

#define FUNCTION(name, layer, result, kinds)                                                                           \
    {#name, (void (*)(void))name, LAYER_##layer, RESULT_##result, kinds, 0, {""}, 0, 0},
struct function functions[] = {
#include "functions.def"
    FUNCTION(planted_hang, planted, status, "") FUNCTION(planted_crash, planted, status, "")
        FUNCTION(planted_stop, planted, status, "") FUNCTION(planted_trust, planted, status, "void*")
            FUNCTION(planted_accept, planted, status, "handle") FUNCTION(planted_leak, planted, status, "")
                FUNCTION(planted_end, planted, status, "") FUNCTION(planted_errno, planted, status, "")
                    FUNCTION(planted_service, planted, status, "") FUNCTION(planted_unsound, planted, status, "")};
#undef FUNCTION

static const char *const planted_findings[] = {
    "hangs",  "faults", "bugcheck", "faults", "accepts the handle", "failed and left a handle", "ends the process",
    "changes errno", "leaves the thread in a service"};

enum { PLANTED = sizeof(planted_findings) / sizeof(planted_findings[0]) + 1 };

const unsigned function_count = sizeof(functions) / sizeof(functions[0]) - PLANTED;

static const char *const layer_names[LAYERS] = {"kernel", "runtime", "services", "Win32", "planted"};
static struct record *records;
static unsigned made[LAYERS], outcomes[LAYERS][HUNG + 1], failures[LAYERS];

static void number_calls(void)
{
    unsigned first = 0;
    struct plan plan;

    for (unsigned i = 0; i < function_count + PLANTED; i++) {
        split_kinds(&functions[i]);
        functions[i].first = first;
        while (plan_call(&functions[i], functions[i].calls, &plan))
            functions[i].calls++;
        first += functions[i].calls;
    }
    records = mmap(NULL, first * sizeof(*records), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (records == MAP_FAILED)
        abort();
}

/* The check of an outcome: NULL, or what is wrong with it. */

static const char *judge_return(const struct function *function, const struct plan *plan, const struct record *record)
{
    bool bad_handle = plan->fault == FAULT_HANDLE || plan->fault == FAULT_TYPE;

    if (record->host_error != UNTOUCHED_HOST_ERROR && (allowed_for(function) & SETS_ERRNO) == 0)
        return "changes errno";
    if (record->in_service)
        return "leaves the thread in a service";
    if (has_failed(function, record->result) && (int32_t)record->handles > 0)
        return "failed and left a handle";
    if (!bad_handle || (allowed_for(function) & TAKES_ANY) != 0 || function->result < RESULT_status)
        return NULL;
    if (strcmp(function->kind[plan->parameter], "id") == 0)
        return NULL;
    if (!has_failed(function, record->result))
        return "accepts the handle";
    if (function->layer == LAYER_win32 && record->error == UNTOUCHED)
        return "fails without a last error";
    return NULL;
}

static bool is_near_null(const struct record *record)
{
    return !record->general && record->address + WINDOW < 2 * (uint64_t)WINDOW;
}

/* Processors other than x86 insist on aligned words. */
static bool is_at_odd_address(const struct plan *plan, const struct record *record)
{
    return plan->fault == FAULT_MISALIGNED && record->signal == SIGBUS && record->address % 2 != 0;
}

static const char *judge_fault(const struct function *function, const struct plan *plan, const struct record *record)
{
    if (record->signal != SIGSEGV && record->signal != SIGBUS)
        return "ends by a signal";
    if (is_near_null(record) && may_fault(function, plan))
        return NULL;
    if (is_at_odd_address(plan, record) && trusts_pointers(function))
        return NULL;
    return trusts_pointers(function) ? "faults elsewhere" : "faults";
}

static const char *judge(const struct function *function, const struct plan *plan, const struct record *record)
{
    switch (record->outcome) {
    case RETURNED:
        return judge_return(function, plan, record);
    case SKIPPED:
        return NULL;
    case FAULTED:
        return judge_fault(function, plan, record);
    case STOPPED:
        return may_stop(function, (uint32_t)record->address) ? NULL : "bugcheck";
    case ENDED:
        return (allowed_for(function) & MAY_END) != 0 ? NULL : "ends the process";
    case HUNG:
        return "hangs";
    default:
        return "was not made";
    }
}

static void report(const struct function *function, const struct plan *plan, const struct record *record,
                   const char *wrong)
{
    static const char *const words[] = {"not made", "begun", "returned", "skipped", "fault", "stop", "end", "hang"};

    printf("# %s(%s): ", function->name, function->kinds);
    if (plan->parameter < function->parameters)
        printf("%u %s ", plan->parameter + 1, function->kind[plan->parameter]);
    printf("%s: %s (%s signal %d address %#" PRIx64 "%s parameter %#" PRIx64 " result %#" PRIx64
           " error %u handles %d errno %d)\n",
           plan->description, wrong, words[record->outcome], record->signal, record->address,
           record->general ? "?" : "", record->parameter, record->result, record->error, (int)record->handles,
           record->host_error);
}

static void judge_function(const struct function *function)
{
    struct plan plan;

    for (unsigned n = 0; plan_call(function, n, &plan); n++) {
        const struct record *record = &records[function->first + n];
        const char *wrong = judge(function, &plan, record);

        made[function->layer] += record->outcome != SKIPPED;
        outcomes[function->layer][record->outcome]++;
        if (wrong != NULL) {
            failures[function->layer]++;
            report(function, &plan, record, wrong);
        }
    }
}

/* All calls of the functions from first to last, in as many processes as it takes; false if one was unsound at its end.
 */
static bool run_batch(unsigned first, unsigned last)
{
    struct progress progress = {first, 0};

    for (;;) {
        while (progress.function <= last && progress.number >= functions[progress.function].calls)
            progress = (struct progress){progress.function + 1, 0};
        if (progress.function > last)
            return true;
        switch (run_child(&progress, last, records)) {
        case CHILD_DONE:
            return true;
        case CHILD_UNSOUND:
            return false;
        default:
            break;
        }
    }
}

static void blame(unsigned first, unsigned last)
{
    bool found = false;

    for (unsigned i = first; i <= last; i++) {
        if (!run_batch(i, i)) {
            found = true;
            failures[functions[i].layer]++;
            printf("# %s leaves the process unsound\n%s\n", functions[i].name, child_output());
        }
    }
    if (!found) {
        failures[functions[first].layer]++;
        run_batch(first, last);
        printf("# %s to %s together leave the process unsound\n%s\n", functions[first].name, functions[last].name,
               child_output());
    }
}

/* Each planted mistake is found, the last one at the end of the process. */
static bool find_planted(void)
{
    struct plan plan;
    unsigned found = 0;

    for (unsigned i = 0; i < PLANTED; i++) {
        const struct function *function = &functions[function_count + i];
        bool sound = run_batch(function_count + i, function_count + i);
        const char *wrong = NULL;

        for (unsigned n = 0; wrong == NULL && plan_call(function, n, &plan); n++)
            wrong = judge(function, &plan, &records[function->first + n]);
        if (i == PLANTED - 1 ? !sound && wrong == NULL
                             : sound && wrong != NULL && strcmp(wrong, planted_findings[i]) == 0)
            found++;
        else
            printf("# %s: %s, %s\n", function->name, sound ? "sound" : "unsound", wrong != NULL ? wrong : "fine");
    }
    return found == PLANTED;
}

static void run_all(void)
{
    for (unsigned first = 0; first < function_count; first += BATCH) {
        unsigned last = first + BATCH <= function_count ? first + BATCH - 1 : function_count - 1;

        if (!run_batch(first, last))
            blame(first, last);
    }
}

static void run_one(const char *name)
{
    for (unsigned i = 0; i < function_count; i++) {
        if (strcmp(name, functions[i].name) == 0) {
            printf("# %s\n", run_batch(i, i) ? "sound" : "unsound");
            judge_function(&functions[i]);
            puts(child_output());
        }
    }
}

/* With the name of a function, only that one and what it wrote. */
int main(int argc, char **argv)
{
    bool good = true;

    number_calls();
    if (rule_without_function() != 0) {
        printf("Bail out! there is a rule for %s, which is no function\n", rule_name(rule_without_function() - 1));
        return 1;
    }
    if (argc > 1) {
        run_one(argv[1]);
        return 0;
    }
    good = find_planted();
    printf("1..%d\n%sok 1 - planted mistakes are found\n", LAYERS, good ? "" : "not ");
    run_all();
    for (unsigned i = 0; i < function_count; i++)
        judge_function(&functions[i]);
    for (unsigned layer = 0; layer < LAYER_planted; layer++) {
        printf("%sok %u - %s: %u calls: %u returned, %u faulted where the caller said, %u stopped, %u ended\n",
               failures[layer] == 0 ? "" : "not ", layer + 2, layer_names[layer], made[layer],
               outcomes[layer][RETURNED], outcomes[layer][FAULTED], outcomes[layer][STOPPED], outcomes[layer][ENDED]);
        good = good && failures[layer] == 0;
    }
    return good ? 0 : 1;
}
