/* far.c: a child inspects another process, and sends its findings through a pipe. */
#include "far.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_ITEMS 200000   /* of each list */
#define LARGEST ((size_t)64 << 20)
#define CPU_SECONDS 10

/* The child. */

static bool is_sent(const kd_thread *thread)
{
    return thread->waiting && thread->process_id == 0;
}

static void send_threads(FILE *out, const kd_snapshot *s)
{
    uint32_t block = 0;

    for (size_t i = 0; i < s->own_count; i++) {
        const kd_thread *t = &s->threads[i];
        kd_far_thread sent = {.id = t->id, .switches = t->raw->ContextSwitches, .wait_time = t->raw->WaitTime,
                              .reason = t->raw->WaitReason, .first_block = block,
                              .block_count = (uint32_t)t->block_count,
                              .all = t->block_count != 0 && t->blocks[0].raw.WaitType == WaitAll};

        if (!is_sent(t))
            continue;
        kd_copy(sent.name, sizeof(sent.name), t->name, sizeof(sent.name));
        block += sent.block_count;
        fwrite(&sent, sizeof(sent), 1, out);
    }
}

static void send_blocks(FILE *out, const kd_snapshot *s)
{
    for (size_t i = 0; i < s->own_count; i++)
        for (size_t b = 0; is_sent(&s->threads[i]) && b < s->threads[i].block_count; b++)
            fwrite(&(int32_t){s->threads[i].blocks[b].lock}, sizeof(int32_t), 1, out);
}

static void send_locks(FILE *out, const kd_snapshot *s)
{
    uint32_t owner = 0;

    for (size_t i = 0; i < s->lock_count; i++) {
        const kd_lock *lock = &s->locks[i];
        kd_far_lock sent = {.kind = (uint8_t)lock->kind, .hold = (uint8_t)lock->hold, .world = (int8_t)lock->world,
                            .record = lock->record, .address = lock->address, .first_owner = owner,
                            .owner_count = (uint32_t)lock->owner_count};

        kd_copy(sent.name, sizeof(sent.name), lock->name, sizeof(sent.name));
        owner += sent.owner_count;
        fwrite(&sent, sizeof(sent), 1, out);
    }
    for (size_t i = 0; i < s->lock_count; i++)
        for (size_t o = 0; o < s->locks[i].owner_count; o++) {
            const kd_owner *from = &s->locks[i].owners[o];
            kd_far_owner sent = {.id = from->id, .count = from->count, .ended = from->thread < 0,
                                 .probable = from->probable};
            fwrite(&sent, sizeof(sent), 1, out);
        }
}

static void send_all(FILE *out, const kd_snapshot *s)
{
    kd_far head = {.process_id = s->process_id, .key = s->key, .lock_count = (uint32_t)s->lock_count};

    memcpy(head.files, s->files, sizeof(head.files));
    for (size_t i = 0; i < s->own_count; i++) {
        head.thread_count += is_sent(&s->threads[i]);
        head.block_count += is_sent(&s->threads[i]) ? (uint32_t)s->threads[i].block_count : 0;
    }
    for (size_t i = 0; i < s->lock_count; i++)
        head.owner_count += (uint32_t)s->locks[i].owner_count;
    fwrite(&head, sizeof(head), 1, out);
    send_threads(out, s);
    send_blocks(out, s);
    send_locks(out, s);
}

static void look_and_exit(const char *process, int to)
{
    char why[256];
    FILE *out = fdopen(to, "w");
    kd_target *target;
    kd_snapshot *snapshot;

    kd_say_into(why, sizeof(why));
    target = kd_open(process, true);
    snapshot = target != NULL ? kd_snapshot_take_alone(target) : NULL;
    if (snapshot != NULL && out != NULL)
        send_all(out, snapshot);
    _exit(snapshot != NULL && out != NULL && fclose(out) == 0 ? 0 : 1);
}

/* The debugger. */

int64_t kd_milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* FALSE: it took too long, which *late says, or is too much. */
static bool receive(int from, int64_t end, uint8_t **bytes, size_t *size, bool *late)
{
    size_t room = 0;

    for (;;) {
        struct pollfd input = {.fd = from, .events = POLLIN};
        int64_t left = end - kd_milliseconds();
        ssize_t part;

        if (*size == room) {
            room = room == 0 ? 65536 : 2 * room;
            *bytes = realloc(*bytes, room);
            if (*bytes == NULL)
                kd_no_memory();
        }
        *late = left <= 0;
        if (*late || *size > LARGEST)
            return false;
        if (poll(&input, 1, (int)left) <= 0)
            continue;
        part = read(from, *bytes + *size, room - *size);
        if (part <= 0)
            return part == 0;
        *size += (size_t)part;
    }
}

static void *take(const uint8_t **at, size_t *left, size_t count, size_t size)
{
    void *items = count <= MOST_ITEMS && count * size <= *left ? kd_allocate(count + 1, size) : NULL;

    if (items != NULL) {
        memcpy(items, *at, count * size);
        *at += count * size;
        *left -= count * size;
    }
    return items;
}

/* The debugger relies on the numbers. */
static bool is_sound(const kd_far *far)
{
    for (uint32_t i = 0; i < far->thread_count; i++)
        if (far->threads[i].first_block > far->block_count ||
            far->threads[i].block_count > far->block_count - far->threads[i].first_block)
            return false;
    for (uint32_t i = 0; i < far->block_count; i++)
        if (far->blocks[i] < -1 || far->blocks[i] >= (int64_t)far->lock_count)
            return false;
    for (uint32_t i = 0; i < far->lock_count; i++)
        if (far->locks[i].first_owner > far->owner_count ||
            far->locks[i].owner_count > far->owner_count - far->locks[i].first_owner ||
            far->locks[i].kind >= KD_KINDS || far->locks[i].hold > KD_HOLD_UNKNOWN || far->locks[i].world >= WO_PLACES)
            return false;
    return true;
}

static kd_far *unpack(const uint8_t *bytes, size_t size)
{
    kd_far *far = kd_allocate(1, sizeof(*far));

    if (size < sizeof(*far)) {
        free(far);
        return NULL;
    }
    memcpy(far, bytes, sizeof(*far));
    bytes += sizeof(*far);
    size -= sizeof(*far);
    far->threads = take(&bytes, &size, far->thread_count, sizeof(*far->threads));
    far->blocks = take(&bytes, &size, far->block_count, sizeof(*far->blocks));
    far->locks = take(&bytes, &size, far->lock_count, sizeof(*far->locks));
    far->owners = take(&bytes, &size, far->owner_count, sizeof(*far->owners));
    if (far->threads != NULL && far->blocks != NULL && far->locks != NULL && far->owners != NULL && is_sound(far))
        return far;
    kd_far_free(far);
    return NULL;
}

kd_far *kd_far_look(uint32_t process, int milliseconds, bool *late)
{
    int64_t end = kd_milliseconds() + milliseconds;
    uint8_t *bytes = NULL;
    kd_far *far = NULL;
    size_t size = 0;
    char text[16];
    int from;
    pid_t child;

    snprintf(text, sizeof(text), "%u", process);
    child = kd_start_child(look_and_exit, text, CPU_SECONDS, &from);
    *late = false;
    if (child < 0)
        return NULL;
    if (receive(from, end, &bytes, &size, late))
        far = unpack(bytes, size);
    close(from);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    free(bytes);
    return far;
}

void kd_far_free(kd_far *far)
{
    if (far == NULL)
        return;
    free(far->threads);
    free(far->blocks);
    free(far->locks);
    free(far->owners);
    free(far);
}
