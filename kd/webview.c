/*
 * webview.c: `interlock view`: a page in the browser that shows a process, live.
 *
 * The page requests the views' JSON. A snapshot serves all requests until it is a tick old, so that more pages do not
 * cause more reads of the process. At least one is taken per interval, so that the history has no gaps. After the process
 * has exited, the last state stays visible.
 */
#include "history.h"
#include "views.h"
#include "waits.h"
#include "webserver.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SHORTEST_TICK 0.1
#define SHARE 4 /* a snapshot may take 1 / SHARE of the time */
#define PATIENCE 1000 /* milliseconds for a process without memory to exit */

static const kd_view *const views[] = {
    &kd_graph_view, &kd_threads_view, &kd_deadlocks_view, &kd_locks_view, &kd_handles_view,
    &kd_qlocks_view, &kd_dpcs_view, &kd_timers_view, &kd_pool_view, &kd_contention_view,
};

#define VIEWS (sizeof(views) / sizeof(views[0]))

/* The last output of a view. */
typedef struct picture {
    char *text;
    size_t size;
    uint64_t snapshot;
} picture;

typedef struct watch {
    kd_target *target;
    kd_snapshot *snapshot;
    kd_history *history;
    kd_waits *waits;
    picture pictures[VIEWS];
    int process;            /* a descriptor that is readable when it has ended; -1: a core file */
    bool ended;
    char name[256];
    char why[256];          /* it can no longer be inspected */
    uint64_t number;        /* of the snapshot */
    double taken, tick, interval;
} watch;

static volatile sig_atomic_t stopped;

static double seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Snapshots. */

static bool ends_within(const watch *w, int milliseconds)
{
    struct pollfd process = {.fd = w->process, .events = POLLIN};

    return w->process >= 0 && poll(&process, 1, milliseconds) > 0;
}

static bool has_ended(const watch *w)
{
    return ends_within(w, 0);
}

static bool is_static(const watch *w)
{
    return w->ended || (w->snapshot != NULL && kd_process_of(w->target) == 0);
}

static void take_snapshot(watch *w)
{
    double begin = seconds_now();
    kd_snapshot *next = NULL;

    if (!has_ended(w)) {
        kd_say_into(w->why, sizeof(w->why));
        next = kd_snapshot_take(w->target);
        kd_say_into(NULL, 0);
    }
    if (next == NULL) {
        /* The memory disappears before the process has exited. */
        if (ends_within(w, PATIENCE))
            snprintf(w->why, sizeof(w->why), "the process has ended");
        w->ended = true;
        return;
    }
    if (w->snapshot != NULL)
        kd_snapshot_free(w->snapshot);
    w->snapshot = next;
    w->number++;
    kd_renew_budget(w->target, 1);
    kd_history_add(w->history, next);
    kd_waits_add(w->waits, next);
    w->taken = seconds_now();
    w->tick = SHARE * (w->taken - begin);
    if (w->tick < SHORTEST_TICK)
        w->tick = SHORTEST_TICK;
}

static void refresh(watch *w)
{
    if (!is_static(w) && seconds_now() - w->taken >= w->tick)
        take_snapshot(w);
}

/* Answers. */

static web_answer problem(unsigned status, const char *why)
{
    web_answer given = {.status = status};
    FILE *file = open_memstream(&given.body, &given.size);
    json out = {.file = file, .compact = true};

    if (file == NULL)
        return given;
    json_object(&out, NULL);
    json_string(&out, "error", why);
    json_end(&out);
    fclose(file);
    return given;
}

static web_answer show(watch *w, const kd_view *view, const char *argument, bool stack)
{
    web_answer given = {.status = 200, .snapshot = w->number};
    kd_options options = {.json = true, .compact = true, .stack = stack, .argument = argument};
    char why[256] = "";
    int status;

    options.file = open_memstream(&given.body, &given.size);
    if (options.file == NULL)
        return given;
    kd_say_into(why, sizeof(why));
    kd_renew_budget(w->target, 1);
    status = view->show(w->snapshot, &options);
    kd_say_into(NULL, 0);
    fclose(options.file);
    if (status == 0)
        return given;
    free(given.body);
    return problem(404, why);
}

static void draw(watch *w, size_t number)
{
    picture *last = &w->pictures[number];
    web_answer given;

    if (w->ended || last->snapshot == w->number)
        return;
    given = show(w, views[number], NULL, false);
    if (given.body != NULL && given.status == 200) {
        free(last->text);
        *last = (picture){.text = given.body, .size = given.size, .snapshot = w->number};
    } else {
        free(given.body);
    }
}

static web_answer answer_view(watch *w, size_t number)
{
    const picture *last = &w->pictures[number];
    web_answer given = {.status = 200};

    draw(w, number);
    if (last->text == NULL)
        return problem(503, w->why);
    given.body = kd_allocate(last->size + 1, 1);
    memcpy(given.body, last->text, last->size);
    given.size = last->size;
    given.snapshot = last->snapshot;
    return given;
}

static void json_status(json *out, const watch *w)
{
    json_object(out, "status");
    json_number(out, "process_id", w->snapshot->process_id);
    json_string(out, "name", w->name);
    json_string(out, "version", kd_version(w->target));
    json_string(out, "target", kd_process_of(w->target) != 0 ? "process" : "core");
    json_bool(out, "ended", w->ended);
    json_string(out, "why", w->ended ? w->why : NULL);
    json_number(out, "snapshot", (int64_t)w->number);
    json_real(out, "tick", w->tick);
    json_array(out, "views");
    for (size_t i = 0; i < VIEWS; i++)
        json_string(out, NULL, views[i]->name);
    json_end(out);
    json_end(out);
}

/* What has changed since a number: samples of the history, waits of the timeline. */
static web_answer answer_changes(watch *w, const char *after, bool waits)
{
    web_answer given = {.status = 200, .snapshot = w->number};
    FILE *file = open_memstream(&given.body, &given.size);
    json out = {.file = file, .compact = true};
    uint64_t number = 0;

    if (file == NULL)
        return given;
    if (after == NULL || !kd_parse_number(after, &number))
        number = 0;
    json_object(&out, NULL);
    if (waits) {
        kd_json_waits(&out, w->waits, number);
    } else {
        json_status(&out, w);
        kd_json_history(&out, w->history, number);
    }
    json_end(&out);
    fclose(file);
    return given;
}

/* threads/ID/stack */
static web_answer answer_stack(watch *w, const char *path)
{
    char id[16];
    const char *end = strchr(path, '/');
    size_t length = end != NULL ? (size_t)(end - path) : 0;

    if (length == 0 || length >= sizeof(id) || strcmp(end, "/stack") != 0)
        return (web_answer){.status = 404};
    if (w->ended || has_ended(w))
        return problem(503, "the process has ended: its stacks are gone");
    snprintf(id, sizeof(id), "%.*s", (int)length, path);
    return show(w, &kd_threads_view, id, true);
}

static web_answer answer_object(watch *w, const char *what)
{
    if (what == NULL)
        return problem(404, "which object?");
    if (w->ended || has_ended(w))
        return problem(503, "the process has ended: its memory is gone");
    return show(w, &kd_object_view, what, false);
}

static web_answer handle(void *context, const web_request *request)
{
    watch *w = context;

    refresh(w);
    if (strcmp(request->path, "history") == 0)
        return answer_changes(w, request->argument(request, "after"), false);
    if (strcmp(request->path, "waits") == 0)
        return answer_changes(w, request->argument(request, "after"), true);
    if (strcmp(request->path, "object") == 0)
        return answer_object(w, request->argument(request, "of"));
    if (strncmp(request->path, "threads/", 8) == 0)
        return answer_stack(w, request->path + 8);
    for (size_t i = 0; i < VIEWS; i++)
        if (strcmp(request->path, views[i]->name) == 0)
            return answer_view(w, i);
    return (web_answer){.status = 404};
}

/* The command. */

static const char usage_text[] =
    "usage: interlock view [--port PORT] [--interval SECONDS] [--open] PID|CORE\n"
    "  --port PORT          where to listen on 127.0.0.1; any free one otherwise\n"
    "  --interval SECONDS   between two samples while no page is open (1)\n"
    "  --open               shows the page in the browser (xdg-open): other users of this machine may then see\n"
    "                       the address, and with it the token\n"
    "Prints the address of a page that shows the process, live, and serves it until it is interrupted.\n";

typedef struct arguments {
    const char *target;
    uint64_t port;
    double interval;
    bool open;
} arguments;

static bool parse_seconds(const char *text, double *seconds)
{
    char *end;

    *seconds = strtod(text, &end);
    return end != text && *end == '\0' && *seconds >= SHORTEST_TICK && *seconds <= 3600;
}

/* 0: continue; otherwise the status plus 1. */
static int parse(arguments *given, int argc, char **argv)
{
    bool wrong = false;

    for (int i = 1; i < argc && !wrong; i++) {
        if (strcmp(argv[i], "--help") == 0)
            return fputs(usage_text, stdout) < 0 ? 2 : 1;
        if (strcmp(argv[i], "--open") == 0)
            given->open = true;
        else if (strcmp(argv[i], "--port") == 0 && i + 1 < argc)
            wrong = !kd_parse_number(argv[++i], &given->port) || given->port > UINT16_MAX;
        else if (strcmp(argv[i], "--interval") == 0 && i + 1 < argc)
            wrong = !parse_seconds(argv[++i], &given->interval);
        else if (argv[i][0] != '-' && given->target == NULL)
            given->target = argv[i];
        else
            wrong = true;
        if (wrong)
            kd_say("unrecognized argument: %s", argv[i]);
    }
    if (wrong || given->target == NULL) {
        fputs(usage_text, stderr);
        return 3;
    }
    return 0;
}

static void stop(int signal)
{
    (void)signal;
    stopped = true;
}

static void catch_signals(void)
{
    struct sigaction end = {.sa_handler = stop}, ignore = {.sa_handler = SIG_IGN};

    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
    ignore.sa_flags = SA_NOCLDWAIT;
    sigaction(SIGCHLD, &ignore, NULL);
}

static void open_browser(const char *address)
{
    if (fork() == 0) {
        kd_unlimit_memory();
        execlp("xdg-open", "xdg-open", address, (char *)NULL);
        _exit(127);
    }
}

static void read_name(watch *w, const char *what)
{
    const char *slash = strrchr(what, '/');

    if (!kd_process_name(w->target, w->name, sizeof(w->name)))
        kd_clean(w->name, sizeof(w->name), slash != NULL ? slash + 1 : what, sizeof(w->name));
}

static void serve(watch *w, web_server *server)
{
    bool said = false;

    while (!stopped) {
        double left = w->taken + (w->tick > w->interval ? w->tick : w->interval) - seconds_now();

        if (left <= 0 && !is_static(w)) {
            take_snapshot(w);
            draw(w, 0);
            continue;
        }
        if (w->ended && !said) {
            printf("%c%s; the page keeps what it showed last.\n", w->why[0] == 't' ? 'T' : w->why[0], w->why + 1);
            fflush(stdout);
            said = true;
        }
        web_run(server, is_static(w) ? 1000 : (int)(left * 1000) + 1);
    }
}

static int run(watch *w, const arguments *given)
{
    web_server *server = web_start((uint16_t)given->port, handle, w);

    if (server == NULL) {
        kd_say("port %u of 127.0.0.1 cannot be used: %s; choose another one with --port, or omit it",
               (unsigned)given->port, strerror(errno));
        return 1;
    }
    printf("%s\n", web_address(server));
    fflush(stdout);
    catch_signals();
    if (given->open)
        open_browser(web_address(server));
    serve(w, server);
    web_stop(server);
    return 0;
}

static void forget(watch *w)
{
    for (size_t i = 0; i < VIEWS; i++)
        free(w->pictures[i].text);
    if (w->snapshot != NULL)
        kd_snapshot_free(w->snapshot);
    if (w->process >= 0)
        close(w->process);
    kd_history_free(w->history);
    kd_waits_free(w->waits);
    kd_close(w->target);
}

int command_view(int argc, char **argv)
{
    arguments given = {.interval = 1};
    watch w = {.process = -1};
    int status = parse(&given, argc, argv);

    if (status != 0)
        return status - 1;
    w.target = kd_open(given.target, false);
    if (w.target == NULL)
        return 1;
    if (kd_process_of(w.target) != 0)
        w.process = (int)syscall(SYS_pidfd_open, kd_process_of(w.target), 0);
    w.interval = given.interval;
    w.history = kd_history_create();
    w.waits = kd_waits_create();
    read_name(&w, given.target);
    take_snapshot(&w);
    if (w.snapshot == NULL)
        kd_say("%s", w.why);
    else
        draw(&w, 0);
    status = w.snapshot != NULL ? run(&w, &given) : 1;
    forget(&w);
    return status;
}
