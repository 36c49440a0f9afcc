/*
 * progress.c: long searches of the tree: how far they are, and a file from which they continue.
 *
 * The estimate is that of a depth-first search: each node of the current schedule divides its share of the tree equally
 * among its branches, and the branches that were tried are done. Branches that are still unknown make it too high.
 *
 * The file has the nodes of the next schedule with the remaining choices at each. If the search depends on what earlier
 * schedules have shown (which loops are endless), the file has that too. Which bytes form a variable is learned again:
 * if that changes something, the search starts over.
 */
#include "engine.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_SIZE   65536
#define MAGIC         0x4c61625472656532ull
#define SHOW_SECONDS  0.5
#define SAVE_SECONDS  10.0
#define LOOK_INTERVAL 64 /* schedules */

typedef struct saved_tree {
    uint64_t magic;
    uint64_t program; /* a hash of it and of the options that shape the tree */
    char scenario[256];
    uint32_t nodes;
    uint32_t endless_count;
    bool uses_cancellation;
    lab_result result;
    uint64_t endless[MAX_ENDLESS];
} saved_tree;

static volatile sig_atomic_t *interrupted;

static void on_interrupt(int number)
{
    (void)number;
    *interrupted = 1;
}

static uint64_t hash_program(void)
{
    unsigned char *buffer = lab_memory_map(BUFFER_SIZE); /* the kernel cannot write to protected memory */
    uint64_t hash = 1469598103934665603ull;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    ssize_t count;

    while (file >= 0 && (count = read(file, buffer, BUFFER_SIZE)) > 0)
        for (ssize_t i = 0; i < count; i++)
            hash = (hash ^ buffer[i]) * 1099511628211ull;
    close(file);
    munmap(buffer, BUFFER_SIZE);
    const uint32_t shape[] = {lab->options.model, lab->options.stale, lab->options.timeouts, lab->options.weak_failures,
                              lab->options.max_steps, lab->options.patience, lab->options.jobs, lab->options.job};
    for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++)
        hash = (hash ^ shape[i]) * 1099511628211ull;
    return hash;
}

/* Each process has its own part of the tree. */
static void name_file(char *path, size_t size, const char *ending)
{
    if (lab->options.jobs > 1)
        snprintf(path, size, "%s.%s.%u%s", lab->options.checkpoint, lab->scenario->Name, lab->options.job, ending);
    else
        snprintf(path, size, "%s.%s%s", lab->options.checkpoint, lab->scenario->Name, ending);
}

static void fill(saved_tree *tree)
{
    memset(tree, 0, sizeof(*tree));
    tree->magic = MAGIC;
    tree->program = hash_program();
    snprintf(tree->scenario, sizeof(tree->scenario), "%s", lab->scenario->Name);
    tree->nodes = lab->replay_count;
    tree->endless_count = lab->endless_count;
    tree->uses_cancellation = lab->uses_cancellation;
    tree->result = lab->result;
    tree->result.found_by = NULL;
    memcpy(tree->endless, lab->endless, sizeof(tree->endless));
}

static void save(void)
{
    saved_tree tree;
    char path[4096], temporary[4096];

    name_file(path, sizeof(path), "");
    name_file(temporary, sizeof(temporary), ".new");
    FILE *file = fopen(temporary, "wb");
    fill(&tree);
    bool good = file != NULL && fwrite(&tree, sizeof(tree), 1, file) == 1 &&
                fwrite(lab->nodes, sizeof(lab_node), tree.nodes, file) == tree.nodes;
    if (file != NULL)
        good &= fclose(file) == 0;
    if (!good || rename(temporary, path) != 0) {
        perror(path);
        unlink(temporary);
    }
}

bool lab_progress_resume(void)
{
    saved_tree tree;
    char path[4096];

    if (lab->options.checkpoint == NULL)
        return false;
    interrupted = lab_memory_map(sizeof(*interrupted));
    signal(SIGINT, on_interrupt);
    signal(SIGTERM, on_interrupt);
    name_file(path, sizeof(path), "");
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return false;
    bool good = fread(&tree, sizeof(tree), 1, file) == 1 && tree.magic == MAGIC && tree.nodes <= MAX_NODES &&
                strcmp(tree.scenario, lab->scenario->Name) == 0 && tree.program == hash_program() &&
                fread(lab->nodes, sizeof(lab_node), tree.nodes, file) == tree.nodes;
    fclose(file);
    if (!good) {
        fprintf(stderr, "lab: %s belongs to another program or other options; remove it to start over\n", path);
        exit(2);
    }
    lab->replay_count = tree.nodes;
    lab->endless_count = tree.endless_count;
    lab->uses_cancellation = tree.uses_cancellation;
    memcpy(lab->endless, tree.endless, sizeof(tree.endless));
    const char *found_by = lab->result.found_by;
    lab->result = tree.result;
    lab->result.found_by = found_by;
    return true;
}

void lab_progress_finish(bool complete)
{
    char path[4096];

    if (lab->options.show_progress)
        fprintf(stderr, "\r\033[K");
    if (lab->options.checkpoint == NULL)
        return;
    name_file(path, sizeof(path), "");
    if (complete)
        unlink(path);
    else
        save();
}

/* How much of the tree is done. */
static double estimate(void)
{
    double share = 1, done = 0;

    for (uint32_t i = 0; i < lab->replay_count; i++) {
        const lab_node *n = &lab->nodes[i];
        uint32_t branches = n->count, tried = n->chosen;

        if (n->kind == NODE_THREAD) {
            uint16_t known = (uint16_t)((n->backtrack | n->done | LAB_BIT(n->chosen)) & ~n->sleep);
            branches = (uint32_t)__builtin_popcount(known);
            tried = (uint32_t)__builtin_popcount(n->done & known & ~LAB_BIT(n->chosen));
        }
        if (branches == 0)
            continue;
        share /= branches;
        done += share * tried;
    }
    return done;
}

static void show(double now)
{
    double rate = (double)(lab->result.schedules + lab->result.pruned) / (now - lab->progress_began + 1e-9);

    fprintf(stderr, "\r\033[K  %s: %lu schedules, %.0f/s, depth %u", lab->scenario->Name,
            lab->result.schedules + lab->result.pruned, rate, lab->replay_count);
    if (lab->active == STRATEGY_DPOR)
        fprintf(stderr, ", about %.1f %% of the tree", 100 * estimate());
    else if (lab->active == STRATEGY_BOUNDED || lab->active == STRATEGY_BOUNDED_STATES)
        fprintf(stderr, ", about %.1f %% with %u preemptions", 100 * estimate(), lab->options.preemptions);
}

bool lab_progress_is_stopped(void)
{
    if (!lab->options.show_progress && lab->options.checkpoint == NULL)
        return false;
    if ((lab->result.schedules + lab->result.pruned) % LOOK_INTERVAL != 0)
        return interrupted != NULL && *interrupted;
    double now = lab_explore_seconds();
    if (lab->progress_began == 0)
        lab->progress_began = lab->progress_shown = lab->progress_saved = now;
    if (lab->options.show_progress && now - lab->progress_shown >= SHOW_SECONDS) {
        lab->progress_shown = now;
        show(now);
    }
    if (lab->options.checkpoint != NULL && now - lab->progress_saved >= SAVE_SECONDS) {
        lab->progress_saved = now;
        save();
    }
    return interrupted != NULL && *interrupted;
}
