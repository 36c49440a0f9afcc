/*
 * attach.c: records a running process.
 *
 * The library begins a recording with the next event when it finds a bit in TraceActive (trace/tracefile.h). Without a setting
 * that names a file, the recording is in memory that the process shares through a descriptor. So the debugger writes one
 * word, keeps the memory by the descriptor even if the process ends, and writes the word again to stop. The process is
 * not stopped, and no file is left behind.
 */
#include "record.h"
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "trace/tracefile.h"

#define LOOK_INTERVAL 20 /* milliseconds */
#define STOP_TRIES 200
#define DEFAULT_LIMIT 32 /* megabytes */

typedef struct attachment {
    kd_target *target;
    TRACE_CONTENT content;
    kd_address active;    /* of the word */
    kd_address recording; /* of the TRACE_RECORDING */
    int file;             /* the memory of the recording; -1: it has not begun */
} attachment;

static volatile sig_atomic_t interrupted;

static void note_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

static bool write_memory(const attachment *a, kd_address address, const void *data, size_t size)
{
    struct iovec local = {(void *)(uintptr_t)data, size};
    struct iovec remote = {(void *)(uintptr_t)address, size};

    return process_vm_writev(a->target->process, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static uint32_t bits_of(const attachment *a)
{
    return (1u | 1u << TRACE_POSTPONED) << a->content;
}

static bool read_state(attachment *a, uint32_t *active, TRACE_RECORDING *recording)
{
    kd_renew_budget(a->target, 1);
    return kd_read(a->target, a->active, active, sizeof(*active)) &&
           kd_read(a->target, a->recording, recording, sizeof(*recording));
}

/* Only a regular file: opening anything else that a descriptor refers to may have side effects. And only the recording:
   the process may have closed it and reused its number. */
static int open_memory(const attachment *a, const HAL_OPEN_FILE *recorded)
{
    char path[64];
    struct stat status;
    int place, file = -1;

    snprintf(path, sizeof(path), "fd/%d", recorded->Descriptor);
    place = openat(a->target->folder, path, O_PATH | O_CLOEXEC);
    if (place < 0)
        return -1;
    if (fstat(place, &status) == 0 && S_ISREG(status.st_mode) && status.st_dev == recorded->Id.Device &&
        status.st_ino == recorded->Id.File) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
        file = open(path, O_RDONLY | O_CLOEXEC);
    }
    close(place);
    return file;
}

static void look(attachment *a)
{
    static TRACE_RECORDING recording;
    uint32_t active;

    if (a->file < 0 && read_state(a, &active, &recording) && recording.File != NULL && (active & 1u << a->content) != 0)
        a->file = open_memory(a, &recording.Open);
}

static bool begin(attachment *a, const char *limit)
{
    static TRACE_RECORDING recording;
    uint64_t megabytes = DEFAULT_LIMIT, size;
    uint32_t active;

    if (!read_state(a, &active, &recording))
        return kd_say("its memory cannot be read"), false;
    if ((active & bits_of(a)) != 0)
        return kd_say("the process is already being recorded"), false;
    if (recording.Pattern[0] != '\0')
        return kd_say("%s names a file for the process, which writes it when it ends",
                      a->content == TraceEvents ? "INTERLOCK_TRACE" : "INTERLOCK_CONTENTION"), false;
    if (limit != NULL)
        kd_parse_number(limit, &megabytes);
    size = sizeof(TRACE_FILE) + (a->content == TraceEvents ? megabytes << 20
                                                           : TRACE_CONTENTION_ENTRIES * sizeof(TRACE_CONTENTION_ENTRY));
    if (recording.File == NULL && !write_memory(a, a->recording + offsetof(TRACE_RECORDING, Size), &size, sizeof(size)))
        return kd_say("its memory cannot be written: %s", strerror(errno)), false;
    active |= 1u << TRACE_POSTPONED << a->content;
    if (!write_memory(a, a->active, &active, sizeof(active)))
        return kd_say("its memory cannot be written: %s", strerror(errno)), false;
    return true;
}

/* A thread may be about to begin the recording, and then sets the bit again. */
static void stop(attachment *a)
{
    static TRACE_RECORDING recording;
    uint32_t active;

    for (int i = 0; i < STOP_TRIES && read_state(a, &active, &recording) && (active & bits_of(a)) != 0; i++) {
        active &= ~bits_of(a);
        write_memory(a, a->active, &active, sizeof(active));
        usleep(LOOK_INTERVAL * 1000 / 4);
    }
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Until the user interrupts it, the time has passed, or the process ends. */
static void wait_and_look(attachment *a, double seconds)
{
    struct pollfd end = {.fd = a->target->self, .events = POLLIN};
    double until = seconds > 0 ? now() + seconds : 0;

    while (!interrupted && (until == 0 || now() < until)) {
        look(a);
        if (poll(&end, 1, LOOK_INTERVAL) > 0)
            break;
    }
    look(a);
}

static bool read_recording(const attachment *a, const char *process, kd_recordings *recordings)
{
    struct stat status;
    char *memory = MAP_FAILED;
    size_t size = 0;
    ssize_t part = 0;

    if (fstat(a->file, &status) == 0 && status.st_size > 0)
        memory = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return kd_say("the recording cannot be read"), false;
    while (size < (size_t)status.st_size && (part = pread(a->file, memory + size, (size_t)status.st_size - size, (off_t)size)) > 0)
        size += (size_t)part;
    if (!TraceIsFile((const TRACE_FILE *)memory, size, a->content)) {
        munmap(memory, (size_t)status.st_size);
        return kd_say("the recording is damaged"), false;
    }
    kd_add_recording(recordings, process, (const TRACE_FILE *)memory, (size_t)status.st_size);
    return true;
}

static bool find(attachment *a, const char *process)
{
    size_t size = 0;

    a->target = kd_open(process, false);
    if (a->target == NULL)
        return false;
    a->active = kd_root(a->target, "TraceActive", NULL);
    a->recording = kd_root(a->target, "TraceRecording", &size);
    if (a->active != 0 && size >= (size_t)(a->content + 1) * sizeof(TRACE_RECORDING)) {
        a->recording += (size_t)a->content * sizeof(TRACE_RECORDING);
        return true;
    }
    kd_say("process %s: its library was built without tracing", process);
    kd_close(a->target);
    return false;
}

static void handle_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = note_interrupt};

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        sigaction(numbers[i], &action, NULL);
}

int kd_attach(TRACE_CONTENT content, const kd_record_options *options, kd_recordings *recordings)
{
    attachment a = {.content = content, .file = -1};
    int result = 1;

    if (!find(&a, options->command[0]))
        return 1;
    handle_signals();
    if (begin(&a, options->limit)) {
        if (options->seconds == 0)
            kd_say("recording process %s until it ends or this command is interrupted", options->command[0]);
        wait_and_look(&a, options->seconds);
        stop(&a);
        if (a.file < 0)
            kd_say("nothing was recorded: no thread of the process has waited or woken another one");
        result = a.file < 0 || read_recording(&a, options->command[0], recordings) ? 0 : 1;
    }
    if (a.file >= 0)
        close(a.file);
    kd_close(a.target);
    return result;
}
