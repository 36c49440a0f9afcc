/*
 * tree.c: reads the sources below a folder.
 *
 * The tree is not trusted: symbolic links below it are not followed, only ordinary files are read, and there are limits for
 * the size of a file and the depth of folders. Skipped files are counted.
 */
#include "tree.h"
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_DEPTH 100

static const char *const source_suffixes[] = {"c", "cc", "cpp", "cxx", "c++", "cppm", "ixx", "m", "mm", NULL};
static const char *const header_suffixes[] = {"h", "hh", "hpp", "hxx", "h++", "inl", "inc", "ipp", "tpp", "tcc", NULL};

static void *or_abort(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

static void *grown(void *memory, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity)
        return memory;
    *capacity = *capacity * 2 + 8;
    return or_abort(realloc(memory, *capacity * size));
}

void tree_add_place(places *list, place at)
{
    list->place = grown(list->place, &list->capacity, list->count, sizeof(*list->place));
    list->place[list->count++] = at;
}

/* Names. */

static char **find_slot(const name_set *set, const char *name, size_t length)
{
    size_t hash = 5381;

    for (size_t i = 0; i < length; i++)
        hash = hash * 33 + (unsigned char)name[i];
    for (size_t i = hash;; i++) {
        char **slot = &set->slot[i & (set->capacity - 1)];

        if (*slot == NULL || (strncmp(*slot, name, length) == 0 && (*slot)[length] == '\0'))
            return slot;
    }
}

static void resize_set(name_set *set)
{
    name_set larger = {.capacity = set->capacity == 0 ? 64 : set->capacity * 2, .count = set->count};

    larger.slot = or_abort(calloc(larger.capacity, sizeof(*larger.slot)));
    for (size_t i = 0; i < set->capacity; i++)
        if (set->slot[i] != NULL)
            *find_slot(&larger, set->slot[i], strlen(set->slot[i])) = set->slot[i];
    free(set->slot);
    *set = larger;
}

void name_set_add(name_set *set, const char *name, size_t length)
{
    char **slot;

    if (set->count * 2 >= set->capacity)
        resize_set(set);
    slot = find_slot(set, name, length);
    if (*slot == NULL) {
        *slot = or_abort(strndup(name, length));
        set->count++;
    }
}

bool name_set_has(const name_set *set, const char *name, size_t length)
{
    return set->capacity != 0 && *find_slot(set, name, length) != NULL;
}

void name_set_free(name_set *set)
{
    for (size_t i = 0; i < set->capacity; i++)
        free(set->slot[i]);
    free(set->slot);
}

size_t tree_find(const sdk_name *table, size_t count, const char *name, size_t length)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strncmp(table[middle].name, name, length);

        if (order == 0)
            order = table[middle].name[length] != '\0';
        if (order == 0)
            return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return count;
}

/* Files. */

static bool has_suffix(const char *name, const char *const *suffixes)
{
    const char *dot = strrchr(name, '.');

    for (; dot != NULL && *suffixes != NULL; suffixes++)
        if (strcasecmp(dot + 1, *suffixes) == 0)
            return true;
    return false;
}

/* The contents, with room for one byte more; NULL: it cannot be read, or is too large, or is not a file. */
static char *read_file(tree *self, int descriptor, size_t *length)
{
    struct stat status;
    char *text;
    ssize_t bytes;

    *length = 0;
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        self->unreadable++;
        return NULL;
    }
    if (status.st_size > SOURCE_MOST_BYTES) {
        self->too_large++;
        return NULL;
    }
    text = or_abort(malloc((size_t)status.st_size + 1));
    while (*length < (size_t)status.st_size &&
           (bytes = read(descriptor, text + *length, (size_t)status.st_size - *length)) > 0)
        *length += (size_t)bytes;
    return text;
}

static bool is_binary(const char *text, size_t length)
{
    bool is_wide = length >= 2 && memcmp(text, "\xff\xfe", 2) == 0;

    return !is_wide && memchr(text, '\0', length < 8192 ? length : 8192) != NULL;
}

static void add_file(tree *self, const char *path)
{
    char clean[PATH_MAX];

    self->files = grown(self->files, &self->file_capacity, self->file_count, sizeof(*self->files));
    self->files[self->file_count++] = or_abort(strdup(kd_clean(clean, sizeof(clean), path, strlen(path))));
}

static void read_source(tree *self, const char *path, const char *shown, bool is_header)
{
    int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    size_t length = 0;
    char *text = NULL;
    source read;

    if (descriptor < 0)
        self->unreadable++;
    else
        text = read_file(self, descriptor, &length);
    if (descriptor >= 0)
        close(descriptor);
    if (text == NULL)
        return;
    if (is_binary(text, length)) {
        self->binary++;
        free(text);
        return;
    }
    add_file(self, shown);
    source_read(&read, text, length);
    self->lines += read.lines;
    analyse_source(self, &read, (uint32_t)(self->file_count - 1), is_header);
    source_free(&read);
}

static void read_folder(tree *self, char *path, size_t root, int depth);

/* An entry of a folder; the path is that of the entry. */
static void read_entry(tree *self, char *path, size_t root, const char *name, int depth)
{
    bool is_header = has_suffix(name, header_suffixes);
    struct stat status;

    if (lstat(path, &status) != 0)
        self->unreadable++;
    else if (S_ISDIR(status.st_mode))
        read_folder(self, path, root, depth + 1);
    else if (S_ISREG(status.st_mode) && (is_header || has_suffix(name, source_suffixes)))
        read_source(self, path, path + root, is_header);
}

static int compare(const struct dirent **left, const struct dirent **right)
{
    return strcmp((*left)->d_name, (*right)->d_name);
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* path has PATH_MAX bytes and is restored. */
static void read_folder(tree *self, char *path, size_t root, int depth)
{
    size_t length = strlen(path);
    struct dirent **entries;
    int count = depth < MOST_DEPTH ? scandir(path, &entries, is_visible, compare) : -1;

    if (count < 0) {
        self->too_deep += depth >= MOST_DEPTH;
        self->unreadable += depth < MOST_DEPTH;
        return;
    }
    for (int i = 0; i < count; i++) {
        if (length + strlen(entries[i]->d_name) + 2 > PATH_MAX)
            self->too_deep++;
        else {
            sprintf(path + length, "/%s", entries[i]->d_name);
            read_entry(self, path, root, entries[i]->d_name, depth);
        }
        path[length] = '\0';
        free(entries[i]);
    }
    free(entries);
}

tree *tree_read(const char *path)
{
    char full[PATH_MAX];
    struct stat status;
    tree *self;

    if (realpath(path, full) == NULL || stat(full, &status) != 0)
        return NULL;
    if (S_ISDIR(status.st_mode) && access(full, R_OK | X_OK) != 0)
        return NULL;
    self = or_abort(calloc(1, sizeof(*self)));
    self->functions = or_abort(calloc(sdk_function_count, sizeof(*self->functions)));
    self->headers = or_abort(calloc(sdk_header_count, sizeof(*self->headers)));
    self->own = or_abort(calloc(sdk_function_count, sizeof(*self->own)));
    if (S_ISDIR(status.st_mode))
        read_folder(self, full, strcmp(full, "/") == 0 ? 1 : strlen(full) + 1, 0);
    else
        read_source(self, full, strrchr(full, '/') + 1, has_suffix(full, header_suffixes));
    analyse_end(self);
    return self;
}

void tree_free(tree *dead)
{
    for (size_t i = 0; i < dead->file_count; i++)
        free(dead->files[i]);
    for (size_t i = 0; i < sdk_function_count; i++)
        free(dead->functions[i].place);
    for (size_t i = 0; i < sdk_header_count; i++)
        free(dead->headers[i].place);
    for (int kind = 0; kind < LOOK_COUNT; kind++)
        free(dead->looks[kind].place);
    for (size_t i = 0; i < dead->candidate_count; i++)
        free(dead->candidates[i].name);
    name_set_free(&dead->long_names);
    free(dead->candidates);
    free(dead->files);
    free(dead->functions);
    free(dead->headers);
    free(dead->own);
    free(dead);
}
