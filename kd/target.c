/*
 * target.c: the memory of a process or core file, and the block that names the library's roots.
 *
 * Memory of a process is read by process_vm_readv, or where a sandbox forbids that through /proc/PID/mem. A core file
 * lacks what the process had unchanged from a file; that is read from the file.
 */
#include "kd.h"

#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_ROOTS 64
#define LARGEST_SCAN ((size_t)64 << 20)

typedef struct kd_region {
    kd_address begin, end;
    uint64_t offset; /* in the core file */
    bool scannable;  /* data of a program or library may be there */
} kd_region;

typedef struct kd_named_root {
    char name[64];
    KD_ROOT raw;
} kd_named_root;

struct kd_target {
    int process;
    int file; /* /proc/PID/mem or the core file */
    Elf *core;
    Dwfl *dwfl;
    kd_region *regions;
    size_t region_count;
    kd_segments segments;
    KD_DEBUGGER_DATA data;
    kd_named_root *roots;
    size_t root_count;
    bool quiet;
};

static char *said;
static size_t said_size;

void kd_say_into(char *buffer, size_t size)
{
    said = buffer;
    said_size = size;
}

void kd_say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (said != NULL) {
        vsnprintf(said, said_size, format, arguments);
    } else {
        fputs("interlock: ", stderr);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
    }
    va_end(arguments);
}

#define FAIL(target, ...) ((target)->quiet ? (void)0 : kd_say(__VA_ARGS__), false)

void *kd_grow(void *array, size_t count, size_t size)
{
    /* room for a power of two */
    if ((count & (count - 1)) == 0) {
        array = realloc(array, (count == 0 ? 1 : 2 * count) * size);
        if (array == NULL) {
            kd_say("there is no memory");
            exit(1);
        }
    }
    memset((char *)array + count * size, 0, size);
    return array;
}

int kd_process_of(const kd_target *target)
{
    return target->process;
}

const char *kd_version(const kd_target *target)
{
    return target->data.Version;
}

struct Dwfl *kd_dwfl(kd_target *target)
{
    return target->dwfl;
}

struct Elf *kd_core(kd_target *target)
{
    return target->core;
}

/* Memory. */

static bool read_process(kd_target *target, kd_address address, void *buffer, size_t size)
{
    struct iovec local = {buffer, size};
    struct iovec remote = {(void *)(uintptr_t)address, size};

    if (process_vm_readv(target->process, &local, 1, &remote, 1, 0) == (ssize_t)size)
        return true;
    if (target->file < 0) {
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/mem", target->process);
        target->file = open(path, O_RDONLY | O_CLOEXEC);
    }
    return target->file >= 0 && pread(target->file, buffer, size, (off_t)address) == (ssize_t)size;
}

/* What the core file left out because it is in a program or library. */
static bool read_module(kd_target *target, kd_address address, void *buffer, size_t size)
{
    Dwfl_Module *module = dwfl_addrmodule(target->dwfl, address);
    GElf_Addr bias;
    size_t headers;
    Elf *elf = module != NULL ? dwfl_module_getelf(module, &bias) : NULL;

    if (elf == NULL || elf_getphdrnum(elf, &headers) != 0)
        return false;
    for (size_t i = 0; i < headers; i++) {
        GElf_Phdr header;

        if (gelf_getphdr(elf, (int)i, &header) == NULL || header.p_type != PT_LOAD)
            continue;
        kd_address begin = header.p_vaddr + bias;
        if (address < begin || address + size > begin + header.p_filesz)
            continue;
        Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)(header.p_offset + (address - begin)), size, ELF_T_BYTE);
        if (data == NULL || data->d_size < size)
            return false;
        memcpy(buffer, data->d_buf, size);
        return true;
    }
    return false;
}

static const kd_region *region_at(const kd_target *target, kd_address address)
{
    for (size_t i = 0; i < target->region_count; i++)
        if (address >= target->regions[i].begin && address < target->regions[i].end)
            return &target->regions[i];
    return NULL;
}

static bool read_core(kd_target *target, kd_address address, void *buffer, size_t size)
{
    while (size > 0) {
        const kd_region *region = region_at(target, address);
        size_t part = size;

        if (region == NULL)
            return read_module(target, address, buffer, size);
        if (part > region->end - address)
            part = region->end - address;
        if (pread(target->file, buffer, part, (off_t)(region->offset + (address - region->begin))) != (ssize_t)part)
            return false;
        buffer = (char *)buffer + part;
        address += part;
        size -= part;
    }
    return true;
}

bool kd_read(kd_target *target, kd_address address, void *buffer, size_t size)
{
    if (address == 0 || address + size < address)
        return false;
    return target->process != 0 ? read_process(target, address, buffer, size)
                                : read_core(target, address, buffer, size);
}

bool kd_read_string(kd_target *target, kd_address address, char *buffer, size_t size)
{
    for (size_t i = 0; i + 1 < size; i++) {
        if (!kd_read(target, address + i, &buffer[i], 1)) {
            buffer[i] = '\0';
            return i > 0;
        }
        if (buffer[i] == '\0')
            return true;
    }
    buffer[size - 1] = '\0';
    return true;
}

/* Regions. */

static void add_region(kd_target *target, kd_region region)
{
    target->regions = kd_grow(target->regions, target->region_count, sizeof(kd_region));
    target->regions[target->region_count++] = region;
}

static bool map_process(kd_target *target)
{
    char path[64], line[4352];
    FILE *maps;

    snprintf(path, sizeof(path), "/proc/%d/maps", target->process);
    maps = fopen(path, "re");
    if (maps == NULL)
        return false;
    while (fgets(line, sizeof(line), maps) != NULL) {
        uint64_t begin, end;
        char rights[8] = "";

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &begin, &end, rights) == 3)
            add_region(target, (kd_region){.begin = begin, .end = end,
                                           .scannable = rights[0] == 'r' && rights[2] == '-' && rights[3] == 'p'});
    }
    fclose(maps);
    return target->region_count > 0;
}

static bool map_core(kd_target *target)
{
    size_t headers;

    if (elf_getphdrnum(target->core, &headers) != 0)
        return false;
    for (size_t i = 0; i < headers; i++) {
        GElf_Phdr header;

        if (gelf_getphdr(target->core, (int)i, &header) != NULL && header.p_type == PT_LOAD && header.p_filesz != 0)
            add_region(target, (kd_region){.begin = header.p_vaddr, .end = header.p_vaddr + header.p_filesz,
                                           .offset = header.p_offset, .scannable = !(header.p_flags & PF_X)});
    }
    return target->region_count > 0;
}

static int add_segments(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr begin, void *context)
{
    kd_segments *segments = context;
    GElf_Addr bias;
    size_t headers;
    Elf *elf = dwfl_module_getelf(module, &bias);

    (void)data;
    (void)name;
    (void)begin;
    if (elf == NULL || elf_getphdrnum(elf, &headers) != 0)
        return DWARF_CB_OK;
    for (size_t i = 0; i < headers; i++) {
        GElf_Phdr header;

        if (gelf_getphdr(elf, (int)i, &header) == NULL || header.p_type != PT_LOAD)
            continue;
        segments->list = kd_grow(segments->list, segments->count, sizeof(kd_segment));
        segments->list[segments->count++] = (kd_segment){
            .begin = header.p_vaddr + bias, .end = header.p_vaddr + bias + header.p_memsz, .module = module};
    }
    return DWARF_CB_OK;
}

struct Dwfl_Module *kd_module_in(struct Dwfl *dwfl, kd_segments *segments, kd_address address)
{
    if (segments->count == 0)
        dwfl_getmodules(dwfl, add_segments, segments, 0);
    for (size_t i = 0; i < segments->count; i++)
        if (address >= segments->list[i].begin && address < segments->list[i].end)
            return segments->list[i].module;
    return dwfl_addrmodule(dwfl, address);
}

struct Dwfl_Module *kd_module_at(kd_target *target, kd_address address)
{
    return kd_module_in(target->dwfl, &target->segments, address);
}

/* The block. */

static bool is_block(kd_target *target, kd_address address)
{
    KD_DEBUGGER_DATA data;

    if (!kd_read(target, address, &data, sizeof(data)) || memcmp(data.Magic, KD_DEBUGGER_DATA_MAGIC, 16) != 0 ||
        KD_ADDRESS(data.Self) != address)
        return false;
    target->data = data;
    return true;
}

static kd_address symbol_in(Elf *elf, GElf_Addr bias)
{
    Elf_Scn *section = NULL;

    while ((section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;
        Elf_Data *data;

        if (gelf_getshdr(section, &header) == NULL || (header.sh_type != SHT_DYNSYM && header.sh_type != SHT_SYMTAB) ||
            header.sh_entsize == 0 || (data = elf_getdata(section, NULL)) == NULL)
            continue;
        for (size_t i = 0; i < header.sh_size / header.sh_entsize; i++) {
            GElf_Sym symbol;
            const char *name;

            if (gelf_getsym(data, (int)i, &symbol) == NULL || symbol.st_shndx == SHN_UNDEF)
                continue;
            name = elf_strptr(elf, header.sh_link, symbol.st_name);
            if (name != NULL && strcmp(name, "KdDebuggerDataBlock") == 0)
                return symbol.st_value + bias;
        }
    }
    return 0;
}

static int look_in_module(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr begin, void *context)
{
    kd_target *target = context;
    GElf_Addr bias;
    Elf *elf = dwfl_module_getelf(module, &bias);
    kd_address address = elf != NULL ? symbol_in(elf, bias) : 0;

    (void)data;
    (void)name;
    (void)begin;
    return address != 0 && is_block(target, address) ? DWARF_CB_ABORT : DWARF_CB_OK;
}

/* For programs without symbols. */
static bool scan_region(kd_target *target, const kd_region *region)
{
    size_t size = region->end - region->begin;
    char *copy;
    bool found = false;

    if (!region->scannable || size > LARGEST_SCAN || (copy = malloc(size)) == NULL)
        return false;
    if (kd_read(target, region->begin, copy, size))
        for (size_t i = 0; !found && i + sizeof(KD_DEBUGGER_DATA) <= size; i += sizeof(void *))
            found = memcmp(copy + i, KD_DEBUGGER_DATA_MAGIC, 16) == 0 && is_block(target, region->begin + i);
    free(copy);
    return found;
}

static bool find_block(kd_target *target)
{
    dwfl_getmodules(target->dwfl, look_in_module, target, 0);
    for (size_t i = 0; target->data.Self == NULL && i < target->region_count; i++)
        scan_region(target, &target->regions[i]);
    return target->data.Self != NULL;
}

static bool read_roots(kd_target *target)
{
    kd_address address = KD_ADDRESS(target->data.FirstRoot);
    size_t count = (KD_ADDRESS(target->data.EndOfRoots) - address) / sizeof(KD_ROOT);

    if (count == 0 || count > MOST_ROOTS)
        return false;
    for (size_t i = 0; i < count; i++) {
        kd_named_root root = {.name = ""};

        if (!kd_read(target, address + i * sizeof(KD_ROOT), &root.raw, sizeof(root.raw)) ||
            !kd_read_string(target, KD_ADDRESS(root.raw.Name), root.name, sizeof(root.name)))
            return false;
        target->roots = kd_grow(target->roots, target->root_count, sizeof(kd_named_root));
        target->roots[target->root_count++] = root;
    }
    return true;
}

kd_address kd_root(kd_target *target, const char *name, size_t *size)
{
    for (size_t i = 0; i < target->root_count; i++) {
        if (strcmp(target->roots[i].name, name) == 0) {
            if (size != NULL)
                *size = target->roots[i].raw.Size;
            return KD_ADDRESS(target->roots[i].raw.Address);
        }
    }
    return 0;
}

static bool is_readable_version(kd_target *target, const char *what)
{
    const KD_DEBUGGER_DATA *data = &target->data;

    if (strncmp(data->Version, INTERLOCK_VERSION, sizeof(data->Version)) != 0)
        return FAIL(target,
                    "%s uses Interlock %.32s, and this is the debugger of %s: use the one built with that library",
                    what, data->Version, INTERLOCK_VERSION);
    if (!data->Ready)
        return FAIL(target, "%s has not started the library yet: try again in a moment", what);
    if (data->Size == sizeof(*data) && data->LayoutHash == KdpLayoutHash()) {
        if (!read_roots(target))
            return FAIL(target, "%s: the library's roots cannot be read; is its memory damaged?", what);
        if (kd_has_known_layout(target))
            return true;
    }
    return FAIL(target,
                "%s uses another build of Interlock %s, with other structures: use the debugger of the same build",
                what, INTERLOCK_VERSION);
}

/* Opening. */

static bool is_process_id(const char *what, int *process)
{
    char *end;
    long value = strtol(what, &end, 10);

    if (*what == '\0' || *end != '\0' || value <= 0 || value > INT32_MAX)
        return false;
    *process = (int)value;
    return true;
}

static bool may_look(kd_target *target, const char *what)
{
    char path[64];
    unsigned char byte;

    snprintf(path, sizeof(path), "/proc/%d", target->process);
    if (access(path, F_OK) != 0)
        return FAIL(target, "there is no process %s: `interlock ps` lists those that use Interlock", what);
    if (!map_process(target)) {
        if (errno == EACCES || errno == EPERM)
            return FAIL(target, "process %s belongs to somebody else: run this as that user, or as root", what);
        return FAIL(target, "process %s has no memory: it is ending, or a thread of the kernel", what);
    }
    for (size_t i = 0; i < target->region_count; i++)
        if (target->regions[i].scannable && kd_read(target, target->regions[i].begin, &byte, 1))
            return true;
    return FAIL(target,
                "the host does not let this user look into process %s: run this as root, or see "
                "kernel.yama.ptrace_scope",
                what);
}

static bool open_process(kd_target *target, const char *what)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_linux_proc_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
    };

    if (!may_look(target, what))
        return false;
    target->dwfl = dwfl_begin(&callbacks);
    if (target->dwfl == NULL || dwfl_linux_proc_report(target->dwfl, target->process) != 0 ||
        dwfl_report_end(target->dwfl, NULL, NULL) != 0)
        return FAIL(target, "the modules of process %s cannot be read: %s", what, dwfl_errmsg(-1));
    if (!find_block(target))
        return FAIL(target, "process %s does not use Interlock: `interlock ps` lists those that do", what);
    return true;
}

static bool open_core(kd_target *target, const char *what)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
    };
    GElf_Ehdr header;

    target->file = open(what, O_RDONLY | O_CLOEXEC);
    if (target->file < 0)
        return FAIL(target, "%s is neither a process id nor a file that can be read: %s", what, strerror(errno));
    target->core = elf_begin(target->file, ELF_C_READ_MMAP, NULL);
    if (target->core == NULL || gelf_getehdr(target->core, &header) == NULL || header.e_type != ET_CORE)
        return FAIL(target, "%s is not a core file", what);
    target->dwfl = dwfl_begin(&callbacks);
    if (target->dwfl == NULL || dwfl_core_file_report(target->dwfl, target->core, NULL) < 0 ||
        dwfl_report_end(target->dwfl, NULL, NULL) != 0 || !map_core(target))
        return FAIL(target, "the core file %s cannot be read: %s", what, dwfl_errmsg(-1));
    if (!find_block(target))
        return FAIL(target, "%s is not the core file of a program that uses Interlock", what);
    return true;
}

kd_target *kd_open(const char *what, bool quiet)
{
    kd_target *target = calloc(1, sizeof(*target));

    if (target == NULL)
        return NULL;
    unsetenv("DEBUGINFOD_URLS"); /* no view waits for the network */
    elf_version(EV_CURRENT);
    target->file = -1;
    target->quiet = quiet;
    if ((is_process_id(what, &target->process) ? open_process(target, what) : open_core(target, what)) &&
        is_readable_version(target, what))
        return target;
    kd_close(target);
    return NULL;
}

void kd_close(kd_target *target)
{
    if (target == NULL)
        return;
    if (target->dwfl != NULL)
        dwfl_end(target->dwfl);
    if (target->core != NULL)
        elf_end(target->core);
    if (target->file >= 0)
        close(target->file);
    free(target->regions);
    free(target->segments.list);
    free(target->roots);
    free(target);
}
