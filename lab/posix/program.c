/* program.c: programs that are not written for the explorer. Their main function is the first thread. */
#include "program.h"

#include "posix.h"

#undef NDEBUG
#include <assert.h>
#include <elf.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

#include "host.h"

#define MAX_CASES     1024
#define MAX_ARGUMENTS 64
#define MAX_HANDLERS  512
#define LONGEST_NAME  256

extern const LAB_SCENARIO *const __start_lab_scenarios[] __attribute__((weak));
extern const LAB_SCENARIO *const __stop_lab_scenarios[] __attribute__((weak));
extern char **environ;

int __real_main(int argc, char **argv, char **environment) __attribute__((weak));
void InitGoogleTest(int *argc, char **argv) __asm__("_ZN7testing14InitGoogleTestEPiPPc") __attribute__((weak));
extern const char *lab_cmocka_chosen __attribute__((weak)); /* cmocka.c */

typedef struct program_case {
    LAB_SCENARIO scenario;
    void (*function)(void); /* NULL: main */
    char name[2 * LONGEST_NAME];
} program_case;

static program_case *cases;
static uint32_t case_count;
static const LAB_SCENARIO **scenarios;
static char *arguments[MAX_ARGUMENTS + 4];
static int argument_count = 1;

/* Handlers of atexit, and the destructors of static variables: run by the thread that ends the program. */
static struct {
    void (*routine)(void *);
    void *argument;
} handlers[MAX_HANDLERS];
static uint32_t handler_count;

int __wrap___cxa_atexit(void (*routine)(void *), void *argument, void *library);

int __wrap___cxa_atexit(void (*routine)(void *), void *argument, void *library)
{
    (void)library;
    if (handler_count == MAX_HANDLERS)
        return -1;
    handlers[handler_count].routine = routine;
    handlers[handler_count++].argument = argument;
    return 0;
}

static void __attribute__((noreturn)) leave(int status, uintptr_t pc)
{
    lab_thread *t = lab->current;

    lab_step_announce(t, OP_EXIT, 0, pc);
    lab_sched_point(t);
    lab_step_make(t, 0, NULL);
    lab_step_follow_all(t);
    lab_report_event(OP_EXIT, 0, 0, 0, 0, (uint64_t)status, false, pc);
    if (status != 0)
        lab_sched_fail(VERDICT_EXIT, 0, "the program ends with status %d", status);
    lab_sched_leave(RUN_FINISHED);
}

void lab_program_exit(int status)
{
    lab_posix_run_exits();
    while (handler_count != 0) {
        handler_count--;
        handlers[handler_count].routine(handlers[handler_count].argument);
    }
    leave(status & 0xff, 0);
}

void _exit(int status)
{
    if (lab != NULL && lab_sched_active() && lab->is_program)
        leave(status & 0xff, CALLER);
    if (lab != NULL && lab->running)
        lab_sched_fail(VERDICT_CRASH, CALLER, "the program ends the process");
    for (;;)
        lab_host_call(SYS_exit_group, status, 0, 0, 0, 0, 0);
}

void _Exit(int status)
{
    _exit(status);
}

void __assert_fail(const char *expression, const char *file, unsigned line, const char *function)
{
    const char *slash = strrchr(file, '/');

    if (lab == NULL || (!lab->running && !lab->preparing)) {
        fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, expression);
        abort();
    }
    lab_sched_fail(VERDICT_ASSERTION, CALLER, "%s (%s:%u)", expression, slash != NULL ? slash + 1 : file, line);
}

/*
 * Functions that a library of the program calls later must be in the executable before the linker reaches that library:
 * one of each file.
 */
__attribute__((used)) static void *const all_files[] = {
    (void *)fork,           (void *)mtx_lock,           (void *)clock_gettime,     (void *)pthread_cond_wait,
    (void *)syscall,        (void *)pthread_mutex_lock, (void *)pthread_once,      (void *)pthread_rwlock_rdlock,
    (void *)sem_wait,       (void *)pthread_create,     (void *)__wrap_memcpy,
};

/* The first thread. */

static void run_main(const program_case *c)
{
    char filter[2 * LONGEST_NAME + 32];
    int count = argument_count;

    if (InitGoogleTest != NULL && strcmp(c->name, "main") != 0) {
        snprintf(filter, sizeof(filter), "--gtest_filter=%s", c->name);
        arguments[count++] = filter;
    }
    arguments[count] = NULL;
    if (&lab_cmocka_chosen != NULL)
        lab_cmocka_chosen = c->name;
    lab_thread_begin_own_function(__builtin_frame_address(0));
    lab_program_exit(__real_main(count, arguments, environ));
}

void lab_program_run(void *unused)
{
    const program_case *c = (const program_case *)(const void *)lab->scenario;

    (void)unused;
    if (c->function == NULL)
        run_main(c);
    lab_thread_begin_own_function(__builtin_frame_address(0));
    c->function();
    lab_posix_end_thread(NULL);
}

uintptr_t lab_program_entry(void)
{
    const program_case *c = (const program_case *)(const void *)lab->scenario;
    return c->function != NULL ? (uintptr_t)c->function : (uintptr_t)__real_main;
}

/* The scenarios to run. */

static void add_case(const char *name, void (*function)(void))
{
    if (cases == NULL)
        cases = lab_memory_map(MAX_CASES * sizeof(*cases));
    if (case_count == MAX_CASES)
        return;
    program_case *c = &cases[case_count++];
    snprintf(c->name, sizeof(c->name), "%s", name);
    c->scenario.Name = c->name;
    c->scenario.SpuriousWakes = 1;
    c->function = function;
    lab->is_program = true;
}

/* A function of the program, by the name in its source: in C++ one without parameters, outside a namespace. */
static uintptr_t find_function(const char *name)
{
    struct stat status;
    char mangled[LONGEST_NAME];
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    snprintf(mangled, sizeof(mangled), "_Z%zu%sv", strlen(name), name);
    if (file < 0 || fstat(file, &status) != 0)
        return 0;
    const char *elf = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (elf == MAP_FAILED)
        return 0;
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)elf;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(elf + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        const Elf64_Sym *symbols = (const Elf64_Sym *)(elf + sections[i].sh_offset);
        const char *names = elf + sections[sections[i].sh_link].sh_offset;
        for (size_t s = 0; s < sections[i].sh_size / sizeof(Elf64_Sym); s++) {
            const char *found = names + symbols[s].st_name;
            if (ELF64_ST_TYPE(symbols[s].st_info) == STT_FUNC && symbols[s].st_value != 0 &&
                (strcmp(found, name) == 0 || strcmp(found, mangled) == 0))
                return symbols[s].st_value;
        }
    }
    return 0;
}

void lab_program_add_function(const char *name)
{
    uintptr_t address = find_function(name);

    if (address == 0) {
        fprintf(stderr, "lab: the program has no function %s; a static function may have been left out by the compiler\n",
                name);
        exit(2);
    }
    add_case(name, (void (*)(void))address);
}

void lab_program_add_argument(const char *word)
{
    if (argument_count < MAX_ARGUMENTS)
        arguments[argument_count++] = (char *)(uintptr_t)word;
}

/* Runs main in a process of its own, which prints the names of its test cases. */
static FILE *list_tests(pid_t *child)
{
    int ends[2];

    if (pipe(ends) != 0)
        return NULL;
    fflush(stdout);
    *child = fork();
    if (*child == 0) {
        char list[] = "--gtest_list_tests";
        char *words[] = {arguments[0], list, NULL};

        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        if (&lab_cmocka_chosen != NULL)
            lab_cmocka_chosen = NULL;
        int status = __real_main(InitGoogleTest != NULL ? 2 : 1, words, environ);
        fflush(stdout);
        _exit(status);
    }
    close(ends[1]);
    return fdopen(ends[0], "r");
}

static void add_tests(void)
{
    char line[LONGEST_NAME], suite[LONGEST_NAME] = "", name[2 * LONGEST_NAME];
    pid_t child;
    FILE *list = list_tests(&child);

    while (list != NULL && fgets(line, sizeof(line), list) != NULL) {
        char *word = line + strspn(line, " ");
        word[strcspn(word, " #\n")] = '\0';
        if (InitGoogleTest == NULL) {
            if (strncmp(line, "lab-cmocka:", 11) == 0)
                add_case(line + 11, NULL);
        } else if (line[0] != ' ') {
            snprintf(suite, sizeof(suite), "%s", word);
        } else if (strchr(suite, '.') != NULL) {
            snprintf(name, sizeof(name), "%s%s", suite, word);
            add_case(name, NULL);
        }
    }
    if (list != NULL) {
        fclose(list);
        waitpid(child, NULL, 0);
    }
}

static uint32_t file_rank(const LAB_SCENARIO *scenario)
{
    const LAB_SCENARIO *const *s = __start_lab_scenarios;
    uint32_t rank = 0;

    while (s[rank]->File != scenario->File && strcmp(s[rank]->File, scenario->File) != 0)
        rank++;
    return rank;
}

/* The compiler may have reversed them. */
static int compare_places(const void *a, const void *b)
{
    const LAB_SCENARIO *left = *(const LAB_SCENARIO *const *)a, *right = *(const LAB_SCENARIO *const *)b;
    uint32_t left_rank = file_rank(left), right_rank = file_rank(right);

    if (left_rank != right_rank)
        return left_rank < right_rank ? -1 : 1;
    return left->Line < right->Line ? -1 : left->Line > right->Line;
}

const LAB_SCENARIO *const *lab_program_scenarios(void)
{
    size_t written = (size_t)(__stop_lab_scenarios - __start_lab_scenarios);

    if (scenarios != NULL)
        return scenarios;
    if (case_count == 0 && written == 0 && __real_main != NULL) {
        if (InitGoogleTest != NULL || &lab_cmocka_chosen != NULL)
            add_tests();
        if (case_count == 0)
            add_case("main", NULL);
    }
    size_t count = case_count != 0 ? case_count : written;
    scenarios = lab_memory_map((count + 1) * sizeof(*scenarios));
    for (size_t i = 0; i < count; i++)
        scenarios[i] = case_count != 0 ? &cases[i].scenario : __start_lab_scenarios[i];
    if (case_count == 0)
        qsort(scenarios, count, sizeof(*scenarios), compare_places);
    return scenarios;
}

void lab_program_begin(char *name)
{
    __libc_single_threaded = 0; /* C++ counts references atomically from the start */
    arguments[0] = name;
}
