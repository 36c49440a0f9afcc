/*
 * memory.c: the memory of the explored program, and how it is restored between schedules.
 *
 * After Setup the data segment and the used part of the heap become read-only. The first write to a page, in any
 * schedule, faults once. The explorer saves the page's contents and from then on copies them back before every
 * schedule. These pages are few and stay in the cache, so restoring costs about a microsecond. It works for every
 * writer: the program, the C library, vector instructions.
 *
 * The stack of a fiber is restored from its saved stack pointer upwards; what is below is garbage by definition.
 */
#include "engine.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE          4096ul
#define HEAP_SIZE     (256ul << 20)
#define ARENA_ADDRESS 0x200000000000ul
#define MAX_HOT       4096
#define MAX_IGNORED   4096
#define MAX_STATISTICS 16
#define RED_ZONE      32
#define HEADER_MAGIC  0x4c61624865617031ull

typedef struct hot_page {
    char *page;
    char *copy;
    uint64_t *ignored; /* bits that are not part of the state; NULL: none */
} hot_page;

typedef struct ignored_word {
    uintptr_t address;
    uint64_t bits;
} ignored_word;

typedef struct statistic {
    uintptr_t address;
    size_t size;
} statistic;

typedef struct saved_stack {
    char *sp;
    size_t size;
    char *copy;
} saved_stack;

typedef struct block {
    uint64_t magic;
    size_t size;
    uint32_t number;
    uint32_t freed;
    uint64_t pc; /* where it was allocated */
} block;

static struct memory_state {
    hot_page hot[MAX_HOT];
    uint32_t hot_count;
    ignored_word ignored[MAX_IGNORED];
    uint32_t ignored_count;
    statistic statistics[MAX_STATISTICS];
    uint32_t statistic_count;
    saved_stack stacks[MAX_THREADS];
    char *protected_heap_end;
    char *snapshot_room, *snapshot_end;
    bool protects;
    struct {
        lab_granule *shadow;
        uint8_t value;
    } poisoned[65536];
    uint32_t poisoned_count;
} * memory;

lab_engine *lab;

static void *map(uintptr_t address, size_t size)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (address != 0 ? MAP_FIXED_NOREPLACE : 0);
    void *result = mmap((void *)address, size, PROT_READ | PROT_WRITE, flags, -1, 0);

    if (result == MAP_FAILED) {
        perror("lab: mmap");
        exit(2);
    }
    return result;
}

/* The writable segment of the program, without the part that the loader made read-only, and its thread-local
   storage. */
static int find_program(struct dl_phdr_info *info, size_t size, void *unused)
{
    uintptr_t relro = 0;

    (void)size;
    (void)unused;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];

        if (header->p_type == PT_GNU_RELRO)
            relro = info->dlpi_addr + header->p_vaddr + header->p_memsz;
        if (header->p_type == PT_TLS && header->p_memsz != 0) {
            uintptr_t pointer = (uintptr_t)__builtin_thread_pointer();
            uintptr_t align = header->p_align > 1 ? header->p_align : 1;
#if defined(__x86_64__)
            lab->tls = (char *)(pointer - (header->p_memsz + align - 1) / align * align);
#else
            lab->tls = (char *)((pointer + 16 + align - 1) / align * align);
#endif
            lab->tls_size = header->p_memsz;
            lab->tls_image = (const char *)(info->dlpi_addr + header->p_vaddr);
            lab->tls_image_size = header->p_filesz;
        }
    }
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];

        if (header->p_type == PT_LOAD && (header->p_flags & PF_W)) {
            uintptr_t start = info->dlpi_addr + header->p_vaddr;
            uintptr_t end = start + header->p_memsz;

            start = relro > start ? relro : start;
            lab->data = (char *)((start + PAGE - 1) / PAGE * PAGE);
            lab->data_end = (char *)((end + PAGE - 1) / PAGE * PAGE);
        }
    }
    return 1; /* the first one is the program itself */
}

void lab_memory_initialize(void)
{
    if (lab != NULL)
        return;
    lab = map(0, sizeof(*lab));
    memory = map(0, sizeof(*memory));
    dl_iterate_phdr(find_program, NULL);
    if (lab->tls_size > MAX_TLS) {
        fprintf(stderr, "lab: the program has %zu bytes of thread-local variables, at most %d are supported\n",
                lab->tls_size, MAX_TLS);
        exit(2);
    }
    size_t arena = HEAP_SIZE + MAX_THREADS * STACK_SIZE;
    lab->arena = map(ARENA_ADDRESS, arena);
    lab->arena_end = lab->arena + arena;
    lab->heap = lab->arena;
    lab->run.heap_top = lab->heap;
    lab->stacks = lab->arena + HEAP_SIZE;
    lab->stacks_end = lab->arena_end;
    lab->data_shadow = map(0, (size_t)(lab->data_end - lab->data) / 8 * sizeof(lab_granule));
    lab->arena_shadow = map(0, arena / 8 * sizeof(lab_granule));
    lab->touched_granules = map(0, MAX_TOUCHED * sizeof(lab->touched_granules[0]));
    lab->touched_cells = map(0, MAX_TOUCHED * sizeof(lab->touched_cells[0]));
    lab->aside = map(0, MAX_ASIDE * sizeof(lab_aside));
    lab->freed = map(0, MAX_FREED * sizeof(lab_freed));
    lab->cells = map(0, MAX_CELLS * sizeof(lab_cell));
    lab->nodes = map(0, MAX_NODES * sizeof(lab_node));
    lab->steps = map(0, MAX_STEPS * sizeof(lab_step));
    lab->versions = map(0, MAX_STEPS * sizeof(lab_version));
    lab->c11_events = map(0, 2 * MAX_STEPS * sizeof(lab_c11_event));
    lab->strong = map(0, 2 * MAX_STEPS * sizeof(*lab->strong));
    lab->strong_seen = map(0, 2 * MAX_STEPS * sizeof(*lab->strong_seen));
    lab->strong_stack = map(0, 2 * MAX_STEPS * sizeof(*lab->strong_stack));
    lab->given = map(0, MAX_NODES * sizeof(lab_decision));
    lab->events = map(0, MAX_STEPS * sizeof(lab_event));
    lab->accesses = map(0, ACCESSES * sizeof(lab_past_access));
    lab->generation = 1;
    lab->cell_count = 1 + PSEUDO_CELLS;
}

/* Saving and restoring. */

static void *keep(const void *from, size_t size)
{
    if (memory->snapshot_room == NULL || memory->snapshot_room + size > memory->snapshot_end) {
        size_t room = size > (4u << 20) ? size : 4u << 20;
        memory->snapshot_room = map(0, room);
        memory->snapshot_end = memory->snapshot_room + room;
    }
    void *copy = memory->snapshot_room;
    memcpy(copy, from, size);
    memory->snapshot_room += (size + 63) & ~63ul;
    return copy;
}

static bool is_protected(uintptr_t address)
{
    return memory->protects && (address - (uintptr_t)lab->data < (uintptr_t)(lab->data_end - lab->data) ||
                                address - (uintptr_t)lab->heap < (uintptr_t)(memory->protected_heap_end - lab->heap));
}

static void ignore_in_page(hot_page *hot, const ignored_word *i)
{
    if (i->address / PAGE * PAGE != (uintptr_t)hot->page)
        return;
    if (hot->ignored == NULL)
        hot->ignored = map(0, PAGE);
    hot->ignored[i->address % PAGE / sizeof(uint64_t)] |= i->bits;
}

static bool is_ignored(uintptr_t address, uint64_t bits)
{
    for (uint32_t i = memory->ignored_count; i-- != 0;)
        if (memory->ignored[i].address == address && (memory->ignored[i].bits & bits) == bits)
            return true;
    return false;
}

/* Up to 8 bytes of one aligned word: what is there decides nothing, and is not part of the state. */
void lab_memory_ignore(const volatile void *from, size_t size)
{
    uintptr_t address = (uintptr_t)from / sizeof(uint64_t) * sizeof(uint64_t);
    uint64_t bits = (size == sizeof(uint64_t) ? ~0ull : (1ull << 8 * size) - 1) << 8 * ((uintptr_t)from - address);

    if (is_ignored(address, bits) || memory->ignored_count == MAX_IGNORED)
        return;
    ignored_word *i = &memory->ignored[memory->ignored_count++];
    *i = (ignored_word){address, bits};
    for (uint32_t j = 0; j < memory->hot_count; j++)
        ignore_in_page(&memory->hot[j], i);
}

void lab_memory_add_statistic(uintptr_t address, size_t size)
{
    if (memory->statistic_count == MAX_STATISTICS)
        lab_sched_fail(VERDICT_UNSUPPORTED, 0, "more than %d calls of LabIgnore", MAX_STATISTICS);
    memory->statistics[memory->statistic_count++] = (statistic){address, size};
}

bool lab_memory_is_statistic(uintptr_t address)
{
    for (uint32_t i = 0; i < memory->statistic_count; i++)
        if (address - memory->statistics[i].address < memory->statistics[i].size)
            return true;
    return false;
}

static void make_hot(uintptr_t address)
{
    char *page = (char *)(address / PAGE * PAGE);

    if (memory->hot_count == MAX_HOT)
        lab_sched_fail(VERDICT_UNSUPPORTED, 0, "the program writes to more than %d pages", MAX_HOT);
    hot_page *hot = &memory->hot[memory->hot_count++];
    *hot = (hot_page){page, keep(page, PAGE), NULL};
    for (uint32_t i = 0; i < memory->ignored_count; i++)
        ignore_in_page(hot, &memory->ignored[i]);
    mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

bool lab_memory_take_fault(uintptr_t address)
{
    if (!is_protected(address))
        return false;
    for (uint32_t i = 0; i < memory->hot_count; i++)
        if (memory->hot[i].page == (char *)(address / PAGE * PAGE))
            return false;
    make_hot(address);
    return true;
}

static void protect(int protection)
{
    memory->protects = protection == PROT_READ;
    mprotect(lab->data, (size_t)(lab->data_end - lab->data), protection);
    if (memory->protected_heap_end > lab->heap)
        mprotect(lab->heap, (size_t)(memory->protected_heap_end - lab->heap), protection);
}

static void forget_snapshot(void)
{
    if (!memory->protects)
        return;
    protect(PROT_READ | PROT_WRITE);
    memory->hot_count = 0;
}

/* After Setup: every schedule starts from this state. */
void lab_memory_snapshot(void)
{
    forget_snapshot();
    lab->start = lab->run;
    memory->protected_heap_end = (char *)(((uintptr_t)lab->run.heap_top + PAGE - 1) / PAGE * PAGE);
    /* The heap continues after the protected part. */
    lab->start.heap_top = lab->run.heap_top = memory->protected_heap_end;
    for (uint32_t i = 0; i < lab->run.thread_count; i++) {
        lab_thread *t = &lab->run.threads[i];
        saved_stack *saved = &memory->stacks[i];

        saved->sp = t->sp;
        saved->size = (size_t)(t->stack + STACK_SIZE - saved->sp);
        saved->copy = keep(saved->sp, saved->size);
    }
    memory->poisoned_count = 0;
    protect(PROT_READ);
}

static void undo_poison(uint32_t kept)
{
    while (memory->poisoned_count > kept) {
        memory->poisoned_count--;
        memory->poisoned[memory->poisoned_count].shadow->poison = memory->poisoned[memory->poisoned_count].value;
    }
}

/* A page that was not written yet has its contents of the start. */
void lab_memory_copy(lab_copy *c)
{
    uint32_t pages = memory->hot_count, poisoned = memory->poisoned_count;

    lab_copy_bytes(c, &pages, sizeof(pages));
    lab_copy_bytes(c, &poisoned, sizeof(poisoned));
    for (uint32_t i = 0; i < pages; i++)
        lab_copy_bytes(c, memory->hot[i].page, PAGE);
    lab_copy_bytes(c, lab->start.heap_top, (size_t)(lab->run.heap_top - lab->start.heap_top));
    if (c->saves)
        return;
    for (uint32_t i = pages; i < memory->hot_count; i++)
        memcpy(memory->hot[i].page, memory->hot[i].copy, PAGE);
    undo_poison(poisoned);
}

void lab_memory_restore(void)
{
    for (uint32_t i = 0; i < memory->hot_count; i++)
        memcpy(memory->hot[i].page, memory->hot[i].copy, PAGE);
    for (uint32_t i = 0; i < lab->start.thread_count; i++)
        memcpy(memory->stacks[i].sp, memory->stacks[i].copy, memory->stacks[i].size);
    undo_poison(0);
    memcpy(&lab->run, &lab->start, offsetof(lab_run_state, threads));
    for (uint32_t i = 0; i < lab->start.thread_count; i++) {
        memcpy(&lab->run.threads[i], &lab->start.threads[i], offsetof(lab_thread, watch));
        memcpy(lab->run.threads[i].tls, lab->start.threads[i].tls, lab->tls_size);
    }
}

void *lab_memory_map(size_t size)
{
    return map(0, size);
}

uint64_t lab_memory_hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const uint64_t *words = bytes;

    for (size_t i = 0; i < size / sizeof(*words); i++) {
        hash = (hash ^ words[i]) * 0x9E3779B97F4A7C15ull;
        hash ^= hash >> 32;
    }
    return hash;
}

/* Hashes a word and its address; the sum over any words is a hash of the set. */
static uint64_t hash_word(uint64_t word, uintptr_t address)
{
    uint64_t x = word * 0x9E3779B97F4A7C15ull + address;

    x = (x ^ x >> 32) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 29) * 0x94D049BB133111EBull;
    return x ^ x >> 32;
}

#define AT_ONCE 8 /* words */

typedef uint64_t pair __attribute__((vector_size(16)));

static inline bool has_changes(const pair *now, const pair *start)
{
    pair changes = (now[0] ^ start[0]) | (now[1] ^ start[1]) | (now[2] ^ start[2]) | (now[3] ^ start[3]);

    return (changes[0] | changes[1]) != 0;
}

/* A hash of the changed words of a page: a page that equals its state at the start adds nothing. */
static uint64_t hash_changes(const hot_page *hot)
{
    const uint64_t *now = (const uint64_t *)hot->page, *start = (const uint64_t *)hot->copy;
    uint64_t hash = 0;

    for (size_t i = 0; i < PAGE / sizeof(*now); i += AT_ONCE) {
        if (!has_changes((const pair *)&now[i], (const pair *)&start[i]))
            continue;
        for (size_t j = i; j < i + AT_ONCE; j++) {
            uint64_t ignored = hot->ignored != NULL ? hot->ignored[j] : 0;

            if (((now[j] ^ start[j]) & ~ignored) != 0)
                hash += hash_word(now[j] & ~ignored, (uintptr_t)&now[j]);
        }
    }
    return hash;
}

/* A pointer to the explorer's own data is not the program's, but a register that a function of the program has saved. */
uint64_t lab_memory_without_own(uint64_t word)
{
    return word - (uintptr_t)lab < sizeof(*lab) ? 0 : word;
}

uint64_t lab_memory_hash_region(const void *from, size_t size)
{
    const uint64_t *words = from;
    uint64_t hash = 0;

    for (size_t i = 0; i < size / sizeof(*words); i++)
        hash += hash_word(lab_memory_without_own(words[i]), (uintptr_t)&words[i]);
    return hash;
}

uint64_t lab_memory_hash(void)
{
    size_t heap = (size_t)(lab->run.heap_top - lab->start.heap_top) & ~7ul;
    uint64_t hash = heap + lab_memory_hash_region(lab->start.heap_top, heap);

    for (uint32_t i = 0; i < memory->hot_count; i++)
        hash += hash_changes(&memory->hot[i]);
    return hash;
}

/* The heap. A block that is freed stays poisoned for the rest of the schedule, unless it is reused (reuse.c). */

static void set_poison(char *from, size_t size, lab_poison value)
{
    for (size_t offset = 0; offset < size; offset += 8) {
        lab_granule *shadow = lab_memory_shadow((uintptr_t)from + offset);

        if (shadow->poison == value)
            continue;
        if (lab->running && !lab->only_schedule) {
            if (memory->poisoned_count == sizeof(memory->poisoned) / sizeof(memory->poisoned[0]))
                lab_sched_fail(VERDICT_UNSUPPORTED, 0, "a schedule allocates and frees too much memory");
            memory->poisoned[memory->poisoned_count].shadow = shadow;
            memory->poisoned[memory->poisoned_count].value = shadow->poison;
            memory->poisoned_count++;
        }
        shadow->poison = (uint8_t)value;
    }
}

/* A block that was freed before, or NULL. */
static void *allocate_again(size_t size, size_t alignment, uintptr_t pc)
{
    char *address = lab_reuse_choose(size, alignment);

    if (address == NULL)
        return NULL;
    block *header = (block *)address - 1;
    header->freed = 0;
    header->size = size;
    header->number = lab->run.allocations++;
    header->pc = pc;
    set_poison(address, (size + 7) & ~7ul, POISON_NONE);
    memset(address, 0, size);
    lab_atomic_plain_write((uintptr_t)address, size);
    return address;
}

void *lab_memory_allocate(size_t size, size_t alignment, uintptr_t pc)
{
    lab_memory_initialize();
    void *again = allocate_again(size, alignment < 16 ? 16 : alignment, pc);
    if (again != NULL)
        return again;
    alignment = alignment < 16 ? 16 : alignment;
    uintptr_t start = (uintptr_t)lab->run.heap_top + sizeof(block);

    start = (start + alignment - 1) / alignment * alignment;
    if (size > HEAP_SIZE / 4 || start + size + 2 * RED_ZONE > (uintptr_t)lab->heap + HEAP_SIZE)
        return NULL;
    block *header = (block *)(start - sizeof(block));
    char *zone = lab->run.heap_top;
    *header = (block){.magic = HEADER_MAGIC, .size = size, .number = lab->run.allocations++, .pc = pc};
    if (lab->running)
        memset((void *)start, 0, size);
    char *end = (char *)((start + size + 7) & ~7ul);
    lab->run.heap_top = end + RED_ZONE;
    if (lab->running || size < 65536) {
        set_poison(zone, (size_t)((char *)start - zone), POISON_ZONE);
        set_poison((char *)start, size, POISON_NONE);
        set_poison(end, RED_ZONE, POISON_ZONE);
    }
    return (void *)start;
}

bool lab_memory_free(void *address, uintptr_t pc)
{
    block *header = (block *)address - 1;

    if (address == NULL)
        return true;
    if ((char *)address < lab->heap || (char *)address >= lab->run.heap_top || header->magic != HEADER_MAGIC ||
        header->freed != 0)
        return false;
    lab_reuse_begin_free(pc);
    if (header->freed != 0) /* by another thread, before this step */
        return false;
    if (lab_sched_active()) /* like a write to all of it: a thread that still uses it races */
        lab_race_access((uintptr_t)address, header->size, true, false, pc);
    header->freed = 1;
    set_poison(address, (header->size + 7) & ~7ul, POISON_FREED);
    lab_reuse_end_free(address);
    return true;
}

bool lab_memory_is_heap(const void *address)
{
    return lab != NULL && (const char *)address >= lab->heap && (const char *)address < lab->stacks;
}

size_t lab_memory_size(const void *address)
{
    const block *header = (const block *)address - 1;
    return header->magic == HEADER_MAGIC ? header->size : 0;
}

void lab_memory_report_leaks(void)
{
    for (char *at = lab->start.heap_top; at + sizeof(block) < lab->run.heap_top; at += 8) {
        block *header = (block *)at;

        if (header->magic == HEADER_MAGIC && header->freed == 0 && header->number >= lab->start.allocations &&
            header->number < lab->run.allocations)
            lab_sched_fail(VERDICT_LEAK, 0, "%zu bytes, allocation %u of the schedule, were not freed", header->size,
                           header->number - lab->start.allocations + 1);
    }
}

/* Another thread accesses the owner's stack: it must be done before the frame ends. */
static void lend(lab_thread *owner, uintptr_t address)
{
    for (uint32_t i = 0; i < owner->lent_count; i++)
        if (owner->lent[i] == address)
            return;
    if (owner->lent_count == MAX_LENT) {
        lab_explore_cut(CUT_LENT);
        return;
    }
    owner->lent[owner->lent_count++] = address;
    if (owner->lent_count == 1 || address < owner->lowest_lent)
        owner->lowest_lent = address;
}

void lab_memory_check_slow(uintptr_t address, lab_granule *shadow, uintptr_t pc)
{
    if (shadow->poison == POISON_FREED)
        lab_sched_fail(VERDICT_FREED_MEMORY, pc, "access to %#lx, which was freed", address);
    if (shadow->poison == POISON_ZONE)
        lab_sched_fail(VERDICT_WILD_ACCESS, pc, "access to %#lx, beside an allocated block", address);
    if (address < (uintptr_t)lab->stacks || address >= (uintptr_t)lab->stacks_end)
        return;
    lab_thread *owner = &lab->run.threads[(address - (uintptr_t)lab->stacks) / STACK_SIZE];
    uintptr_t sp = owner == lab->current ? (uintptr_t)__builtin_frame_address(0) : (uintptr_t)owner->sp;
    if (owner->state == THREAD_DONE || owner->state == THREAD_UNUSED)
        sp = (uintptr_t)owner->stack + STACK_SIZE;
    else if (owner != lab->current && owner->innermost != 0)
        sp = lab_sched_program_sp(owner, owner->innermost);
    if (owner != lab->current && address >= sp)
        lend(owner, address & ~7ul);
    if (address < sp)
        lab_sched_fail(VERDICT_DEAD_FRAME, pc, "access to %#lx, on the stack of thread %c below its frames", address,
                       'a' + owner->number);
}

static const block *find_block(uintptr_t address)
{
    if (address < (uintptr_t)lab->heap || address >= (uintptr_t)lab->run.heap_top)
        return NULL;
    for (uintptr_t at = address & ~7ul; at >= (uintptr_t)lab->heap + sizeof(block) && address - at < 1 << 20; at -= 8)
        if (((const block *)at - 1)->magic == HEADER_MAGIC)
            return (const block *)at - 1;
    return NULL;
}

uintptr_t lab_memory_origin(uintptr_t address, size_t *size)
{
    const block *header = find_block(address);

    if (header == NULL)
        return 0;
    *size = header->size;
    return header->pc;
}

const char *lab_memory_describe(uintptr_t address, char *buffer, size_t size)
{
    if (address >= (uintptr_t)lab->stacks && address < (uintptr_t)lab->stacks_end) {
        size_t slot = (address - (uintptr_t)lab->stacks) / STACK_SIZE;
        snprintf(buffer, size, "stack of %c, -%#lx", (char)('a' + slot),
                 (slot + 1) * STACK_SIZE - (address - (uintptr_t)lab->stacks));
        return buffer;
    }
    if (address >= (uintptr_t)lab->heap && address < (uintptr_t)lab->run.heap_top) {
        const block *header = find_block(address);

        if (header != NULL)
            snprintf(buffer, size, "heap block %u+%#lx", header->number, address - (uintptr_t)(header + 1));
        else
            snprintf(buffer, size, "heap+%#lx", address - (uintptr_t)lab->heap);
        return buffer;
    }
    return NULL;
}
