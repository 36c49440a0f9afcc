/* world.c: reading a world of shared objects. */
#include "world.h"

#include "text.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_DIRECTORIES 64 /* in a path */
#define LARGEST_CLASS (WO_CLASSES - 1)

typedef struct reader {
    kd_world *world;
    const uint8_t *bytes;
    size_t size;
    kd_index processes, threads, objects; /* by the index of the record, which is never 0 */
} reader;

const char *kd_world_type_name(unsigned type)
{
    static const char *const names[] = {
        [WoNotificationEvent] = "NotificationEvent",
        [WoSynchronizationEvent] = "SynchronizationEvent",
        [WoSemaphore] = "Semaphore",
        [WoMutant] = "Mutant",
        [WoNotificationTimer] = "NotificationTimer",
        [WoSynchronizationTimer] = "SynchronizationTimer",
        [WoKeyedEvent] = "KeyedEvent",
        [WoDirectory] = "Directory",
        [WoSymbolicLink] = "SymbolicLink",
    };

    return type < sizeof(names) / sizeof(names[0]) && names[type] != NULL ? names[type] : "?";
}

/* Finding and reading the file. */

static bool is_world(const char *name)
{
    return strncmp(name, "interlock", 9) == 0 && strspn(name + 9, "0123456789") != 0 &&
           name[9 + strspn(name + 9, "0123456789")] == '-';
}

static void add_paths(char ***paths, size_t *count, const char *folder)
{
    DIR *files = folder != NULL ? opendir(folder) : NULL;
    struct dirent *entry;

    while (files != NULL && (entry = readdir(files)) != NULL) {
        char path[512];
        if (!is_world(entry->d_name) || (size_t)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >= sizeof(path))
            continue;
        *paths = kd_grow(*paths, *count + 1, sizeof(char *));
        (*paths)[(*count)++] = strdup(path);
        (*paths)[*count] = NULL;
    }
    if (files != NULL)
        closedir(files);
}

char **kd_world_paths(void)
{
    const char *own = getenv("XDG_RUNTIME_DIR");
    size_t count = 0;
    char **paths = kd_grow(NULL, 0, sizeof(char *));

    paths[0] = NULL;
    add_paths(&paths, &count, own);
    if (own == NULL || strcmp(own, "/dev/shm") != 0)
        add_paths(&paths, &count, "/dev/shm");
    return paths;
}

static uint8_t *read_file(const char *path, size_t *size)
{
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    uint8_t *bytes = NULL;
    struct stat status;
    size_t done = 0;
    ssize_t part;

    if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        kd_say("%s: cannot be read", path);
    } else if (status.st_size < (off_t)sizeof(WO_WORLD) || (uint64_t)status.st_size > WO_MAXIMUM_SIZE) {
        kd_say("%s: is no world of shared objects", path);
    } else {
        *size = (size_t)status.st_size;
        bytes = kd_allocate(1, *size);
        while (done < *size && (part = pread(file, bytes + done, *size - done, (off_t)done)) > 0)
            done += (size_t)part;
        *size = done;
    }
    if (file >= 0)
        close(file);
    return bytes;
}

/* Records. */

static const void *record_at(reader *r, uint32_t index, WO_KIND kind, size_t needed)
{
    size_t offset = (size_t)index * WO_UNIT;
    const WO_RECORD *record = (const void *)(r->bytes + offset);

    if (index < WO_FIRST_RECORD || offset > r->size - sizeof(WO_RECORD) || record->Kind != kind ||
        record->Class > LARGEST_CLASS || needed > ((size_t)WO_UNIT << record->Class) || needed > r->size - offset) {
        r->world->inconsistent = true;
        return NULL;
    }
    return record;
}

static int find(const kd_index *index, uint32_t record)
{
    return record != 0 ? kd_index_find(index, record) : -1;
}

static void append_wide(char **to, const char *end, const WCHAR *text, size_t length)
{
    for (size_t i = 0; i < length && *to < end - 5; i++) {
        uint32_t character = text[i];

        if (character >= 0xd800 && character < 0xdc00 && i + 1 < length && text[i + 1] >= 0xdc00 && text[i + 1] < 0xe000)
            character = 0x10000 + ((character - 0xd800) << 10) + (text[++i] - 0xdc00u);
        else if (character >= 0xd800 && character < 0xe000)
            character = 0xfffd;
        *to = kd_encode(*to, character);
    }
}

/* Of the name and the directories above it. */
static char *read_path(reader *r, uint32_t name)
{
    const WO_NAME *parts[MOST_DIRECTORIES];
    char raw[KD_MOST_TEXT], clean[2 * KD_MOST_TEXT], *to = raw;
    size_t count = 0;

    while (name != 0 && count < MOST_DIRECTORIES) {
        const WO_NAME *part = record_at(r, name, WoNameRecord, sizeof(WO_NAME));
        const WO_OBJECT *directory;

        if (part == NULL || record_at(r, name, WoNameRecord, sizeof(WO_NAME) + part->Length * sizeof(WCHAR)) == NULL)
            break;
        parts[count++] = part;
        directory = part->Directory != 0 ? record_at(r, part->Directory, WoObjectRecord, sizeof(WO_OBJECT)) : NULL;
        name = directory != NULL ? directory->Name : 0;
    }
    while (count-- != 0) {
        if (to != raw)
            *to++ = '\\';
        append_wide(&to, raw + sizeof(raw) - 1, parts[count]->Text, parts[count]->Length);
        if (to > raw + sizeof(raw) - 8)
            break;
    }
    return strdup(kd_clean(clean, sizeof(clean), raw, (size_t)(to - raw)));
}

static void name_process(kd_world_process *process)
{
    char path[64], text[64];
    ssize_t length = 0;
    int file;

    snprintf(path, sizeof(path), "/proc/%u/comm", process->id);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        length = read(file, text, sizeof(text));
        close(file);
    }
    while (length > 0 && text[length - 1] == '\n')
        length--;
    kd_clean(process->name, sizeof(process->name), text, length > 0 ? (size_t)length : 0);
}

static void add_process(reader *r, uint32_t index)
{
    const WO_PROCESS *raw = record_at(r, index, WoProcessRecord, sizeof(WO_PROCESS));
    kd_world *w = r->world;

    if (raw == NULL || raw->Key == 0) /* prepared for a child */
        return;
    w->processes = kd_grow(w->processes, w->process_count, sizeof(*w->processes));
    w->processes[w->process_count] = (kd_world_process){.index = index, .id = raw->ProcessId, .flags = raw->Flags};
    name_process(&w->processes[w->process_count]);
    kd_index_add(&r->processes, index, (int)w->process_count++);
}

static void add_thread(reader *r, uint32_t index)
{
    const WO_WAITER *raw = record_at(r, index, WoWaiterRecord, sizeof(WO_WAITER));
    kd_world *w = r->world;

    if (raw == NULL)
        return;
    w->threads = kd_grow(w->threads, w->thread_count, sizeof(*w->threads));
    w->threads[w->thread_count] = (kd_world_thread){.index = index,
                                                    .id = raw->ThreadId,
                                                    .waiting = (raw->State & WO_STATE_MASK) == WoWaiting,
                                                    .all = raw->Kind == WoWaitAll,
                                                    .next = -1,
                                                    .cycle = -1};
    kd_index_add(&r->threads, index, (int)w->thread_count++);
}

static void add_object(reader *r, uint32_t index)
{
    const WO_OBJECT *raw = record_at(r, index, WoObjectRecord, sizeof(WO_OBJECT));
    kd_world *w = r->world;
    kd_world_object *o;

    if (raw == NULL)
        return;
    w->objects = kd_grow(w->objects, w->object_count, sizeof(*w->objects));
    o = &w->objects[w->object_count];
    *o = (kd_world_object){.index = index,
                           .type = (unsigned)(raw->Word >> 2 & 0x3f),
                           .state = (int32_t)(raw->Word >> 32),
                           .due = raw->DueTime,
                           .handles = raw->Handles,
                           .owner = -1};
    if (o->type == WoMutant) {
        o->abandoned = (raw->Word & WO_ABANDONED) != 0;
        o->state = raw->Word >> 32 == 0 ? 1 : -(int64_t)raw->Recursion;
    }
    o->name = raw->Name != 0 ? read_path(r, raw->Name) : NULL;
    kd_index_add(&r->objects, index, (int)w->object_count++);
}

static void read_records(reader *r)
{
    const WO_WORLD *header = (const void *)r->bytes;
    uint64_t end = header->Top < r->size ? header->Top : r->size;
    uint32_t index = WO_FIRST_RECORD;

    while ((uint64_t)index * WO_UNIT + sizeof(WO_RECORD) <= end) {
        const WO_RECORD *record = (const void *)(r->bytes + (size_t)index * WO_UNIT);

        if (record->Class > LARGEST_CLASS) {
            r->world->inconsistent = true;
            return;
        }
        if (record->Kind == WoProcessRecord)
            add_process(r, index);
        else if (record->Kind == WoWaiterRecord)
            add_thread(r, index);
        else if (record->Kind == WoObjectRecord)
            add_object(r, index);
        index += 1u << record->Class;
    }
}

/* What refers to what. */

static void append(int **list, size_t *count, int item)
{
    *list = kd_grow(*list, *count, sizeof(int));
    (*list)[(*count)++] = item;
}

static void connect_thread(reader *r, kd_world_thread *t)
{
    const WO_WAITER *raw = record_at(r, t->index, WoWaiterRecord, sizeof(WO_WAITER));

    t->process = find(&r->processes, raw->Process);
    for (unsigned i = 0; t->waiting && i < raw->Count && i < WO_BLOCKS; i++) {
        int object = find(&r->objects, raw->Block[i].Object);
        if (object >= 0)
            append(&t->objects, &t->object_count, object);
    }
}

static void connect_waiters(reader *r, kd_world_object *o, const WO_OBJECT *raw)
{
    uint32_t block = raw->Waiters.First;

    for (size_t left = r->world->thread_count * WO_BLOCKS; block != 0 && left != 0; left--) {
        int thread = find(&r->threads, block / WO_BLOCKS);
        const WO_WAITER *waiter =
            thread >= 0 ? record_at(r, block / WO_BLOCKS, WoWaiterRecord, sizeof(WO_WAITER)) : NULL;

        if (waiter == NULL)
            return;
        append(&o->waiters, &o->waiter_count, thread);
        block = waiter->Block[block % WO_BLOCKS].Next;
    }
}

static void connect_holders(reader *r, kd_world_object *o, const WO_OBJECT *raw)
{
    uint32_t index = raw->FirstReference;

    for (size_t left = r->world->process_count + 1; index != 0 && left != 0; left--) {
        const WO_REFERENCE *reference = record_at(r, index, WoReferenceRecord, sizeof(WO_REFERENCE));
        int process = reference != NULL ? find(&r->processes, reference->Process) : -1;

        if (reference == NULL)
            return;
        if (process >= 0) {
            append(&o->holders, &o->holder_count, process);
            r->world->processes[process].objects++;
            r->world->processes[process].handles += reference->Handles;
        }
        index = reference->NextOfObject;
    }
}

static void connect(reader *r)
{
    for (size_t i = 0; i < r->world->thread_count; i++)
        connect_thread(r, &r->world->threads[i]);
    for (size_t i = 0; i < r->world->object_count; i++) {
        kd_world_object *o = &r->world->objects[i];
        const WO_OBJECT *raw = record_at(r, o->index, WoObjectRecord, sizeof(WO_OBJECT));

        connect_waiters(r, o, raw);
        connect_holders(r, o, raw);
        if (o->type == WoMutant)
            o->owner = find(&r->threads, (uint32_t)(raw->Word >> 32));
    }
}

/*
 * Deadlocks. A thread can proceed if it does not wait here, or if what it waits for can be signaled: anything but a mutant
 * whose owner cannot proceed. The threads that are left wait for each other.
 */
static bool can_come(const kd_world *w, int object, const bool *proceeds)
{
    return w->objects[object].owner < 0 || proceeds[w->objects[object].owner];
}

static bool can_proceed(const kd_world *w, const kd_world_thread *t, const bool *proceeds)
{
    size_t coming = 0;

    for (size_t i = 0; i < t->object_count; i++)
        coming += can_come(w, t->objects[i], proceeds);
    return !t->waiting || t->object_count == 0 || (t->all ? coming == t->object_count : coming != 0);
}

static void follow(kd_world *w, int start, const bool *proceeds)
{
    int thread = start;

    while (thread >= 0 && w->threads[thread].cycle < 0 && w->threads[thread].next < 0) {
        kd_world_thread *t = &w->threads[thread];

        for (size_t i = 0; i < t->object_count && t->next < 0; i++)
            if (!can_come(w, t->objects[i], proceeds))
                t->next = w->objects[t->objects[i]].owner;
        thread = t->next;
    }
    if (thread < 0 || w->threads[thread].cycle >= 0)
        return;
    for (int member = thread; w->threads[member].cycle < 0; member = w->threads[member].next)
        w->threads[member].cycle = (int)w->cycle_count;
    w->cycle_count++;
}

static void find_deadlocks(kd_world *w)
{
    bool *proceeds = kd_allocate(w->thread_count + 1, sizeof(bool)), changed = true;

    while (changed) {
        changed = false;
        for (size_t i = 0; i < w->thread_count; i++)
            if (!proceeds[i] && can_proceed(w, &w->threads[i], proceeds))
                changed = proceeds[i] = true;
    }
    for (size_t i = 0; i < w->thread_count; i++)
        if (!proceeds[i])
            follow(w, (int)i, proceeds);
    free(proceeds);
}

kd_world *kd_world_read(const char *path)
{
    size_t size = 0;
    uint8_t *bytes = read_file(path, &size);
    const WO_WORLD *header = (const void *)bytes;
    reader r = {.bytes = bytes, .size = size};

    if (bytes == NULL || size < sizeof(WO_WORLD) || header->Magic != WO_MAGIC || header->Version != WO_VERSION) {
        if (bytes != NULL)
            kd_say("%s: is no world of shared objects, or one of another version", path);
        free(bytes);
        return NULL;
    }
    r.world = kd_allocate(1, sizeof(kd_world));
    kd_copy(r.world->path, sizeof(r.world->path), path, sizeof(r.world->path));
    r.world->state = header->State;
    r.world->size = size;
    r.world->used = header->Used;
    read_records(&r);
    connect(&r);
    find_deadlocks(r.world);
    kd_index_free(&r.processes);
    kd_index_free(&r.threads);
    kd_index_free(&r.objects);
    free(bytes);
    return r.world;
}

void kd_world_free(kd_world *w)
{
    for (size_t i = 0; i < w->thread_count; i++)
        free(w->threads[i].objects);
    for (size_t i = 0; i < w->object_count; i++) {
        free(w->objects[i].name);
        free(w->objects[i].holders);
        free(w->objects[i].waiters);
    }
    free(w->processes);
    free(w->threads);
    free(w->objects);
    free(w);
}
