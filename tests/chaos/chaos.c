/*
 * chaos.c: processes that share a few dozen named objects and are killed at random (docs/testing.md).
 *
 * The parent does not use the library. It starts workers, kills them, stops and continues them, and records what the
 * dead may have held. Once a second all workers pause, and an auditor compares the objects with that record.
 *
 * usage: chaos SECONDS [SEED [rubbish]]
 * With rubbish no process is killed. The parent writes random bytes into the world's file instead. Calls may fail in
 * any way, but every process either continues or exits normally: none crashes, none hangs.
 */
#include "chaos.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wo/wop.h"

#define WORKERS 12
#define SECONDS_OF_PATIENCE 60 /* a process without progress for this long hangs */

chaos_ledger *ledger;
static unsigned seed;
static unsigned long rubbish, kills, stops, started, audits;
static pid_t anchor_process, parent_process;

void fail(const char *format, ...)
{
    va_list arguments;
    char text[400];

    if (ledger->rubbish && getpid() != parent_process)
        _exit(0);
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "chaos: process %d: %s\n", (int)getpid(), text);
    atomic_store(&ledger->failed, true);
}

int claim_slot(void)
{
    for (int i = 0; i < SLOTS; i++) {
        pid_t none = 0;

        if (atomic_compare_exchange_strong(&ledger->slot[i].process, &none, getpid())) {
            atomic_store(&ledger->slot[i].doing, DOING(KIND_NONE, 0, PHASE_IDLE));
            atomic_store(&ledger->slot[i].parked, false);
            return i;
        }
    }
    return -1;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void start_worker(void)
{
    unsigned own = (unsigned)rand_r(&seed);
    pid_t child = fork();

    if (child == 0)
        worker(own);
    started += child > 0;
}

/* After the process has ended: its slots no longer change. */
static void account_for(pid_t process)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        chaos_slot *slot = &ledger->slot[i];
        unsigned doing = atomic_load(&slot->doing);
        chaos_loss *loss = &ledger->loss[DOING_KIND(doing)][DOING_OBJECT(doing)];

        if (atomic_load(&slot->process) != process)
            continue;
        loss->held += DOING_PHASE(doing) == PHASE_HELD;
        loss->acquiring += DOING_PHASE(doing) == PHASE_ACQUIRING;
        loss->releasing += DOING_PHASE(doing) == PHASE_RELEASING;
        loss->releasing_second += DOING_PHASE(doing) == PHASE_RELEASING_SECOND;
        atomic_store(&slot->process, 0);
    }
}

/* Returns the status of Awaited, or -1 while it runs. */
static int reap(pid_t awaited)
{
    int status, result = -1;
    pid_t child;

    while ((child = waitpid(-1, &status, WNOHANG)) > 0) {
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) {
            if (!WIFEXITED(status) || (WEXITSTATUS(status) != 0 && child != awaited))
                fail("process %d ended with status %#x", (int)child, (unsigned)status);
        }
        if (child == anchor_process && !atomic_load(&ledger->stop))
            fail("the process that keeps the objects has ended");
        account_for(child);
        if (child == awaited)
            result = status;
    }
    return result;
}

static pid_t random_process(void)
{
    for (unsigned tries = 0; tries < 4 * SLOTS; tries++) {
        pid_t process = atomic_load(&ledger->slot[(unsigned)rand_r(&seed) % SLOTS].process);
        if (process != 0)
            return process;
    }
    return 0;
}

static unsigned living(void)
{
    unsigned count = 0;

    for (unsigned i = 0; i < SLOTS; i++)
        count += atomic_load(&ledger->slot[i].process) != 0;
    return count;
}

static void disturb(void)
{
    pid_t process = random_process();

    if (process == 0)
        return;
    if (rand_r(&seed) % 8 == 0) {
        stops += kill(process, SIGSTOP) == 0;
        usleep((useconds_t)rand_r(&seed) % 3000);
        kill(process, SIGCONT);
    } else {
        kills += kill(process, SIGKILL) == 0;
    }
}

static bool all_parked(void)
{
    for (unsigned i = 0; i < SLOTS; i++)
        if (atomic_load(&ledger->slot[i].process) != 0 && !atomic_load(&ledger->slot[i].parked))
            return false;
    return true;
}

static void tell_stuck(void)
{
    for (unsigned i = 0; i < SLOTS; i++) {
        const chaos_slot *slot = &ledger->slot[i];
        unsigned doing = atomic_load(&slot->doing);

        if (atomic_load(&slot->process) != 0 && !atomic_load(&slot->parked))
            fail("slot %u, process %d hangs: kind %u, object %u, phase %u", i, (int)atomic_load(&slot->process),
                 DOING_KIND(doing), DOING_OBJECT(doing), DOING_PHASE(doing));
    }
}

static bool wait_until_parked(void)
{
    double deadline = now() + SECONDS_OF_PATIENCE;

    while (!all_parked()) {
        reap(0);
        if (now() > deadline) {
            tell_stuck();
            return false;
        }
        usleep(1000);
    }
    reap(0);
    return true;
}

static bool run_audit(void)
{
    double deadline = now() + SECONDS_OF_PATIENCE;
    pid_t auditor;
    int status = -1;

    atomic_store(&ledger->pause, true);
    if (!wait_until_parked())
        return false;
    auditor = fork();
    if (auditor == 0)
        exit(audit());
    while ((status = reap(auditor)) < 0 && now() < deadline)
        usleep(1000);
    if (status != 0)
        fail("the audit %s", status < 0 ? "hangs" : "found a difference");
    memset(ledger->loss, 0, sizeof(ledger->loss));
    atomic_store(&ledger->pause, false);
    audits++;
    return status == 0;
}

static bool run_for(double seconds)
{
    double end = now() + seconds, next_audit = now() + 1;

    while (now() < end && !atomic_load(&ledger->failed)) {
        reap(0);
        while (living() < 2 * WORKERS) {
            start_worker();
            usleep(500); /* it claims its slot */
        }
        disturb();
        usleep((useconds_t)rand_r(&seed) % 4000);
        if (now() > next_audit) {
            if (!run_audit())
                return false;
            next_audit = now() + 1;
        }
    }
    return !atomic_load(&ledger->failed) && run_audit();
}

static bool find_world(const char *session, char *path, size_t size)
{
    const char *folders[] = {getenv("XDG_RUNTIME_DIR"), "/dev/shm"};
    bool is_there = false;
    glob_t found;

    for (unsigned i = 0; i < 2 && !is_there; i++) {
        snprintf(path, size, "%s/*-%s", folders[i] != NULL ? folders[i] : "", session);
        if (folders[i] != NULL && glob(path, 0, NULL, &found) == 0) {
            snprintf(path, size, "%s", found.gl_pathv[0]);
            globfree(&found);
            is_there = true;
        }
    }
    return is_there;
}

/* The world's contents while the anchor is alone, before and after: what the other processes had must be gone. */

typedef struct world_contents {
    ULONG64 used;
    ULONG processes, waiters, objects, names;
} world_contents;

static bool read_contents(const char *session, world_contents *contents)
{
    char path[300];
    static WO_WORLD world;
    int file = find_world(session, path, sizeof(path)) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    bool whole = file >= 0 && read(file, &world, FIELD_OFFSET(WO_WORLD, Edit)) == (ssize_t)FIELD_OFFSET(WO_WORLD, Edit);

    if (file >= 0)
        close(file);
    *contents = (world_contents){world.Used, world.Processes, world.Waiters, world.Objects, world.Names};
    return whole;
}

static void await_anchor(const char *session, world_contents *contents)
{
    double deadline = now() + SECONDS_OF_PATIENCE;

    while (!atomic_load(&ledger->anchored) && now() < deadline)
        usleep(1000);
    if (!read_contents(session, contents))
        fail("the world of the process that keeps the objects is not found");
}

/* The guards clean up after dead processes asynchronously. */
static void check_contents(const char *session, const world_contents *before)
{
    double deadline = now() + SECONDS_OF_PATIENCE;
    world_contents after;
    bool same;

    do {
        same = read_contents(session, &after) && memcmp(before, &after, sizeof(after)) == 0;
    } while (!same && now() < deadline && usleep(1000) == 0);
    if (!same)
        fail("the world had %llu bytes in use (%u processes, %u waiters, %u objects, %u names), and has %llu (%u, %u, %u, %u)",
             (unsigned long long)before->used, before->processes, before->waiters, before->objects, before->names,
             (unsigned long long)after.used, after.processes, after.waiters, after.objects, after.names);
}

/* Corruption. */

static int open_world(const char *session)
{
    char path[300];

    return find_world(session, path, sizeof(path)) ? open(path, O_RDWR | O_CLOEXEC) : -1;
}

/* Mostly in used areas: the start of the file, and records in use. */
static void write_rubbish(int file)
{
    unsigned char bytes[64];
    size_t count = (size_t)rand_r(&seed) % (rand_r(&seed) % 4 ? 8 : sizeof(bytes)) + 1;
    off_t end = lseek(file, 0, SEEK_END), place;

    if (end <= 0)
        return;
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)(rand_r(&seed) % 3 ? rand_r(&seed) : rand_r(&seed) % 4);
    place = (off_t)rand_r(&seed) % (rand_r(&seed) % 2 && end > 16384 ? 16384 : end);
    rubbish += pwrite(file, bytes, count, place & ~(off_t)(rand_r(&seed) % 2 ? 7 : 0)) > 0;
}

/* Ends with a failure if a process hangs. */
static bool watch_progress(unsigned long seen[SLOTS], double since[SLOTS])
{
    for (unsigned i = 0; i < SLOTS; i++) {
        unsigned long operations = atomic_load(&ledger->slot[i].operations);
        pid_t process = atomic_load(&ledger->slot[i].process);

        if (process == 0 || operations != seen[i]) {
            seen[i] = operations;
            since[i] = now();
        } else if (now() > since[i] + SECONDS_OF_PATIENCE) {
            fail("slot %u, process %d hangs, doing %#x", i, (int)process, atomic_load(&ledger->slot[i].doing));
            return false;
        }
    }
    return true;
}

static void run_with_rubbish(double seconds, const char *session)
{
    static unsigned long seen[SLOTS];
    static double since[SLOTS];
    double end = now() + seconds, next = now();
    int file = -1;

    while (now() < end && !atomic_load(&ledger->failed) && watch_progress(seen, since)) {
        reap(0);
        while (living() < 2 * WORKERS) {
            start_worker();
            usleep(2000);
        }
        if (now() > next) { /* a poisoned world has been replaced by then */
            if (file >= 0)
                close(file);
            file = open_world(session);
            next = now() + 0.05 * (rand_r(&seed) % 8);
        }
        if (file >= 0)
            write_rubbish(file);
        usleep((useconds_t)rand_r(&seed) % 3000);
    }
}

/* No process is left, and no file. */
static void check_files(const char *session)
{
    char path[300];

    if (find_world(session, path, sizeof(path)))
        fail("%s is left", path);
}

static void await_all(pid_t which)
{
    double deadline = now() + SECONDS_OF_PATIENCE;
    pid_t ended;

    while ((ended = waitpid(which, NULL, WNOHANG)) != -1 && now() < deadline)
        usleep(1000);
    if (ended == -1)
        return;
    fail("processes are left at the end");
    for (unsigned i = 0; i < SLOTS; i++) /* they keep the output open, and its reader waits for them */
        if (atomic_load(&ledger->slot[i].process) != 0)
            kill(atomic_load(&ledger->slot[i].process), SIGKILL);
}

/* The anchor, in its own group, is the last and exits normally: a grandchild ends by _exit, which leaves the file.
   Contents: of the world while the anchor was alone; NULL: it does not matter. */
static void end_everything(const char *session, const world_contents *contents)
{
    atomic_store(&ledger->stop, true);
    await_all(0);
    if (contents != NULL)
        check_contents(session, contents);
    atomic_store(&ledger->stop_anchor, true);
    await_all(-1);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 30, began;
    world_contents contents = {0};
    char session[64];

    seed = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 0) : (unsigned)time(NULL);
    snprintf(session, sizeof(session), "chaos-%d", (int)getpid());
    setenv("INTERLOCK_SESSION", session, 1);
    ledger = mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ledger->rubbish = argc > 3 && strcmp(argv[3], "rubbish") == 0;
    parent_process = getpid();
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    printf("seed %u\n", seed);
    fflush(stdout);
    began = now();
    if (ledger->rubbish) {
        run_with_rubbish(seconds, session);
        end_everything(session, NULL);
        printf("%lu processes, rubbish written %lu times, %.0f s\n", started, rubbish, now() - began);
        return atomic_load(&ledger->failed);
    }
    anchor_process = fork();
    if (anchor_process == 0)
        anchor();
    setpgid(anchor_process, 0);
    await_anchor(session, &contents);
    run_for(seconds);
    seconds = now() - began;
    end_everything(session, &contents);
    check_files(session);
    printf("%lu processes, %lu killed (%.0f a second), %lu stopped and continued, %lu audits, %.0f s\n", started, kills,
           (double)kills / seconds, stops, audits, seconds);
    printf("%lu handles passed there and back, %lu waits met at keyed events, %llu bytes of the world in use before and after\n",
           atomic_load(&ledger->passed), atomic_load(&ledger->met), (unsigned long long)contents.used);
    return atomic_load(&ledger->failed);
}
