/*
 * flame.c: a flame graph of contention, as one SVG file without scripts or references: one box per function, as wide as
 * its share of the time, callers above callees, lock above stacks, and a tooltip. Two pictures: how long others waited
 * for the holds that each stack ended, and how long each stack waited itself.
 */
#include "profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 1200.0
#define ROW 17
#define MARGIN 10
#define HEADING 22
#define NARROWEST 0.2     /* pixels */
#define CHARACTER 6.6     /* likewise, of the font */
#define MOST_NODES 200000
#define NAME_SIZE (KD_SYMBOL_SIZE + 64)

typedef struct node {
    char *name;
    uint64_t time, count;
    struct node *first, *next;
} node;

/* Building. */

typedef struct tree {
    node roots[TraceEntryRoles];
    size_t nodes;
} tree;

/* The child of that name, else a new one; the parent itself if there are too many. */
static node *child_of(tree *t, node *parent, const char *name)
{
    node **link = &parent->first;

    while (*link != NULL && strcmp((*link)->name, name) != 0)
        link = &(*link)->next;
    if (*link == NULL) {
        if (t->nodes >= MOST_NODES)
            return parent;
        *link = kd_allocate(1, sizeof(node));
        (*link)->name = strdup(name);
        if ((*link)->name == NULL)
            kd_no_memory();
        t->nodes++;
    }
    return *link;
}

static void count_in(node *n, uint64_t time, uint64_t count)
{
    n->time += time;
    n->count += count;
}

/* module!function, without the offset. */
static void function_name(const kd_frame *frame, char *name, size_t size)
{
    char *plus;

    snprintf(name, size, "%s", frame->symbol);
    plus = strrchr(name, '+');
    if (plus != NULL && strncmp(plus, "+0x", 3) == 0)
        *plus = '\0';
}

static void add_entry(tree *t, const kd_profile *profile, const kd_profile_lock *lock, const char *process,
                      const TRACE_CONTENTION_ENTRY *entry)
{
    uint64_t time = entry->Role == TraceHeld ? entry->Blocked : entry->Time;
    node *at = &t->roots[entry->Role];
    char symbol[KD_SYMBOL_SIZE], name[NAME_SIZE];
    const char *known = kd_profile_name(profile, lock, symbol);

    count_in(at, time, entry->Count);
    at = child_of(t, at, process);
    count_in(at, time, entry->Count);
    if (known != NULL)
        snprintf(name, sizeof(name), "%s %s", TraceLockKindName(lock->kind), known);
    else
        snprintf(name, sizeof(name), "%s 0x%" PRIx64, TraceLockKindName(lock->kind), lock->address);
    at = child_of(t, at, name);
    count_in(at, time, entry->Count);
    for (unsigned i = entry->Frames; i-- != 0;) {
        kd_frame frame = kd_profile_frame(profile, entry, i);

        function_name(&frame, name, sizeof(name));
        node *next = child_of(t, at, name);
        if (next == at)
            break;
        at = next;
        count_in(at, time, entry->Count);
    }
}

static void add_recording(tree *t, kd_recording *recording)
{
    kd_profile profile = kd_profile_make(recording);
    char program[4 * TRACE_NAME + 1], process[sizeof(program) + 32];

    kd_clean(program, sizeof(program), recording->file->Program, TRACE_NAME);
    snprintf(process, sizeof(process), "%s, process %u", program, recording->file->ProcessId);
    for (size_t i = 0; i < profile.count; i++) {
        const kd_profile_lock *lock = &profile.locks[i];

        for (size_t n = 0; n < lock->holds.count; n++)
            add_entry(t, &profile, lock, process, lock->holds.list[n]);
        for (size_t n = 0; n < lock->waits.count; n++)
            add_entry(t, &profile, lock, process, lock->waits.list[n]);
    }
    kd_profile_free(&profile);
}

static tree *make_tree(const kd_recordings *recordings)
{
    tree *t = kd_allocate(1, sizeof(tree));

    for (size_t i = 0; i < recordings->count; i++)
        add_recording(t, &recordings->list[i]);
    return t;
}

static void free_nodes(node *first)
{
    while (first != NULL) {
        node *next = first->next;

        free_nodes(first->first);
        free(first->name);
        free(first);
        first = next;
    }
}

static void free_tree(tree *t)
{
    for (unsigned role = 0; role < TraceEntryRoles; role++)
        free_nodes(t->roots[role].first);
    free(t);
}

/* A stack may have more boxes than the entries have frames only if a name repeats: TRACE_CONTENTION_FRAMES and two. */
static unsigned depth_of(const node *n)
{
    unsigned deepest = 0;

    for (const node *child = n->first; child != NULL; child = child->next) {
        unsigned depth = 1 + depth_of(child);

        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}

/* SVG. */

static void put_text(FILE *out, const char *text, size_t most)
{
    uint32_t character;
    size_t length;

    for (size_t i = 0; i < most && *text != '\0'; i++, text += length) {
        length = kd_decode(text, SIZE_MAX, &character);
        if (length == 0 || !kd_is_safe(character)) {
            length = length != 0 ? length : 1;
            fputc('?', out);
        } else if (character == '<' || character == '>' || character == '&' || character == '"') {
            fprintf(out, "&#%u;", character);
        } else {
            fwrite(text, 1, length, out);
        }
    }
}

static unsigned color_of(const char *name)
{
    unsigned hash = 5381;

    while (*name != '\0')
        hash = hash * 33 + (unsigned char)*name++;
    return hash;
}

static void put_box(FILE *out, const node *n, unsigned role, double x, double y, double width, uint64_t all)
{
    unsigned color = color_of(n->name);
    size_t room = width > 3 * CHARACTER ? (size_t)(width / CHARACTER) : 0;

    fprintf(out, "<g><title>");
    put_text(out, n->name, SIZE_MAX);
    fprintf(out, "&#10;%.6f s, %.1f %%, %" PRIu64 " times</title>", (double)n->time / 1e9,
            all != 0 ? 100.0 * (double)n->time / (double)all : 0.0, n->count);
    fprintf(out, "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" fill=\"hsl(%u,%u%%,%u%%)\"/>", x, y,
            width > 0.5 ? width - 0.3 : width, ROW - 1, (role == TraceHeld ? 10 : 200) + color % 36, 60 + color / 36 % 25,
            68 + color / 900 % 12);
    if (room != 0) {
        fprintf(out, "<text x=\"%.2f\" y=\"%.0f\">", x + 2, y + ROW - 5);
        put_text(out, n->name, room);
        fprintf(out, "</text>");
    }
    fprintf(out, "</g>\n");
}

static int wider(const void *one, const void *other)
{
    const node *a = *(const node *const *)one, *b = *(const node *const *)other;

    return a->time > b->time ? -1 : a->time < b->time ? 1 : strcmp(a->name, b->name);
}

static void put_children(FILE *out, const node *parent, unsigned role, double x, double y, double scale, uint64_t all)
{
    const node **sorted = NULL;
    size_t count = 0;

    for (const node *child = parent->first; child != NULL; child = child->next) {
        sorted = kd_grow(sorted, count, sizeof(*sorted));
        sorted[count++] = child;
    }
    if (count != 0)
        qsort(sorted, count, sizeof(*sorted), wider);
    for (size_t i = 0; i < count; i++) {
        double width = (double)sorted[i]->time * scale;

        if (width < NARROWEST)
            break;
        put_box(out, sorted[i], role, x, y, width, all);
        put_children(out, sorted[i], role, x, y + ROW, scale, all);
        x += width;
    }
    free(sorted);
}

static const struct {
    TRACE_ENTRY_ROLE role;
    const char *title;
} pictures[] = {
    {TraceHeld, "Held while others waited: their waiting time, by the stack that released the lock"},
    {TraceWaited, "Waited: by the stack that acquired the lock"},
};

#define PICTURES (sizeof(pictures) / sizeof(pictures[0]))

static void put_svg(FILE *out, const tree *t)
{
    double heights[PICTURES], height = MARGIN, y = MARGIN;

    for (size_t i = 0; i < PICTURES; i++) {
        heights[i] = HEADING + ROW * (depth_of(&t->roots[pictures[i].role]) + 1) + MARGIN;
        height += heights[i];
    }
    fprintf(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\">\n"
                 "<title>Contention</title>\n"
                 "<style>text{font:11px monospace;fill:#000}text.heading{font:14px sans-serif}"
                 "g:hover rect{stroke:#000;stroke-width:1}</style>\n"
                 "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            WIDTH + 2 * MARGIN, height, WIDTH + 2 * MARGIN, height);
    for (size_t i = 0; i < PICTURES; i++) {
        const node *root = &t->roots[pictures[i].role];

        fprintf(out, "<g class=\"%s\">\n<text class=\"heading\" x=\"%d\" y=\"%.0f\">%s: %.6f s</text>\n",
                pictures[i].role == TraceHeld ? "held" : "waited", MARGIN, y + 14, pictures[i].title, (double)root->time / 1e9);
        if (root->time != 0)
            put_children(out, root, pictures[i].role, MARGIN, y + HEADING, WIDTH / (double)root->time, root->time);
        fprintf(out, "</g>\n");
        y += heights[i];
    }
    fprintf(out, "</svg>\n");
}

/* Text. */

static void put_name(FILE *out, const char *name)
{
    for (; *name != '\0'; name++)
        fputc(*name == ';' || *name == '\n' ? ':' : *name, out);
}

static void put_lines(FILE *out, const node *const *path, size_t depth, const node *n)
{
    const node *longer[TRACE_CONTENTION_FRAMES + 4];
    uint64_t rest = n->time;

    if (depth != 0)
        memcpy(longer, path, depth * sizeof(*path));
    longer[depth++] = n;
    for (const node *child = n->first; child != NULL; child = child->next) {
        rest -= child->time;
        if (depth < sizeof(longer) / sizeof(longer[0]))
            put_lines(out, longer, depth, child);
    }
    if (rest == 0 || depth == 1)
        return;
    for (size_t i = 0; i < depth; i++) {
        if (i != 0)
            fputc(';', out);
        put_name(out, longer[i]->name);
    }
    fprintf(out, " %" PRIu64 "\n", rest);
}

static void put_folded(FILE *out, const tree *t)
{
    static const char *const names[] = {[TraceWaited] = "waited", [TraceHeld] = "held"};

    for (unsigned role = TraceEntryRoles; role-- != 0;) {
        node root = t->roots[role];

        root.name = (char *)(uintptr_t)names[role];
        put_lines(out, NULL, 0, &root);
    }
}

static bool write_file(const char *path, const kd_recordings *recordings, void (*put)(FILE *out, const tree *t))
{
    FILE *out = fopen(path, "we");
    tree *t;
    bool failed;

    if (out == NULL)
        return kd_say("cannot write %s: %s", path, strerror(errno)), false;
    t = make_tree(recordings);
    put(out, t);
    free_tree(t);
    failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed)
        return kd_say("cannot write %s: %s", path, strerror(errno)), false;
    return true;
}

bool kd_write_flame(const char *path, const kd_recordings *recordings)
{
    return write_file(path, recordings, put_svg);
}

bool kd_write_folded(const char *path, const kd_recordings *recordings)
{
    return write_file(path, recordings, put_folded);
}
