/* symbol.c: names of addresses, and stacks. */
#include "kd.h"

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <string.h>

#define MOST_FRAMES 64

static const char *base_name(const char *path)
{
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;

    return slash != NULL ? slash + 1 : path;
}

static const char *module_name(Dwfl_Module *module)
{
    const char *name = base_name(dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL));

    return name != NULL ? name : "?";
}

bool kd_symbol_in(Dwfl_Module *module, kd_address address, char buffer[KD_SYMBOL_SIZE])
{
    GElf_Off offset;
    GElf_Sym symbol;
    const char *name;

    buffer[0] = '\0';
    if (module == NULL)
        return false;
    name = dwfl_module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL);
    if (name == NULL || (offset != 0 && offset >= symbol.st_size))
        return false;
    if (offset == 0)
        snprintf(buffer, KD_SYMBOL_SIZE, "%s!%s", module_name(module), name);
    else
        snprintf(buffer, KD_SYMBOL_SIZE, "%s!%s+0x%" PRIx64, module_name(module), name, (uint64_t)offset);
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
} walk;

/* For what clang has compiled: it leaves out the index that dwfl_module_getsrc looks in. */
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
        snprintf(frame->file, sizeof(frame->file), "%s", base_name(file));
    else
        frame->line = 0;
}

void kd_describe_frame(Dwfl_Module *module, kd_address pc, bool activation, kd_frame *frame)
{
    /* a return address may be the first one after the function that called */
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

const char *kd_stack(kd_target *target, uint32_t id, kd_visit_frame *visit, void *context)
{
    walk w = {.target = target, .visit = visit, .context = context};
    Dwfl *dwfl = kd_dwfl(target);
    int process = kd_process_of(target);

    if (dwfl_pid(dwfl) < 0 && (process != 0 ? dwfl_linux_proc_attach(dwfl, process, false) != 0
                                            : dwfl_core_file_attach(dwfl, kd_core(target)) < 0))
        return dwfl_errmsg(-1);
    dwfl_getthread_frames(dwfl, (pid_t)id, visit_frame, &w);
    return w.count > 0 ? NULL : dwfl_errmsg(-1);
}
