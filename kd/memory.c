/*
 * memory.c: reading the memory of a process or core file.
 *
 * A process is read with process_vm_readv, or through /proc/PID/mem where a sandbox forbids that. A core file lacks pages
 * that were unmodified mappings of a file; those are read from the file.
 *
 * The process is not trusted:
 * 1. Only memory is read, never a device mapping: reading a device's registers may have side effects.
 * 2. Every read is charged to a budget. Once it is spent, every read fails, so following any list ends, however it is
 *    forged or changed meanwhile.
 * 3. The process can block a read (userfaultfd, a mapping of its own file system). guard.c ends that.
 */
#include "target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define BYTES_PER_WORK 1024
#define WORK_OF_MAPPING 20000
#define READ_SECONDS 15

/* Budget. */

void kd_renew_budget(kd_target *target, uint64_t share)
{
    target->work = KD_WORK / share;
    target->memory = KD_MEMORY / share;
    target->spent = false;
}

bool kd_has_left(const kd_target *target, double share)
{
    return (double)target->work > share * KD_WORK && (double)target->memory > share * (double)KD_MEMORY;
}

bool kd_is_spent(const kd_target *target)
{
    return target->spent;
}

static bool spend(kd_target *target, uint64_t *left, uint64_t amount)
{
    if (*left < amount) {
        *left = 0;
        target->spent = true;
        return false;
    }
    *left -= amount;
    return true;
}

bool kd_spend_work(kd_target *target, uint64_t amount)
{
    return spend(target, &target->work, amount);
}

bool kd_spend_memory(kd_target *target, uint64_t bytes)
{
    return spend(target, &target->memory, bytes);
}

void *kd_allocate(size_t count, size_t size)
{
    void *memory = calloc(count != 0 ? count : 1, size); /* fails too if the product is too large */

    if (memory == NULL)
        kd_no_memory();
    return memory;
}

void *kd_allocate_lines(size_t size)
{
    size_t whole = (size + KI_CACHE_LINE - 1) / KI_CACHE_LINE * KI_CACHE_LINE;
    void *memory = aligned_alloc(KI_CACHE_LINE, whole);

    if (memory == NULL)
        kd_no_memory();
    return memset(memory, 0, whole);
}

void kd_no_memory(void)
{
    kd_say_into(NULL, 0);
    kd_say("there is no memory");
    exit(1);
}

void *kd_grow(void *array, size_t count, size_t size)
{
    /* room for a power of two */
    if ((count & (count - 1)) == 0) {
        size_t room = count == 0 ? 1 : 2 * count, bytes;

        if (__builtin_mul_overflow(room, size, &bytes) || room < count || (array = realloc(array, bytes)) == NULL)
            kd_no_memory();
    }
    memset((char *)array + count * size, 0, size);
    return array;
}

/* Regions. */

static void add_region(kd_target *target, kd_region region)
{
    if (region.begin >= region.end || target->region_count >= KD_MOST_REGIONS)
        return;
    target->regions = kd_grow(target->regions, target->region_count, sizeof(kd_region));
    target->regions[target->region_count++] = region;
}

FILE *kd_open_of_process(const kd_target *target, const char *name)
{
    int file = openat(target->folder, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    FILE *stream = file >= 0 ? fdopen(file, "re") : NULL;

    if (stream == NULL && file >= 0)
        close(file);
    return stream;
}

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* What is mapped there: nothing, a file, or one of the kernel's names in brackets. */
static bool is_memory(const char *what)
{
    if (what[0] == '\0' || begins_with(what, "[heap]") || begins_with(what, "[stack") || begins_with(what, "[anon"))
        return true;
    if (begins_with(what, "/dev/"))
        return begins_with(what, "/dev/shm/") || begins_with(what, "/dev/zero");
    return what[0] == '/';
}

bool kd_map_process(kd_target *target)
{
    FILE *maps = kd_open_of_process(target, "maps");
    char *line = NULL;
    size_t size = 0;

    errno = maps != NULL ? 0 : errno;
    if (maps == NULL)
        return false;
    target->region_count = 0;
    free(target->regions);
    target->regions = NULL;
    while (getline(&line, &size, maps) > 0) {
        uint64_t begin, end;
        char rights[8] = "";
        int what = 0;

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %*s %*s %*s %n", &begin, &end, rights, &what) < 3)
            continue;
        line[strcspn(line, "\n")] = '\0';
        const char *mapped = what > 0 && (size_t)what <= strlen(line) ? line + what : "";
        bool readable = rights[0] == 'r' && is_memory(mapped);

        /* The block is initialized data, so the file is mapped there. */
        add_region(target, (kd_region){.begin = begin, .end = end, .readable = readable,
                                       .scannable = readable && mapped[0] == '/' && rights[2] == '-' &&
                                                    rights[3] == 'p'});
    }
    free(line);
    fclose(maps);
    errno = 0;
    return target->region_count > 0;
}

bool kd_map_core(kd_target *target)
{
    size_t headers;

    if (elf_getphdrnum(target->core, &headers) != 0)
        return false;
    for (size_t i = 0; i < headers && i < KD_MOST_REGIONS; i++) {
        GElf_Phdr header;

        if (gelf_getphdr(target->core, (int)i, &header) != NULL && header.p_type == PT_LOAD &&
            header.p_offset <= INT64_MAX && header.p_filesz <= INT64_MAX - header.p_offset &&
            header.p_filesz <= UINT64_MAX - header.p_vaddr)
            add_region(target, (kd_region){.begin = header.p_vaddr, .end = header.p_vaddr + header.p_filesz,
                                           .offset = header.p_offset, .readable = true,
                                           .scannable = !(header.p_flags & PF_X)});
    }
    if (target->region_count > 0)
        qsort(target->regions, target->region_count, sizeof(kd_region), kd_by_address);
    return target->region_count > 0;
}

void kd_forget_memory(kd_target *target)
{
    free(target->regions);
    target->regions = NULL;
    target->region_count = 0;
}

static const kd_region *region_at(const kd_target *target, kd_address address)
{
    size_t count = kd_count_up_to(target->regions, target->region_count, sizeof(kd_region), address);

    return count != 0 && address < target->regions[count - 1].end ? &target->regions[count - 1] : NULL;
}

bool kd_mapping_of(kd_target *target, kd_address address, kd_address *begin, kd_address *end)
{
    const kd_region *region = region_at(target, address);

    if (region == NULL)
        return false;
    *begin = region->begin;
    *end = region->end;
    return true;
}

static bool is_mapped(const kd_target *target, kd_address address, size_t size)
{
    while (size > 0) {
        const kd_region *region = region_at(target, address);

        if (region == NULL || !region->readable)
            return false;
        if (size <= region->end - address)
            return true;
        size -= region->end - address;
        address = region->end;
    }
    return true;
}

/* Reading. */

static bool read_process(kd_target *target, kd_address address, void *buffer, size_t size)
{
    struct iovec local = {buffer, size};
    struct iovec remote = {(void *)(uintptr_t)address, size};
    ssize_t length;

    /* It may have been mapped since. */
    if (!is_mapped(target, address, size) &&
        (!kd_spend_work(target, WORK_OF_MAPPING) || !kd_map_process(target) || !is_mapped(target, address, size)))
        return false;
    kd_guard_begin(READ_SECONDS, "reading its memory is blocked");
    length = process_vm_readv(target->process, &local, 1, &remote, 1, 0);
    if (length < 0 && (errno == EPERM || errno == ENOSYS)) {
        if (target->file < 0)
            target->file = openat(target->folder, "mem", O_RDONLY | O_CLOEXEC);
        if (target->file >= 0)
            length = pread(target->file, buffer, size, (off_t)address);
    }
    kd_guard_end();
    return length == (ssize_t)size;
}

/* Pages that the core file omits because a program or library contains them. */
static bool read_module(kd_target *target, kd_address address, void *buffer, size_t size)
{
    Dwfl_Module *module = dwfl_addrmodule(target->dwfl, address);
    GElf_Addr bias;
    size_t headers;
    Elf *elf = module != NULL ? dwfl_module_getelf(module, &bias) : NULL;

    if (elf == NULL || elf_getphdrnum(elf, &headers) != 0)
        return false;
    for (size_t i = 0; i < headers && i < KD_MOST_SEGMENTS; i++) {
        GElf_Phdr header;

        if (gelf_getphdr(elf, (int)i, &header) == NULL || header.p_type != PT_LOAD)
            continue;
        kd_address begin = header.p_vaddr + bias;
        if (address < begin || address - begin >= header.p_filesz || size > header.p_filesz - (address - begin))
            continue;
        Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)(header.p_offset + (address - begin)), size, ELF_T_BYTE);
        if (data == NULL || data->d_size < size)
            return false;
        memcpy(buffer, data->d_buf, size);
        return true;
    }
    return false;
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

void kd_note_pages(kd_target *target, kd_address address, uint64_t size)
{
    for (kd_address page = address / KD_PAGE * KD_PAGE; size != 0 && page < address + size; page += KD_PAGE) {
        if (!kd_index_add(&target->noted_pages, page, 0))
            continue;
        target->noted = kd_grow(target->noted, target->noted_count, sizeof(kd_address));
        target->noted[target->noted_count++] = page;
    }
}

void kd_sort_noted(kd_target *target)
{
    if (target->noted_count != 0)
        qsort(target->noted, target->noted_count, sizeof(kd_address), kd_by_address);
}

bool kd_read(kd_target *target, kd_address address, void *buffer, size_t size)
{
    if (address == 0 || address + size < address || !kd_spend_work(target, 1 + size / BYTES_PER_WORK))
        return false;
    if (target->process == 0)
        return read_core(target, address, buffer, size);
    if (!read_process(target, address, buffer, size))
        return false;
    if (target->noting)
        kd_note_pages(target, address, size);
    return true;
}

/* Up to the first page that cannot be read. */
static size_t read_some(kd_target *target, kd_address address, char *buffer, size_t size)
{
    size_t done = 0;

    while (done < size) {
        size_t part = KD_PAGE - (size_t)((address + done) % KD_PAGE);

        if (part > size - done)
            part = size - done;
        if (!kd_read(target, address + done, buffer + done, part))
            break;
        done += part;
    }
    return done;
}

bool kd_read_string(kd_target *target, kd_address address, char *buffer, size_t size)
{
    char raw[KD_MOST_TEXT];
    size_t length = read_some(target, address, raw, size < sizeof(raw) ? size : sizeof(raw));

    kd_clean(buffer, size, raw, length);
    return length > 0;
}

char *kd_read_wide(kd_target *target, kd_address address, size_t units, char *buffer, size_t size)
{
    uint16_t raw[KD_MOST_TEXT / 2];
    char text[2 * KD_MOST_TEXT], *to = text;
    uint32_t high = 0;

    if (units > sizeof(raw) / sizeof(raw[0]))
        units = sizeof(raw) / sizeof(raw[0]);
    if (units > size)
        units = size;
    units = read_some(target, address, (char *)raw, units * sizeof(raw[0])) / sizeof(raw[0]);
    for (size_t i = 0; i < units; i++) {
        bool low = raw[i] >= 0xdc00 && raw[i] < 0xe000;

        if (high != 0 && !low)
            to = kd_encode(to, 0xfffd);
        if (raw[i] >= 0xd800 && raw[i] < 0xdc00) {
            high = raw[i];
            continue;
        }
        /* A zero does not end it: its length does. */
        to = kd_encode(to, low ? (high != 0 ? 0x10000 + ((high - 0xd800) << 10) + (raw[i] - 0xdc00u) : 0xfffd)
                           : raw[i] != 0 ? raw[i] : 0xfffd);
        high = 0;
    }
    return kd_clean(buffer, size, text, (size_t)(to - text));
}
