/* handles.c: the handle table and the names of objects. */
#include "kd.h"

#include <stdlib.h>
#include <string.h>

#define MOST_DIRECTORIES 32
#define TYPE_SIZE 64
#define PATH_SIZE 512

typedef struct type {
    const char *name;
    int64_t wait_offset; /* OBP_ALWAYS_SIGNALED: nothing to wait for */
} type;

/* Data shared by many handles. */
typedef struct reader {
    kd_snapshot *snapshot;
    kd_index types_by_address, paths_by_directory, leaves;
    type *types;
    size_t type_count;
    const char **paths;
    size_t path_count;
} reader;

static bool read_name_info(kd_target *target, const OBJECT_HEADER *header, OBJECT_HEADER_NAME_INFO *info)
{
    return header->NameInfo != NULL && kd_read(target, KD_ADDRESS(header->NameInfo), info, sizeof(*info)) &&
           (info->Directory != NULL || info->Share != NULL);
}

static const char *path_of(reader *r, const OBJECT_HEADER *header, int depth, char buffer[PATH_SIZE]);

/* The path of a directory, kept because many names are in few directories. */
static const char *directory_path(reader *r, kd_address body, int depth)
{
    int known = kd_index_find(&r->paths_by_directory, body);
    char buffer[PATH_SIZE];
    OBJECT_HEADER header;
    const char *path = "";

    if (known >= 0)
        return r->paths[known];
    if (depth >= MOST_DIRECTORIES)
        kd_inconsistent(r->snapshot, "directory", body, "directories contain each other");
    else if (kd_read(r->snapshot->target, body - sizeof(header), &header, sizeof(header)))
        path = kd_keep(r->snapshot, path_of(r, &header, depth + 1, buffer));
    /* directories that contain each other were reported before */
    if (kd_spend_memory(r->snapshot->target, KD_INDEX_COST) &&
        kd_index_add(&r->paths_by_directory, body, (int)r->path_count)) {
        r->paths = kd_grow(r->paths, r->path_count, sizeof(*r->paths));
        r->paths[r->path_count++] = path;
    }
    return path;
}

/* The whole path, from the root directory on, or "". */
static const char *path_of(reader *r, const OBJECT_HEADER *header, int depth, char buffer[PATH_SIZE])
{
    OBJECT_HEADER_NAME_INFO info;
    char name[PATH_SIZE], path[2 * PATH_SIZE];

    buffer[0] = '\0';
    if (!read_name_info(r->snapshot->target, header, &info))
        return buffer;
    kd_read_wide(r->snapshot->target, KD_ADDRESS(header->NameInfo) + offsetof(OBJECT_HEADER_NAME_INFO, Name),
                 info.Length, name, sizeof(name));
    if (info.Directory == NULL)
        return kd_copy(buffer, PATH_SIZE, name, sizeof(name)); /* the proxy of a shared object has its path */
    snprintf(path, sizeof(path), "%s\\%s", directory_path(r, KD_ADDRESS(info.Directory), depth), name);
    return kd_copy(buffer, PATH_SIZE, path, PATH_SIZE);
}

static const type *type_at(reader *r, kd_address address)
{
    int known = kd_index_find(&r->types_by_address, address);
    OBJECT_TYPE raw;
    char name[TYPE_SIZE];

    if (known >= 0)
        return &r->types[known];
    if (!kd_read(r->snapshot->target, address, &raw, sizeof(raw)) ||
        !kd_spend_memory(r->snapshot->target, sizeof(type) + KD_INDEX_COST))
        return NULL;
    kd_read_string(r->snapshot->target, KD_ADDRESS(raw.Name), name, sizeof(name));
    kd_index_add(&r->types_by_address, address, (int)r->type_count);
    r->types = kd_grow(r->types, r->type_count, sizeof(type));
    r->types[r->type_count] = (type){.name = kd_keep(r->snapshot, name), .wait_offset = raw.WaitOffset};
    return &r->types[r->type_count++];
}

/* The process may have closed it since the table was read. */
static bool is_still_open(kd_snapshot *snapshot, kd_address at, const OBP_HANDLE_ENTRY *entry)
{
    OBP_HANDLE_ENTRY now;

    return kd_read(snapshot->target, at, &now, sizeof(now)) && now.Object == entry->Object;
}

/* FALSE: there are too many. */
static bool add_handle(reader *r, uint64_t number, kd_address at, const OBP_HANDLE_ENTRY *entry)
{
    kd_snapshot *snapshot = r->snapshot;
    kd_target *target = snapshot->target;
    kd_handle handle = {.handle = KD_ADDRESS(ObpHandleOfIndex((ULONG)number)), .body = entry->Object & OBP_ADDRESS, .access = (uint32_t)entry->Access,
                        .lock = -1};
    char path[PATH_SIZE];
    OBJECT_HEADER header;
    const type *kind;

    if (handle.body < sizeof(header) || !kd_read(target, handle.body - sizeof(header), &header, sizeof(header)) ||
        (kind = type_at(r, KD_ADDRESS(header.Type))) == NULL) {
        if (is_still_open(snapshot, at, entry))
            kd_inconsistent(snapshot, "handle", at, "there is no object");
        return !kd_is_spent(target);
    }
    kd_spend_memory(target, 2 * sizeof(kd_handle) + 2 * KD_INDEX_COST);
    if (!kd_has_left(target, KD_BEHIND_HANDLES)) {
        kd_inconsistent(snapshot, "handles", at, "there are too many to inspect all of them");
        return false;
    }
    handle.type = kind->name;
    handle.inherit = (entry->Object & OBP_INHERIT) != 0;
    handle.protect = (entry->Object & OBP_PROTECT) != 0;
    handle.handle_count = ObpHandlesOf(header.HandleCount);
    handle.pointer_count = header.PointerCount;
    handle.header = kind->wait_offset != OBP_ALWAYS_SIGNALED ? handle.body + (kd_address)kind->wait_offset : 0;
    handle.name = kd_keep(snapshot, path_of(r, &header, 0, path));
    kd_index_add(&snapshot->handles_by_header, handle.header, (int)snapshot->handle_count);
    kd_index_add(&snapshot->handles_by_body, handle.body, (int)snapshot->handle_count);
    snapshot->handles = kd_grow(snapshot->handles, snapshot->handle_count, sizeof(kd_handle));
    snapshot->handles[snapshot->handle_count++] = handle;
    return true;
}

static bool collect_leaf(reader *r, kd_address address, uint64_t first)
{
    static OBP_LEAF_TABLE leaf;

    if (!kd_index_add(&r->leaves, address, 0) || !kd_read(r->snapshot->target, address, &leaf, sizeof(leaf))) {
        kd_inconsistent(r->snapshot, "handle table", address, "a part of it cannot be read, or occurs twice");
        return !kd_is_spent(r->snapshot->target);
    }
    for (uint64_t i = 0; i < OBP_LEAF; i++)
        if (leaf.Entry[i].Object != 0 && !add_handle(r, first + i, address + i * sizeof(leaf.Entry[0]), &leaf.Entry[i]))
            return false;
    return true;
}

static void collect_branches(reader *r, const kd_address root[OBP_ROOT])
{
    kd_address branch[OBP_BRANCH];

    for (uint64_t n = 0; n < OBP_ROOT; n++) {
        if (root[n] == 0)
            continue;
        if (!kd_index_add(&r->leaves, root[n], 0) || !kd_read(r->snapshot->target, root[n], branch, sizeof(branch))) {
            kd_inconsistent(r->snapshot, "handle table", root[n], "a part of it cannot be read, or occurs twice");
            continue;
        }
        for (uint64_t b = 0; b < OBP_BRANCH; b++)
            if (branch[b] != 0 && !collect_leaf(r, branch[b], (n * OBP_BRANCH + b) * OBP_LEAF))
                return;
    }
}

void kd_collect_handles(kd_snapshot *snapshot)
{
    kd_address root[OBP_ROOT], at = kd_root(snapshot->target, "ObpRoot", NULL);
    reader r = {.snapshot = snapshot};

    if (at == 0) /* a static program without handles */
        return;
    if (kd_read(snapshot->target, at, root, sizeof(root)))
        collect_branches(&r, root);
    else
        kd_inconsistent(snapshot, "handle table", at, "it cannot be read");
    kd_index_free(&r.types_by_address);
    kd_index_free(&r.paths_by_directory);
    kd_index_free(&r.leaves);
    free(r.types);
    free(r.paths);
}

const kd_handle *kd_handle_of_header(const kd_snapshot *snapshot, kd_address header)
{
    int found = header != 0 ? kd_index_find(&snapshot->handles_by_header, header) : -1;

    return found >= 0 ? &snapshot->handles[found] : NULL;
}

const kd_handle *kd_handle_of_body(const kd_snapshot *snapshot, kd_address body)
{
    int found = kd_index_find(&snapshot->handles_by_body, body);

    return found >= 0 ? &snapshot->handles[found] : NULL;
}

static int by_value(const void *one, const void *other)
{
    uint64_t value = *(const uint64_t *)one, handle = ((const kd_handle *)other)->handle;

    return value < handle ? -1 : value > handle;
}

/* Handles are in the order of their values. */
const kd_handle *kd_handle_with_value(const kd_snapshot *snapshot, uint64_t handle)
{
    return snapshot->handle_count != 0
               ? bsearch(&handle, snapshot->handles, snapshot->handle_count, sizeof(kd_handle), by_value) : NULL;
}
