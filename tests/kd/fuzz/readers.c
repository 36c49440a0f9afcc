/* readers.c: the readers of the debugger over damaged files. */
#include "readers.h"

#include "show.h"
#include "views.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_SNAPSHOTS 16
#define RECORD_BYTES   13
#define HEADERS        ((size_t)1 << 16) /* of a snapshot: its headers and notes are in there */

/* A file, and the same undamaged. */
typedef struct base {
    char path[PATH_MAX];
    int file;
    uint8_t *content;
    size_t size;
    uint32_t *words; /* offsets of those that are not zero */
    size_t word_count;
    size_t changed_from, changed_to; /* what is damaged now */
} base;

static base snapshots[MOST_SNAPSHOTS], program, trace, contention, world;
static size_t snapshot_count;
static kd_target *targets[MOST_SNAPSHOTS]; /* stay open: only the memory in the files changes */
static char output[PATH_MAX];

/* Files. */

static void find_words(base *b)
{
    b->words = kd_allocate(b->size / 8 + 1, sizeof(uint32_t));
    for (size_t at = 0; at + 8 <= b->size; at += 8) {
        uint64_t word;

        memcpy(&word, b->content + at, 8);
        if (word != 0)
            b->words[b->word_count++] = (uint32_t)at;
    }
}

static void open_base(base *b, const char *folder, const char *name)
{
    struct stat status;

    snprintf(b->path, sizeof(b->path), "%s/%s", folder, name);
    b->file = open(b->path, O_RDWR | O_CLOEXEC);
    if (b->file < 0 || fstat(b->file, &status) != 0)
        fail(b->path, strerror(errno), "", 0);
    b->size = (size_t)status.st_size;
    b->content = kd_allocate(b->size + 8, 1);
    if (pread(b->file, b->content, b->size, 0) != (ssize_t)b->size)
        fail(b->path, "it cannot be read", "", 0);
    b->changed_from = b->size;
    find_words(b);
    if (b->word_count == 0)
        fail(b->path, "it is empty", "", 0);
}

static void put(base *b, size_t at, const void *bytes, size_t count)
{
    if (at >= b->size)
        return;
    if (count > b->size - at)
        count = b->size - at;
    if (pwrite(b->file, bytes, count, (off_t)at) != (ssize_t)count)
        fail(b->path, strerror(errno), "", 0);
    if (at < b->changed_from)
        b->changed_from = at;
    if (at + count > b->changed_to)
        b->changed_to = at + count;
}

static void restore(base *b)
{
    if (ftruncate(b->file, (off_t)b->size) != 0)
        fail(b->path, strerror(errno), "", 0);
    if (b->changed_from < b->changed_to &&
        pwrite(b->file, b->content + b->changed_from, b->changed_to - b->changed_from, (off_t)b->changed_from) < 0)
        fail(b->path, strerror(errno), "", 0);
    b->changed_from = b->size;
    b->changed_to = 0;
}

/* Damage. */

static size_t place(const base *b, uint64_t where, size_t first, size_t size)
{
    size_t at = where & 0x80000000 ? where % size : b->words[where % b->word_count];

    return first != 0 || at < size ? (at < first ? first + at % (b->size - first) : at) : at % size;
}

/* In the first `size` bytes, but none of the first `first`. */
static void damage(base *b, const uint8_t *record, size_t first, size_t size)
{
    uint32_t where;
    uint64_t value, old;
    size_t at;

    memcpy(&where, record + 1, sizeof(where));
    memcpy(&value, record + 5, sizeof(value));
    at = place(b, where, first, size);
    memcpy(&old, b->content + (at + 8 <= b->size ? at : 0), sizeof(old));
    switch (record[0] % 8) {
    case 0: /* a word */
        put(b, at, &value, 8);
        break;
    case 1: /* another word of the file: pointers that lead elsewhere, lists that are joined or closed */
        put(b, at, b->content + place(b, value & 0x7fffffff, first, size) / 8 * 8, 8);
        break;
    case 2: /* a little more or less */
        old += (uint64_t)(int64_t)(int16_t)value;
        put(b, at, &old, 8);
        break;
    case 3:
        put(b, at, &value, 4);
        break;
    case 4:
        put(b, at, &value, 1);
        break;
    case 5: /* one bit */
        old ^= (uint64_t)1 << (value & 63);
        put(b, at, &old, 8);
        break;
    case 6: /* a large number */
        old = UINT64_MAX >> (value & 63);
        put(b, at, &old, value & 64 ? 4 : 8);
        break;
    default: /* several words of another place */
        put(b, at, b->content + place(b, value & 0x7fffffff, first, size) / 8 * 8, (value >> 32) % 256);
        break;
    }
}

static void damage_all(base *b, const uint8_t *bytes, size_t size, size_t first, size_t last)
{
    for (size_t i = 0; i + RECORD_BYTES <= size; i += RECORD_BYTES)
        damage(b, bytes + i, first, last < b->size ? last : b->size);
}

/* Or truncated, or extended. */
static void resize(base *b, const uint8_t *bytes, size_t size)
{
    uint32_t where;

    if (size < RECORD_BYTES || bytes[0] < 240)
        return;
    memcpy(&where, bytes + 1, sizeof(where));
    if (ftruncate(b->file, bytes[0] < 250 ? (off_t)(where % b->size) : (off_t)b->size + ((off_t)where << 8)) != 0)
        fail(b->path, strerror(errno), "", 0);
}

static const shown_view views[] = {
    {&kd_threads_view, NULL, true, false}, {&kd_graph_view, NULL, true, false},   {&kd_deadlocks_view, NULL, false, true},
    {&kd_locks_view, NULL, true, false},   {&kd_handles_view, NULL, true, false}, {&kd_qlocks_view, NULL, true, false},
    {&kd_dpcs_view, NULL, true, false},    {&kd_timers_view, NULL, true, false},  {&kd_pool_view, NULL, true, false},
    {&kd_object_view, "0x4", true, false}, {&kd_explain_view, NULL, true, true},  {&kd_threads_view, NULL, true, true},
};

#define VIEWS (sizeof(views) / sizeof(views[0]))

/* Two views for each input, one of them as JSON. */
static void show_target(kd_target *target, uint8_t which)
{
    kd_snapshot *snapshot;

    kd_renew_budget(target, 1);
    snapshot = kd_snapshot_take_alone(target);
    if (snapshot == NULL)
        return;
    show_view(snapshot, &views[which % VIEWS], false);
    show_view(snapshot, &views[which / VIEWS % VIEWS], true);
    kd_snapshot_free(snapshot);
}

/* The readers. */

typedef struct input {
    uint8_t file, which;
    const uint8_t *records;
    size_t size;
} input;

static void read_memory(const input *in)
{
    size_t number = in->file % snapshot_count;

    damage_all(&snapshots[number], in->records, in->size, HEADERS < snapshots[number].size ? HEADERS / 16 : 0,
               snapshots[number].size);
    show_target(targets[number], in->which);
    restore(&snapshots[number]);
}

static void open_and_show(const base *b, uint8_t which)
{
    kd_target *target;

    target = kd_open(b->path, false);
    if (target == NULL)
        return;
    show_target(target, which);
    kd_close(target);
}

static void read_headers(const input *in)
{
    base *b = &snapshots[in->file % snapshot_count];

    damage_all(b, in->records, in->size, 0, HEADERS);
    resize(b, in->records, in->size);
    open_and_show(b, in->which);
    restore(b);
}

static void read_program(const input *in)
{
    damage_all(&program, in->records, in->size, 0, in->file & 16 ? program.size : 4096);
    resize(&program, in->records, in->size);
    open_and_show(&snapshots[in->file % snapshot_count], in->which);
    restore(&program);
}

static void check_file(const char *what, bool as_json)
{
    FILE *file = fopen(output, "re");
    char *text = NULL;
    size_t size = 0;
    ssize_t length = file != NULL ? getdelim(&text, &size, EOF, file) : 0;

    if (file != NULL)
        fclose(file);
    if (length > 0)
        check_output(what, as_json, text, (size_t)length);
    free(text);
    unlink(output);
}

static void read_trace(const input *in)
{
    const char *words[] = {"-o", output, "--convert", trace.path, NULL};

    damage_all(&trace, in->records, in->size, 0, trace.size);
    resize(&trace, in->records, in->size);
    run_command(command_trace, "trace", words, false);
    check_file("trace", true);
    restore(&trace);
}

static void read_contention(const input *in)
{
    const char *words[] = {"-o", output, "--read", contention.path, in->which & 1 ? "--json" : NULL, NULL};

    damage_all(&contention, in->records, in->size, 0, contention.size);
    resize(&contention, in->records, in->size);
    run_command(command_contention, "contention", words, false);
    check_file("contention", in->which & 1);
    restore(&contention);
}

static void read_world(const input *in)
{
    const char *words[] = {world.path, in->which & 1 ? "--json" : NULL, NULL};

    damage_all(&world, in->records, in->size, 0, world.size);
    resize(&world, in->records, in->size);
    run_command(command_session, "session", words, in->which & 1);
    restore(&world);
}

/* Memory twice: it has most of the code. */
static void (*const readers[])(const input *in) = {
    read_memory, read_memory, read_headers, read_program, read_trace, read_contention, read_world,
};

#define READERS (sizeof(readers) / sizeof(readers[0]))

unsigned readers_count(void)
{
    return READERS;
}

void readers_run(const uint8_t *bytes, size_t size)
{
    char said[4096] = "";
    input in = {.records = bytes + 3};

    if (size < 3)
        return;
    in.file = bytes[1];
    in.which = bytes[2];
    in.size = size - 3 < READERS_MOST_BYTES - 3 ? size - 3 : READERS_MOST_BYTES - 3;
    kd_say_into(said, sizeof(said));
    readers[bytes[0] % READERS](&in);
    kd_say_into(NULL, 0);
    check_output("stderr", false, said, strlen(said));
}

static void open_snapshots(const char *folder)
{
    char name[32];

    for (size_t i = 0; i < MOST_SNAPSHOTS; i++) {
        snprintf(name, sizeof(name), "/core.%zu", i);
        snprintf(output, sizeof(output), "%s%s", folder, name);
        if (access(output, F_OK) != 0)
            break;
        open_base(&snapshots[snapshot_count++], folder, name + 1);
        targets[i] = kd_open(snapshots[i].path, false);
        if (targets[i] == NULL)
            fail(snapshots[i].path, "it cannot be opened", "", 0);
    }
    if (snapshot_count == 0)
        fail(folder, "there is no snapshot in it", "", 0);
}

/* A file that is rejected undamaged tests nothing. */
static void check_bases(void)
{
    const char *converted[] = {"-o", output, "--convert", trace.path, NULL};
    const char *contended[] = {"-o", output, "--read", contention.path, NULL};
    const char *shared[] = {world.path, NULL};

    for (size_t i = 0; i < VIEWS * VIEWS; i += VIEWS + 1)
        for (size_t n = 0; n < snapshot_count; n++)
            show_target(targets[n], (uint8_t)i);
    run_command(command_trace, "trace", converted, false);
    check_file("trace", true);
    run_command(command_contention, "contention", contended, false);
    check_file("contention", false);
    run_command(command_session, "session", shared, false);
}

void readers_start(const char *folder)
{
    char said[256];

    open_snapshots(folder);
    open_base(&program, folder, "program");
    open_base(&trace, folder, "trace");
    open_base(&contention, folder, "contention");
    open_base(&world, folder, "world");
    snprintf(output, sizeof(output), "%s/output", folder);
    kd_say_into(said, sizeof(said));
    check_bases();
    kd_say_into(NULL, 0);
}
