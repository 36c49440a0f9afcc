/* symbol.c: names of addresses, and stacks. */
#include "variable.h"

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FRAMES 64
#define MOST_NESTED 64
#define OFFSET_SIZE 24

static const char *base_name(const char *path)
{
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;

    return slash != NULL ? slash + 1 : path;
}

/*
 * The symbols of a module, sorted by address. libdwfl searches all of them for each address, and the target controls both
 * numbers.
 */
typedef struct symbol {
    kd_address begin;
    uint64_t size;
    const char *name;
    int rank;                /* of two at the same address the higher one is shown */
    bool data;
} symbol;

typedef struct symbols {
    kd_variables *variables; /* NULL: not loaded yet */
    size_t count;
    symbol list[];
} symbols;

static int by_begin_and_rank(const void *one, const void *other)
{
    const symbol *a = one, *b = other;

    return a->begin != b->begin ? kd_by_address(a, b) : a->rank < b->rank ? -1 : a->rank > b->rank;
}

static bool is_shown(const GElf_Sym *raw, const char *name)
{
    int type = GELF_ST_TYPE(raw->st_info);

    return name != NULL && name[0] != '\0' && raw->st_shndx != SHN_UNDEF && type != STT_SECTION && type != STT_FILE &&
           type != STT_TLS;
}

static symbols *read_symbols(Dwfl_Module *module)
{
    int found;
    symbols *all;

    kd_guard_begin(KD_FILE_SECONDS, "the symbols of its modules cannot be read");
    found = dwfl_module_getsymtab(module);
    if (found < 0)
        found = 0;
    if (found > KD_MOST_SYMBOLS)
        found = KD_MOST_SYMBOLS;
    all = kd_allocate(1, sizeof(symbols) + (size_t)found * sizeof(symbol));
    for (int i = 0; i < found; i++) {
        GElf_Sym raw;
        GElf_Addr address;
        const char *name = dwfl_module_getsym_info(module, i, &raw, &address, NULL, NULL, NULL);

        if (is_shown(&raw, name))
            all->list[all->count++] = (symbol){
                .begin = address, .size = raw.st_size, .name = name, .data = GELF_ST_TYPE(raw.st_info) == STT_OBJECT,
                .rank = (raw.st_size != 0 ? 4 : 0) + (GELF_ST_BIND(raw.st_info) == STB_GLOBAL ? 2
                                                      : GELF_ST_BIND(raw.st_info) == STB_WEAK ? 1 : 0)};
    }
    kd_guard_end();
    if (all->count != 0)
        qsort(all->list, all->count, sizeof(symbol), by_begin_and_rank);
    return all;
}

static symbols *symbols_of(Dwfl_Module *module)
{
    void **kept;

    dwfl_module_info(module, &kept, NULL, NULL, NULL, NULL, NULL, NULL);
    if (*kept == NULL)
        *kept = read_symbols(module);
    return *kept;
}

static const symbol *find_symbol(Dwfl_Module *module, kd_address address)
{
    const symbols *all = symbols_of(module);
    size_t count;

    count = kd_count_up_to(all->list, all->count, sizeof(symbol), address);
    /* one that begins earlier may still reach as far */
    for (size_t i = count; i > 0 && count - i < MOST_NESTED; i--) {
        const symbol *s = &all->list[i - 1];

        if (s->begin == address || address - s->begin < s->size)
            return s;
    }
    return NULL;
}

static int forget(Dwfl_Module *module, void **kept, const char *name, Dwarf_Addr begin, void *context)
{
    (void)module;
    (void)name;
    (void)begin;
    (void)context;
    if (*kept != NULL)
        kd_free_variables(((symbols *)*kept)->variables);
    free(*kept);
    *kept = NULL;
    return DWARF_CB_OK;
}

void kd_forget_symbols(Dwfl *dwfl)
{
    dwfl_getmodules(dwfl, forget, NULL, 0);
}

/* The member or element at the address. Returns the remaining offset. */
static uint64_t name_inside(Dwfl_Module *module, const symbol *found, kd_address address, char inside[KD_SYMBOL_SIZE])
{
    symbols *all = symbols_of(module);
    uint64_t offset = address - found->begin;

    inside[0] = '\0';
    if (!found->data)
        return offset;
    if (all->variables == NULL)
        all->variables = kd_read_variables(module);
    kd_guard_begin(KD_FILE_SECONDS, "the types of its modules cannot be read");
    kd_name_inside(all->variables, module, found->begin, &offset, inside, KD_SYMBOL_SIZE);
    kd_guard_end();
    return offset;
}

bool kd_symbol_in(Dwfl_Module *module, kd_address address, char buffer[KD_SYMBOL_SIZE])
{
    const symbol *found = module != NULL ? find_symbol(module, address) : NULL;
    const char *name;
    char raw[3 * KD_SYMBOL_SIZE], inside[KD_SYMBOL_SIZE];
    uint64_t offset;

    buffer[0] = '\0';
    if (found == NULL)
        return false;
    name = base_name(dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
    offset = name_inside(module, found, address, inside);
    snprintf(raw, sizeof(raw), "%.*s!%.*s%s", KD_SYMBOL_SIZE / 2, name != NULL ? name : "?", KD_SYMBOL_SIZE, found->name, inside);
    kd_clean(buffer, KD_SYMBOL_SIZE - OFFSET_SIZE, raw, sizeof(raw));
    if (offset != 0)
        snprintf(buffer + strlen(buffer), OFFSET_SIZE, "+0x%" PRIx64, offset);
    return true;
}

bool kd_symbol(kd_target *target, kd_address address, char buffer[KD_SYMBOL_SIZE])
{
    return kd_symbol_in(kd_module_at(target, address), address, buffer);
}

typedef struct walk {
    kd_target *target;
    void (*visit)(const kd_frame *frame, void *context);
    void *context;
    int count;
    pid_t thread; /* of a core file */
} walk;

/* Finds the line of code compiled by clang, which omits the index that dwfl_module_getsrc uses. */
static const char *search_units(Dwfl_Module *module, kd_address address, int *number)
{
    Dwarf_Die *unit = NULL;
    Dwarf_Addr bias;

    while ((unit = dwfl_module_nextcu(module, unit, &bias)) != NULL) {
        Dwarf_Line *line = dwarf_haspc(unit, address - bias) > 0 ? dwarf_getsrc_die(unit, address - bias) : NULL;

        if (line != NULL && dwarf_lineno(line, number) == 0)
            return dwarf_linesrc(line, NULL, NULL);
    }
    return NULL;
}

static void find_line(Dwfl_Module *module, kd_address address, kd_frame *frame)
{
    Dwfl_Line *line = module != NULL ? dwfl_module_getsrc(module, address) : NULL;
    const char *file = line != NULL ? dwfl_lineinfo(line, NULL, &frame->line, NULL, NULL, NULL)
                       : module != NULL ? search_units(module, address, &frame->line) : NULL;

    if (file != NULL)
        kd_clean(frame->file, sizeof(frame->file), base_name(file), sizeof(frame->file));
    else
        frame->line = 0;
}

void kd_describe_frame(Dwfl_Module *module, kd_address pc, bool activation, kd_frame *frame)
{
    /* a return address may be the first one after the calling function */
    kd_address address = activation ? pc : pc - 1;

    *frame = (kd_frame){.pc = pc};
    if (!kd_symbol_in(module, address, frame->symbol))
        snprintf(frame->symbol, sizeof(frame->symbol), "0x%" PRIx64, (uint64_t)pc);
    find_line(module, address, frame);
}

static int visit_frame(Dwfl_Frame *state, void *context)
{
    walk *w = context;
    kd_frame frame;
    Dwarf_Addr pc;
    bool activation;

    if (!dwfl_frame_pc(state, &pc, &activation))
        return DWARF_CB_ABORT;
    kd_describe_frame(kd_module_at(w->target, activation ? pc : pc - 1), pc, activation, &frame);
    w->visit(&frame, w->context);
    return ++w->count < MOST_FRAMES ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/* All threads are visited: libdwfl leaks memory if a search of a core file ends early. */
static int visit_thread(Dwfl_Thread *thread, void *context)
{
    walk *w = context;

    if (dwfl_thread_tid(thread) == w->thread && w->count == 0)
        dwfl_thread_getframes(thread, visit_frame, w);
    return DWARF_CB_OK;
}

const char *kd_stack(kd_target *target, uint32_t id, kd_visit_frame *visit, void *context)
{
    walk w = {.target = target, .visit = visit, .context = context};
    Dwfl *dwfl = kd_dwfl(target);
    int process = kd_process_of(target);
    int thread = process != 0 ? kd_host_thread(target, id) : (int)id;

    if (thread <= 0)
        return "the host has no such thread";
    if (dwfl_pid(dwfl) < 0 && (process != 0 ? dwfl_linux_proc_attach(dwfl, process, false) != 0
                                            : dwfl_core_file_attach(dwfl, kd_core(target)) < 0))
        return dwfl_errmsg(-1);
    kd_guard_begin(KD_FILE_SECONDS, "a thread cannot be stopped to read its stack");
    w.thread = (pid_t)thread;
    if (process != 0)
        dwfl_getthread_frames(dwfl, (pid_t)thread, visit_frame, &w);
    else
        dwfl_getthreads(dwfl, visit_thread, &w);
    kd_guard_end();
    return w.count > 0 ? NULL : dwfl_errmsg(-1);
}
