/* target.c: opens a process or core file, and finds the block with the library's roots. */
#include "target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_ROOTS 64
#define MOST_SECTIONS 100000
#define LARGEST_SYMBOLS ((uint64_t)256 << 20)
#define LARGEST_NOTES ((uint64_t)512 << 20) /* of a hundred thousand threads */
#define LARGEST_SCAN ((size_t)64 << 20)

static char *said;
static size_t said_size;

void kd_say_into(char *buffer, size_t size)
{
    said = buffer;
    said_size = size;
}

void kd_say(const char *format, ...)
{
    char raw[2048], clean[4096];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(raw, sizeof(raw), format, arguments);
    va_end(arguments);
    if (said != NULL)
        kd_clean(said, said_size, raw, sizeof(raw));
    else
        fprintf(stderr, "interlock: %s\n", kd_clean(clean, sizeof(clean), raw, sizeof(raw)));
}

#define FAIL(target, ...) ((target)->quiet ? (void)0 : kd_say(__VA_ARGS__), false)

int kd_process_of(const kd_target *target)
{
    return target->process;
}

const char *kd_version(const kd_target *target)
{
    return target->version;
}

struct Dwfl *kd_dwfl(kd_target *target)
{
    return target->dwfl;
}

struct Elf *kd_core(kd_target *target)
{
    return target->core;
}

/* Modules. */

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
    for (size_t i = 0; i < headers && segments->count < KD_MOST_SEGMENTS; i++) {
        GElf_Phdr header;

        if (gelf_getphdr(elf, (int)i, &header) == NULL || header.p_type != PT_LOAD ||
            header.p_memsz > UINT64_MAX - header.p_vaddr - bias)
            continue;
        segments->list = kd_grow(segments->list, segments->count, sizeof(kd_segment));
        segments->list[segments->count++] = (kd_segment){
            .begin = header.p_vaddr + bias, .end = header.p_vaddr + bias + header.p_memsz, .module = module};
    }
    return DWARF_CB_OK;
}

struct Dwfl_Module *kd_module_in(struct Dwfl *dwfl, kd_segments *segments, kd_address address)
{
    size_t count;

    if (segments->count == 0) {
        kd_guard_begin(KD_FILE_SECONDS, "the files of its modules cannot be read");
        dwfl_getmodules(dwfl, add_segments, segments, 0);
        kd_guard_end();
        if (segments->count != 0)
            qsort(segments->list, segments->count, sizeof(kd_segment), kd_by_address);
    }
    count = kd_count_up_to(segments->list, segments->count, sizeof(kd_segment), address);
    if (count != 0 && address < segments->list[count - 1].end)
        return segments->list[count - 1].module;
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
    target->block = address;
    kd_clean(target->version, sizeof(target->version), data.Version, sizeof(data.Version));
    return true;
}

static kd_address symbol_in(Elf *elf, GElf_Addr bias)
{
    Elf_Scn *section = NULL;
    size_t sections = 0;

    while (sections++ < MOST_SECTIONS && (section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;
        Elf_Data *data;

        if (gelf_getshdr(section, &header) == NULL || (header.sh_type != SHT_DYNSYM && header.sh_type != SHT_SYMTAB) ||
            header.sh_entsize < sizeof(Elf32_Sym) || header.sh_size > LARGEST_SYMBOLS ||
            (data = elf_getdata(section, NULL)) == NULL)
            continue;
        for (size_t i = 0; i < data->d_size / header.sh_entsize && i < KD_MOST_SYMBOLS; i++) {
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
    kd_address address;
    Elf *elf;

    (void)data;
    (void)name;
    (void)begin;
    kd_guard_begin(KD_FILE_SECONDS, "the files of its modules cannot be read");
    elf = dwfl_module_getelf(module, &bias);
    address = elf != NULL ? symbol_in(elf, bias) : 0;
    kd_guard_end();
    return address != 0 && is_block(target, address) ? DWARF_CB_ABORT : DWARF_CB_OK;
}

/* Finds the block in programs without symbols. */
static bool scan_region(kd_target *target, const kd_region *region)
{
    size_t size = region->end - region->begin;
    kd_address begin = region->begin; /* a read may replace the regions */
    char *copy;
    bool found = false;

    if (!region->scannable || size > LARGEST_SCAN)
        return false;
    copy = kd_allocate(size, 1);
    if (kd_read(target, begin, copy, size))
        for (size_t i = 0; !found && i + sizeof(KD_DEBUGGER_DATA) <= size; i += sizeof(void *))
            found = memcmp(copy + i, KD_DEBUGGER_DATA_MAGIC, 16) == 0 && is_block(target, begin + i);
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
    kd_address address = KD_ADDRESS(target->data.FirstRoot), end = KD_ADDRESS(target->data.EndOfRoots);
    size_t count = end > address ? (end - address) / sizeof(KD_ROOT) : 0;

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
                    "%s uses Interlock %s, and this is the debugger of %s: use the one built with that library",
                    what, target->version, INTERLOCK_VERSION);
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

/* Describes a file that cannot be inspected. */
static const char *kind_of_file(mode_t mode)
{
    return S_ISDIR(mode) ? "a directory" : S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static bool open_folder(kd_target *target)
{
    char path[64];

    if (target->folder >= 0)
        close(target->folder);
    snprintf(path, sizeof(path), "/proc/%d", target->process);
    target->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return target->folder >= 0;
}

static bool has_ended(const kd_target *target, const char *stat)
{
    char text[4096];
    FILE *file = kd_open_of_process(target, stat);
    size_t length = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
    const char *end;

    if (file != NULL)
        fclose(file);
    text[length] = '\0';
    end = strrchr(text, ')');
    return end == NULL || end[1] != ' ' || end[2] == 'Z' || end[2] == 'X';
}

static DIR *open_tasks(const kd_target *target)
{
    int folder = openat(target->folder, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *tasks = folder >= 0 ? fdopendir(folder) : NULL;

    if (tasks == NULL && folder >= 0)
        close(folder);
    return tasks;
}

/* A process may outlive its main thread, but then no memory can be read through that thread's id. 0: no live thread. */
static int living_thread(const kd_target *target)
{
    DIR *tasks = open_tasks(target);
    struct dirent *entry;
    int found = 0;

    while (tasks != NULL && found == 0 && (entry = readdir(tasks)) != NULL) {
        char path[300];

        snprintf(path, sizeof(path), "task/%s/stat", entry->d_name);
        if (entry->d_name[0] != '.' && !has_ended(target, path))
            found = (int)strtol(entry->d_name, NULL, 10);
    }
    if (tasks != NULL)
        closedir(tasks);
    return found;
}

static bool may_look(kd_target *target, const char *what)
{
    unsigned char byte;

    if (!open_folder(target))
        return FAIL(target, "there is no process %s: `interlock ps` lists those that use Interlock", what);
    target->self = (int)syscall(SYS_pidfd_open, target->process, 0);
    if (has_ended(target, "stat")) {
        target->process = living_thread(target);
        if (target->process == 0 || !open_folder(target))
            return FAIL(target, "process %s has ended, but its parent has not reaped it: it has no memory", what);
    }
    if (!kd_map_process(target)) {
        if (errno == EACCES || errno == EPERM)
            return FAIL(target, "process %s belongs to another user: run this as that user, or as root", what);
        return FAIL(target, "process %s has no memory: it is ending, or is a kernel thread", what);
    }
    for (size_t i = 0; i < target->region_count; i++)
        if (target->regions[i].readable && kd_read(target, target->regions[i].begin, &byte, 1))
            return true;
    return FAIL(target,
                "the host does not permit this user to inspect process %s: run this as root, or see "
                "kernel.yama.ptrace_scope",
                what);
}

bool kd_is_there(kd_target *target)
{
    struct pollfd self = {.fd = target->self, .events = POLLIN};
    KD_DEBUGGER_DATA data;

    /* Its id may have been recycled, or it may run another program. */
    if (target->process != 0 && target->self >= 0 && poll(&self, 1, 0) != 0)
        return false;
    return kd_read(target, target->block, &data, sizeof(data)) &&
           memcmp(data.Magic, KD_DEBUGGER_DATA_MAGIC, sizeof(data.Magic)) == 0 && data.Self == target->data.Self &&
           data.LayoutHash == target->data.LayoutHash;
}

bool kd_process_name(const kd_target *target, char *buffer, size_t size)
{
    char raw[64];
    FILE *file = target->process != 0 ? kd_open_of_process(target, "comm") : NULL;
    size_t length = file != NULL ? fread(raw, 1, sizeof(raw), file) : 0;

    if (file != NULL)
        fclose(file);
    if (length > 0 && raw[length - 1] == '\n')
        length--;
    kd_clean(buffer, size, raw, length);
    return file != NULL;
}

/*
 * In a PID namespace the process's thread ids differ from those that the debugger sees. The NSpid line of a task has
 * both, the innermost last.
 */
static bool last_number(FILE *file, uint32_t *last, size_t *count)
{
    char line[512];

    *count = 0;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        char *at = line + 6, *end;

        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        for (unsigned long value = strtoul(at, &end, 10); end != at; value = strtoul(at, &end, 10)) {
            *last = (uint32_t)value;
            *count += 1;
            at = end;
        }
        break;
    }
    if (file != NULL)
        fclose(file);
    return *count != 0;
}

static bool is_in_namespace(const kd_target *target)
{
    uint32_t last;
    size_t count;

    return last_number(kd_open_of_process(target, "status"), &last, &count) && count > 1;
}

static int search_threads(kd_target *target, uint32_t id)
{
    DIR *tasks = open_tasks(target);
    struct dirent *entry;

    kd_index_free(&target->host_threads);
    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        char path[300];
        uint32_t last;
        size_t count;

        snprintf(path, sizeof(path), "task/%s/status", entry->d_name);
        if (!kd_spend_work(target, 20))
            break;
        if (entry->d_name[0] != '.' && last_number(kd_open_of_process(target, path), &last, &count))
            kd_index_add(&target->host_threads, last, (int)strtol(entry->d_name, NULL, 10));
    }
    if (tasks != NULL)
        closedir(tasks);
    return kd_index_find(&target->host_threads, id);
}

/* The id comes from the process: it must not lead to another process's thread. */
static bool has_thread(const kd_target *target, int thread)
{
    char path[64];

    snprintf(path, sizeof(path), "task/%d", thread);
    return faccessat(target->folder, path, F_OK, 0) == 0;
}

uint32_t kd_own_thread_id(kd_target *target, int host_thread)
{
    char path[64];
    uint32_t own = 0;
    size_t count;

    snprintf(path, sizeof(path), "task/%d/status", host_thread);
    return last_number(kd_open_of_process(target, path), &own, &count) ? own : (uint32_t)host_thread;
}

int kd_host_thread(kd_target *target, uint32_t id)
{
    int found;

    if (!target->has_namespace)
        return id != 0 && id <= INT32_MAX && has_thread(target, (int)id) ? (int)id : -1;
    found = kd_index_find(&target->host_threads, id);
    return found >= 0 && has_thread(target, found) ? found : search_threads(target, id);
}

FILE *kd_open_of_thread(kd_target *target, uint32_t id, const char *name)
{
    int thread = target->process != 0 && kd_spend_work(target, 8) ? kd_host_thread(target, id) : -1;
    char path[64];

    if (thread < 0)
        return NULL;
    snprintf(path, sizeof(path), "task/%d/%s", thread, name);
    return kd_open_of_process(target, path);
}

static bool open_process(kd_target *target, const char *what)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_linux_proc_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
    };

    if (!may_look(target, what))
        return false;
    target->has_namespace = is_in_namespace(target);
    target->dwfl = dwfl_begin(&callbacks);
    if (target->dwfl == NULL || dwfl_linux_proc_report(target->dwfl, target->process) != 0 ||
        dwfl_report_end(target->dwfl, NULL, NULL) != 0)
        return FAIL(target, "the modules of process %s cannot be read: %s", what, dwfl_errmsg(-1));
    if (!find_block(target))
        return FAIL(target, "process %s does not use Interlock: `interlock ps` lists those that do", what);
    return true;
}

/* libelf and libdw read as much as a header claims, and a sparse file can really be that large. */
static bool has_large_notes(Elf *core)
{
    uint64_t left = LARGEST_NOTES;
    size_t headers;

    if (elf_getphdrnum(core, &headers) != 0)
        return false;
    for (size_t i = 0; i < headers && i < KD_MOST_REGIONS; i++) {
        GElf_Phdr header;

        if (gelf_getphdr(core, (int)i, &header) == NULL || header.p_type != PT_NOTE)
            continue;
        if (header.p_filesz > left)
            return true;
        left -= header.p_filesz;
    }
    return false;
}

void kd_visit_notes(kd_target *target, kd_visit_note *visit, void *context)
{
    size_t headers;

    if (elf_getphdrnum(target->core, &headers) != 0)
        return;
    for (size_t i = 0; i < headers && i < KD_MOST_REGIONS; i++) {
        GElf_Phdr header;
        GElf_Nhdr note;
        size_t at = 0, name, contents;
        Elf_Data *data;

        if (gelf_getphdr(target->core, (int)i, &header) == NULL || header.p_type != PT_NOTE)
            continue;
        data = elf_getdata_rawchunk(target->core, (int64_t)header.p_offset, header.p_filesz, ELF_T_NHDR);
        while (data != NULL && (at = gelf_getnote(data, at, &note, &name, &contents)) > 0)
            if (!visit(&note, (const char *)data->d_buf + name, (const char *)data->d_buf + contents, context))
                return;
    }
}

/* A snapshot has the time in a note of its own. */
static bool find_time(const GElf_Nhdr *note, const char *name, const char *contents, void *context)
{
    kd_target *target = context;

    if (note->n_type != KD_NOTE_TIME || note->n_namesz != sizeof(KD_NOTE_OWNER) || note->n_descsz != sizeof(kd_time) ||
        memcmp(name, KD_NOTE_OWNER, sizeof(KD_NOTE_OWNER)) != 0)
        return true;
    memcpy(&target->taken, contents, sizeof(kd_time));
    return false;
}

kd_time kd_time_of(const kd_target *target)
{
    return target->process != 0 ? kd_time_now() : target->taken;
}

static bool open_core(kd_target *target, const char *what)
{
    static const Dwfl_Callbacks callbacks = {
        .find_elf = dwfl_build_id_find_elf,
        .find_debuginfo = dwfl_standard_find_debuginfo,
    };
    GElf_Ehdr header;
    struct stat status;

    /* Opening a FIFO must not block, nor acquire a controlling terminal. */
    target->file = open(what, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (target->file < 0 || fstat(target->file, &status) != 0)
        return FAIL(target, "%s is neither a process id nor a file that can be read: %s", what, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return FAIL(target, "%s is not a core file, but %s", what, kind_of_file(status.st_mode));
    /* Read, not mapped: the file may be truncated at any time. */
    target->core = elf_begin(target->file, ELF_C_READ, NULL);
    if (target->core == NULL || gelf_getehdr(target->core, &header) == NULL || header.e_type != ET_CORE)
        return FAIL(target, "%s is not a core file", what);
    if (has_large_notes(target->core))
        return FAIL(target, "the core file %s cannot be read: its notes are larger than those of any process", what);
    target->dwfl = dwfl_begin(&callbacks);
    if (target->dwfl == NULL || dwfl_core_file_report(target->dwfl, target->core, NULL) < 0 ||
        dwfl_report_end(target->dwfl, NULL, NULL) != 0 || !kd_map_core(target))
        return FAIL(target, "the core file %s cannot be read: %s", what, dwfl_errmsg(-1));
    kd_visit_notes(target, find_time, target);
    if (!find_block(target))
        return FAIL(target, "%s is not the core file of a program that uses Interlock", what);
    return true;
}

static kd_target *open_target(const char *what, bool quiet, bool noting)
{
    kd_target *target = kd_allocate(1, sizeof(*target));

    unsetenv("DEBUGINFOD_URLS"); /* no view waits for the network */
    elf_version(EV_CURRENT);
    kd_guard_start(quiet);
    target->file = target->folder = target->self = -1;
    target->quiet = quiet;
    target->noting = noting;
    kd_renew_budget(target, 1);
    if ((is_process_id(what, &target->process) ? open_process(target, what) : open_core(target, what)) &&
        is_readable_version(target, what))
        return target;
    kd_close(target);
    return NULL;
}

kd_target *kd_open(const char *what, bool quiet)
{
    return open_target(what, quiet, false);
}

kd_target *kd_open_noting(const char *process)
{
    return open_target(process, false, true);
}

void kd_close(kd_target *target)
{
    if (target == NULL)
        return;
    if (target->dwfl != NULL) {
        kd_forget_symbols(target->dwfl);
        dwfl_end(target->dwfl);
    }
    if (target->core != NULL)
        elf_end(target->core);
    if (target->file >= 0)
        close(target->file);
    if (target->folder >= 0)
        close(target->folder);
    if (target->self >= 0)
        close(target->self);
    kd_forget_memory(target);
    kd_index_free(&target->host_threads);
    kd_index_free(&target->noted_pages);
    free(target->noted);
    free(target->segments.list);
    free(target->roots);
    free(target);
}
