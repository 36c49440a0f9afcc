/* handles.c: the handle table and the names of objects. */
#include "kd.h"

#include <stdlib.h>
#include <string.h>

#define MOST_DIRECTORIES 32

static bool read_name_info(kd_target *target, kd_address body, kd_address *at, OBJECT_HEADER_NAME_INFO *info)
{
    OBJECT_HEADER header;

    if (!kd_read(target, body - sizeof(OBJECT_HEADER), &header, sizeof(header)))
        return false;
    *at = KD_ADDRESS(header.NameInfo);
    return *at != 0 && kd_read(target, *at, info, sizeof(*info)) && info->Directory != NULL;
}

/* The whole path, from the root directory on. */
bool kd_object_name(kd_target *target, kd_address body, char *buffer, size_t size)
{
    char path[512] = "", longer[1100], part[512];
    OBJECT_HEADER_NAME_INFO info;
    kd_address at;

    for (int depth = 0; depth < MOST_DIRECTORIES && read_name_info(target, body, &at, &info); depth++) {
        kd_utf8(target, at + offsetof(OBJECT_HEADER_NAME_INFO, Name), info.Length, part, sizeof(part));
        snprintf(longer, sizeof(longer), "\\%s%s", part, path);
        snprintf(path, sizeof(path), "%.511s", longer);
        body = KD_ADDRESS(info.Directory);
    }
    snprintf(buffer, size, "%s", path);
    return path[0] != '\0';
}

static void add_handle(kd_snapshot *snapshot, uint64_t index, const OBP_HANDLE_ENTRY *entry)
{
    kd_target *target = snapshot->target;
    kd_handle handle = {.handle = index * 4, .body = entry->Object & OBP_ADDRESS, .access = (uint32_t)entry->Access};
    OBJECT_HEADER header;
    OBJECT_TYPE type;

    if (handle.body == 0 || !kd_read(target, handle.body - sizeof(header), &header, sizeof(header)) ||
        !kd_read(target, KD_ADDRESS(header.Type), &type, sizeof(type)))
        return;
    kd_read_string(target, KD_ADDRESS(type.Name), handle.type, sizeof(handle.type));
    handle.inherit = (entry->Object & OBP_INHERIT) != 0;
    handle.protect = (entry->Object & OBP_PROTECT) != 0;
    handle.handle_count = header.HandleCount;
    handle.pointer_count = header.PointerCount;
    handle.header = type.WaitOffset != OBP_ALWAYS_SIGNALED ? handle.body + (kd_address)type.WaitOffset : 0;
    kd_object_name(target, handle.body, handle.name, sizeof(handle.name));
    snapshot->handles = kd_grow(snapshot->handles, snapshot->handle_count, sizeof(kd_handle));
    snapshot->handles[snapshot->handle_count++] = handle;
}

static void collect_leaf(kd_snapshot *snapshot, kd_address address, uint64_t first)
{
    OBP_LEAF_TABLE *leaf = malloc(sizeof(*leaf));

    if (leaf != NULL && kd_read(snapshot->target, address, leaf, sizeof(*leaf)))
        for (uint64_t i = 0; i < OBP_LEAF; i++)
            if (leaf->Entry[i].Object != 0)
                add_handle(snapshot, first + i, &leaf->Entry[i]);
    free(leaf);
}

void kd_collect_handles(kd_snapshot *snapshot)
{
    kd_address root[OBP_ROOT], branch[OBP_BRANCH];
    kd_address at = kd_root(snapshot->target, "ObpRoot", NULL);

    if (!kd_read(snapshot->target, at, root, sizeof(root)))
        return;
    for (uint64_t r = 0; r < OBP_ROOT; r++) {
        if (root[r] == 0 || !kd_read(snapshot->target, root[r], branch, sizeof(branch)))
            continue;
        for (uint64_t b = 0; b < OBP_BRANCH; b++)
            if (branch[b] != 0)
                collect_leaf(snapshot, branch[b], (r * OBP_BRANCH + b) * OBP_LEAF);
    }
}

const kd_handle *kd_handle_of_header(const kd_snapshot *snapshot, kd_address header)
{
    for (size_t i = 0; header != 0 && i < snapshot->handle_count; i++)
        if (snapshot->handles[i].header == header)
            return &snapshot->handles[i];
    return NULL;
}

const kd_handle *kd_handle_with_value(const kd_snapshot *snapshot, uint64_t handle)
{
    for (size_t i = 0; i < snapshot->handle_count; i++)
        if (snapshot->handles[i].handle == handle)
            return &snapshot->handles[i];
    return NULL;
}
