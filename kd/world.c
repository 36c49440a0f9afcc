/* world.c: reading a world of shared objects. */
#include "world.h"

#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_DIRECTORIES 64 /* in a path */
#define LARGEST_CLASS (WO_CLASSES - 1)

#define MOST_NAMED 4096    /* processes: their names come from the host */
#define MOST_FOLDERS 1024
#define READ_SECONDS 15
#define CHUNK ((size_t)1 << 20)

typedef struct reader {
    kd_world *world;
    const uint8_t *bytes;
    size_t size;
    kd_index references; /* that have been visited */
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

/* Finding the files. */

/* interlock<version>-<user>-<namespace>-<session>, or interlock<version>-machine-<namespace> */
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

/* Adds the worlds of other users, if they are readable. */
static void add_users(char ***paths, size_t *count, const char *own)
{
    DIR *users = opendir("/run/user");
    struct dirent *entry;

    for (int left = MOST_FOLDERS; users != NULL && left != 0 && (entry = readdir(users)) != NULL; left--) {
        char folder[300];
        snprintf(folder, sizeof(folder), "/run/user/%s", entry->d_name);
        if (entry->d_name[0] != '.' && (own == NULL || strcmp(own, folder) != 0))
            add_paths(paths, count, folder);
    }
    if (users != NULL)
        closedir(users);
}

static int by_text(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
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
    add_users(&paths, &count, own);
    qsort(paths, count, sizeof(char *), by_text);
    return paths;
}

/* map.c spells a session: %XX is a byte. */
char *kd_world_session(const char *path, char *buffer, size_t size)
{
    const char *name = strrchr(path, '/');
    char raw[256];
    size_t length = 0;

    buffer[0] = '\0';
    name = name != NULL ? name + 1 : path;
    for (int part = 0; part < 3 && name != NULL; part++) {
        name = strchr(name, '-');
        name = name != NULL ? name + 1 : NULL;
    }
    for (; name != NULL && *name != '\0' && length < sizeof(raw); length++) {
        unsigned byte = 0;
        int read = 0;
        if (name[0] == '%' && sscanf(name + 1, "%2x%n", &byte, &read) == 1 && read == 2) {
            raw[length] = (char)byte;
            name += 3;
        } else {
            raw[length] = *name++;
        }
    }
    return kd_clean(buffer, size, raw, length);
}

/* Reading. */

uint8_t *kd_world_allocate(size_t size)
{
    void *bytes = NULL;

    if (posix_memalign(&bytes, _Alignof(WO_WORLD), size) != 0)
        kd_no_memory();
    return memset(bytes, 0, size);
}

static size_t bytes_in_use(const WO_WORLD *header, size_t most)
{
    return header->Top >= sizeof(WO_WORLD) && header->Top < most ? (size_t)header->Top : most;
}

static size_t read_bytes(int file, uint8_t *bytes, size_t size)
{
    size_t done = 0;
    ssize_t part;

    kd_guard_begin(READ_SECONDS, "reading the file of a world is blocked");
    while (done < size && (part = pread(file, bytes + done, size - done, (off_t)done)) > 0)
        done += (size_t)part;
    kd_guard_end();
    return done;
}

/* Only what is in use: the file may be much larger. */
static uint8_t *read_file(int file, size_t *size)
{
    uint8_t *bytes = kd_world_allocate(sizeof(WO_WORLD));
    size_t used;

    if (read_bytes(file, bytes, sizeof(WO_WORLD)) != sizeof(WO_WORLD)) {
        free(bytes);
        return NULL;
    }
    used = bytes_in_use((const void *)bytes, *size);
    free(bytes);
    bytes = kd_world_allocate(used);
    *size = read_bytes(file, bytes, used);
    return bytes;
}

static bool is_same_kind(const uint8_t *bytes, size_t size)
{
    const WO_WORLD *header = (const void *)bytes;

    return size >= sizeof(WO_WORLD) && header->Magic == WO_MAGIC && header->Version == WO_VERSION &&
           header->Bits == sizeof(void *) * 8;
}

kd_world *kd_world_read(const char *path, bool quiet)
{
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    kd_world *world = NULL;
    struct stat status;
    const char *why = NULL;

    kd_guard_start(false);
    if (file < 0 || fstat(file, &status) != 0) {
        why = strerror(errno);
    } else if (!S_ISREG(status.st_mode) || status.st_size < (off_t)sizeof(WO_WORLD) ||
               (uint64_t)status.st_size > WO_MAXIMUM_SIZE) {
        why = "it is not a world of shared objects";
    } else {
        size_t size = (size_t)status.st_size;
        uint8_t *bytes = read_file(file, &size);
        world = bytes != NULL ? kd_world_parse(bytes, size, path) : NULL;
        why = world == NULL ? "it is not a world of shared objects, or one of another version" : NULL;
    }
    if (world != NULL) {
        world->file = (HAL_FILE_ID){status.st_dev, status.st_ino};
        world->size = (uint64_t)status.st_size;
    }
    if (file >= 0)
        close(file);
    if (why != NULL && !quiet)
        kd_say("%s: %s", path, why);
    return world;
}

static bool read_chunks(kd_target *target, kd_address from, uint8_t *bytes, size_t size)
{
    for (size_t done = 0; done < size; done += CHUNK)
        if (!kd_read(target, from + done, bytes + done, size - done < CHUNK ? size - done : CHUNK))
            return false;
    return true;
}

kd_world *kd_world_of_process(kd_target *target, const WO_VIEW *view)
{
    uint8_t *bytes = kd_world_allocate(sizeof(WO_WORLD));
    char path[2 * sizeof(view->Path)];
    kd_world *world = NULL;
    size_t size = 0;

    if (read_chunks(target, KD_ADDRESS(view->World), bytes, sizeof(WO_WORLD)))
        size = bytes_in_use((const void *)bytes, WO_MAXIMUM_SIZE);
    free(bytes);
    if (size == 0 || !kd_spend_memory(target, 2 * size))
        return NULL;
    bytes = kd_world_allocate(size);
    kd_clean(path, sizeof(path), view->Path, sizeof(view->Path));
    if (read_chunks(target, KD_ADDRESS(view->World), bytes, size))
        world = kd_world_parse(bytes, size, path);
    else
        free(bytes);
    if (world != NULL)
        world->file = view->File;
    return world;
}

/* Records. */

static const void *record_at(reader *r, uint32_t index, WO_KIND kind, size_t needed)
{
    size_t offset = (size_t)index * WO_UNIT;
    const WO_RECORD *record = NULL;

    if (index >= WO_FIRST_RECORD && offset <= r->size && needed <= r->size - offset)
        record = (const void *)(r->bytes + offset);
    if (record == NULL || record->Kind != kind || record->Class > LARGEST_CLASS ||
        needed > ((size_t)WO_UNIT << record->Class)) {
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
        else if ((character >= 0xd800 && character < 0xe000) || character == 0) /* its length ends the text */
            character = 0xfffd;
        *to = kd_encode(*to, character);
    }
}

/* The path of the name and the directories above it. */
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

/* The host's information about it; the process itself is not inspected. */
static void ask_host(kd_world_process *process)
{
    char path[64], text[512];
    const char *begin, *end;
    ssize_t length = 0;
    int file;

    snprintf(path, sizeof(path), "/proc/%u/stat", process->id);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        length = read(file, text, sizeof(text) - 1);
        close(file);
    }
    text[length > 0 ? length : 0] = '\0';
    begin = strchr(text, '(');
    end = strrchr(text, ')');
    process->dead = begin == NULL || end == NULL || end < begin || end[1] != ' ' || end[2] == 'Z' || end[2] == 'X';
    process->stopped = !process->dead && (end[2] == 'T' || end[2] == 't');
    if (begin != NULL && end != NULL && begin < end)
        kd_clean(process->name, sizeof(process->name), begin + 1, (size_t)(end - begin - 1));
}

static void add_process(reader *r, uint32_t index)
{
    const WO_PROCESS *raw = record_at(r, index, WoProcessRecord, sizeof(WO_PROCESS));
    kd_world *w = r->world;

    if (raw == NULL || raw->Key == 0) /* prepared for a child */
        return;
    w->processes = kd_grow(w->processes, w->process_count, sizeof(*w->processes));
    w->processes[w->process_count] = (kd_world_process){.index = index, .id = raw->ProcessId, .key = raw->Key,
                                                           .flags = raw->Flags, .dead = true};
    if (w->process_count < MOST_NAMED)
        ask_host(&w->processes[w->process_count]);
    kd_index_add(&w->processes_by_record, index, (int)w->process_count++);
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
                                                    .mixed = raw->Mixed != 0,
                                                    .number = raw->State,
                                                    .process = -1,
                                                    .thread = -1};
    kd_index_add(&w->threads_by_record, index, (int)w->thread_count++);
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
                           .period = raw->Period,
                           .limit = raw->Limit,
                           .handles = raw->Handles,
                           .owner = -1,
                           .lock = -1};
    if (o->type == WoMutant) {
        o->abandoned = (raw->Word & WO_ABANDONED) != 0;
        o->state = raw->Word >> 32 == 0 ? 1 : -(int64_t)raw->Recursion;
    }
    o->name = raw->Name != 0 ? read_path(r, raw->Name) : NULL;
    kd_index_add(&w->objects_by_record, index, (int)w->object_count++);
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

static uint64_t id_key(uint32_t process, uint32_t thread)
{
    return (uint64_t)process << 32 | thread;
}

/* A wait for a missing object was read while it changed: it is ignored. */
static void connect_thread(reader *r, int index)
{
    kd_world *w = r->world;
    kd_world_thread *t = &w->threads[index];
    const WO_WAITER *raw = record_at(r, t->index, WoWaiterRecord, sizeof(WO_WAITER));

    t->process = find(&w->processes_by_record, raw->Process);
    if (t->process >= 0 && t->id != 0)
        kd_index_add(&w->threads_by_id, id_key(w->processes[t->process].id, t->id), index);
    for (unsigned i = 0; t->waiting && i < raw->Count && i < WO_BLOCKS; i++) {
        int object = find(&w->objects_by_record, raw->Block[i].Object);
        if (object >= 0)
            append(&t->objects, &t->object_count, object);
        else
            t->waiting = false;
    }
    w->inconsistent = w->inconsistent || raw->Count > WO_BLOCKS;
}

/* A block is in one list, once. */
static void connect_waiters(reader *r, kd_world_object *o, const WO_OBJECT *raw)
{
    kd_world *w = r->world;
    uint32_t block = raw->Waiters.First;

    while (block != 0) {
        int thread = find(&w->threads_by_record, block / WO_BLOCKS);
        uint64_t bit = 1ull << block % WO_BLOCKS;
        const WO_WAITER *waiter;

        if (thread < 0 || (w->threads[thread].seen & bit) != 0) {
            w->inconsistent = true;
            return;
        }
        w->threads[thread].seen |= bit;
        append(&o->waiters, &o->waiter_count, thread);
        waiter = record_at(r, block / WO_BLOCKS, WoWaiterRecord, sizeof(WO_WAITER));
        block = waiter->Block[block % WO_BLOCKS].Next;
    }
}

static void connect_holders(reader *r, kd_world_object *o, const WO_OBJECT *raw)
{
    kd_world *w = r->world;
    uint32_t index = raw->FirstReference;

    while (index != 0) {
        const WO_REFERENCE *reference = record_at(r, index, WoReferenceRecord, sizeof(WO_REFERENCE));
        int process;

        if (reference == NULL || !kd_index_add(&r->references, index, 0)) {
            w->inconsistent = true;
            return;
        }
        process = find(&w->processes_by_record, reference->Process);
        if (process >= 0) {
            append(&o->holders, &o->holder_count, process);
            w->processes[process].objects++;
            w->processes[process].handles += reference->Handles;
        }
        index = reference->NextOfObject;
    }
}

static void connect(reader *r)
{
    kd_world *w = r->world;

    for (size_t i = 0; i < w->thread_count; i++)
        connect_thread(r, (int)i);
    for (size_t i = 0; i < w->object_count; i++) {
        kd_world_object *o = &w->objects[i];
        const WO_OBJECT *raw = record_at(r, o->index, WoObjectRecord, sizeof(WO_OBJECT));

        connect_waiters(r, o, raw);
        connect_holders(r, o, raw);
        if (o->type == WoMutant)
            o->owner = find(&w->threads_by_record, (uint32_t)(raw->Word >> 32));
    }
}

static bool is_machine(const char *path)
{
    const char *name = strrchr(path, '/');

    name = name != NULL ? strchr(name, '-') : NULL;
    return name != NULL && strncmp(name, "-machine-", 9) == 0;
}

kd_world *kd_world_parse(uint8_t *bytes, size_t size, const char *path)
{
    const WO_WORLD *header = (const void *)bytes;
    reader r = {.bytes = bytes, .size = size};

    if (is_same_kind(bytes, size)) {
        r.world = kd_allocate(1, sizeof(kd_world));
        kd_clean(r.world->path, sizeof(r.world->path), path, strlen(path));
        r.world->state = header->State;
        r.world->machine = is_machine(path);
        r.world->size = size;
        r.world->used = header->Used;
        r.world->locked_by = (uint32_t)(header->Lock & ((1ull << HAL_PROCESS_ID_BITS) - 1));
        read_records(&r);
        connect(&r);
        kd_index_free(&r.references);
    }
    free(bytes);
    return r.world;
}

int kd_world_object_at(const kd_world *w, uint32_t record)
{
    return find(&w->objects_by_record, record);
}

int kd_world_thread_with_id(const kd_world *w, uint32_t process, uint32_t thread)
{
    return kd_index_find(&w->threads_by_id, id_key(process, thread));
}

void kd_world_free(kd_world *w)
{
    if (w == NULL)
        return;
    for (size_t i = 0; i < w->thread_count; i++)
        free(w->threads[i].objects);
    for (size_t i = 0; i < w->object_count; i++) {
        free(w->objects[i].name);
        free(w->objects[i].holders);
        free(w->objects[i].waiters);
    }
    kd_index_free(&w->processes_by_record);
    kd_index_free(&w->threads_by_record);
    kd_index_free(&w->objects_by_record);
    kd_index_free(&w->threads_by_id);
    free(w->processes);
    free(w->threads);
    free(w->objects);
    free(w);
}
