/*
 * report.c: the report of a failure. While a schedule runs, places in the code and variables are written as @address@
 * and $address$; they get their names only when they are shown. #address.thread# stands for the threads that have
 * changed that variable, except for the given thread.
 */
#include "report.h"

#include "../posix/program.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PLACES   4096
#define PLACE_LENGTH 160
#define WIDE_COLUMN  36 /* a line has the step of one thread, so columns may be narrower than steps */
#define COLUMN       28

typedef struct place {
    uintptr_t pc;
    char text[PLACE_LENGTH];
    char line[96];
    char function[96];        /* the function that contains the code, even if it was inlined from another */
    char outer[PLACE_LENGTH]; /* the place in that function */
} place;

static FILE *out; /* where the report goes */
static place *places;
static uint32_t place_count;

void lab_report_callers(uintptr_t callers[EVENT_CALLERS], uintptr_t pc)
{
    const uintptr_t *frame = __builtin_frame_address(0);
    const lab_thread *t = lab->current;
    int count = 0;

    memset(callers, 0, EVENT_CALLERS * sizeof(*callers));
    while (t != NULL && count < EVENT_CALLERS && (const char *)frame >= t->stack &&
           (const char *)frame < t->stack + STACK_SIZE - 2 * sizeof(*frame) && frame[1] != 0) {
        if (count != 0 || frame[1] == pc)
            callers[count++] = frame[1];
        frame = (const uintptr_t *)frame[0];
    }
}

void lab_report_event(lab_op_kind kind, uintptr_t address, size_t size, int order, uint64_t before, uint64_t after,
                      bool flag, uintptr_t pc)
{
    if (!lab->tracing || lab->event_count == MAX_STEPS)
        return;
    lab_event *e = &lab->events[lab->event_count++];
    *e = (lab_event){
        .thread = lab->current->number,
        .kind = (uint8_t)kind,
        .size = (uint8_t)size,
        .order = (uint8_t)order,
        .flag = flag,
        .address = address,
        .pc = pc,
        .before = before,
        .after = after,
    };
    lab_report_callers(e->callers, e->pc);
}

/* Records an access; one to more than 8 bytes by its first address. */
void lab_report_access(uintptr_t address, uintptr_t pc)
{
    lab_past_access *a = &lab->accesses[lab->access_count++ % ACCESSES];

    *a = (lab_past_access){.address = address & ~7ul, .pc = pc, .thread = lab->current->number};
    lab_report_callers(a->callers, pc);
}

/* The calls that led to an access of this schedule. */
void lab_report_earlier(uintptr_t address, uintptr_t pc, uint8_t thread)
{
    uint32_t first = lab->access_count > ACCESSES ? lab->access_count - ACCESSES : 0;

    for (uint32_t i = lab->access_count; lab->tracing && i-- != first;) {
        const lab_past_access *a = &lab->accesses[i % ACCESSES];

        if (a->thread == thread && (uint32_t)a->pc == (uint32_t)pc && a->address == (address & ~7ul)) {
            lab->earlier = *a;
            return;
        }
    }
}

void lab_report_call(const char *call, uintptr_t address, uint64_t result, bool failed, uintptr_t pc)
{
    uint32_t count = lab->event_count;

    lab_report_event(OP_CALL, address, 0, 0, 0, result, failed, pc);
    if (lab->event_count != count)
        lab->events[count].call = call;
}

void lab_report_place(uintptr_t pc, char *buffer, size_t size)
{
    snprintf(buffer, size, "@%lx@", pc);
}

void lab_report_symbol(uintptr_t address, char *buffer, size_t size)
{
    snprintf(buffer, size, "$%lx$", address);
}

void lab_report_changes(uintptr_t address, uint8_t thread, char *buffer, size_t size)
{
    snprintf(buffer, size, "#%lx.%u#", address, thread);
}

/* Variables, from the program's symbol table. */

static const char *elf;

static void open_program(void)
{
    struct stat status;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    if (file < 0 || fstat(file, &status) != 0)
        return;
    void *mapped = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    elf = mapped != MAP_FAILED ? mapped : NULL;
    close(file);
}

static bool find_symbol(uintptr_t address, int type, char *buffer, size_t size)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)elf;

    if (elf == NULL)
        return false;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(elf + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB)
            continue;
        const Elf64_Sym *symbols = (const Elf64_Sym *)(elf + sections[i].sh_offset);
        const char *names = elf + sections[sections[i].sh_link].sh_offset;
        for (size_t s = 0; s < sections[i].sh_size / sizeof(Elf64_Sym); s++) {
            const Elf64_Sym *symbol = &symbols[s];
            uintptr_t offset = address - symbol->st_value;

            if (ELF64_ST_TYPE(symbol->st_info) != type || offset >= (symbol->st_size ? symbol->st_size : 1))
                continue;
            if (offset == 0)
                snprintf(buffer, size, "%s", names + symbol->st_name);
            else
                snprintf(buffer, size, "%s+%#lx", names + symbol->st_name, offset);
            return true;
        }
    }
    return false;
}

static void name_address(uintptr_t address, char *buffer, size_t size)
{
    if (lab_machine.describe_address != NULL && lab_machine.describe_address(address, buffer, size))
        return;
    if (lab_memory_describe(address, buffer, size) != NULL || lab_names_variable(address, buffer, size))
        return;
    if (find_symbol(address, STT_OBJECT, buffer, size))
        lab_names_demangle(buffer, size);
    else
        snprintf(buffer, size, "%#lx", address);
}

/* Places, by one call of addr2line. */

static void want_place(uintptr_t pc)
{
    for (uint32_t i = 0; i < place_count; i++)
        if (places[i].pc == pc)
            return;
    if (place_count < MAX_PLACES)
        places[place_count++].pc = pc;
}

static const place *find_place(uintptr_t pc)
{
    static const place unknown = {0, "?", "?", "?", "?"};

    for (uint32_t i = 0; i < place_count; i++)
        if (places[i].pc == pc)
            return &places[i];
    return &unknown;
}

static const char *place_text(uintptr_t pc)
{
    return find_place(pc)->text;
}

static char *base_name(char *path)
{
    char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* One of the frames of a place: a function and a line in it. The innermost comes first. */
static void note_frame(place *p, char *function, char *line)
{
    function[strcspn(function, "\n")] = '\0';
    line[strcspn(line, " \n")] = '\0';
    if (p->line[0] == '\0') {
        if (line[0] != '?')
            snprintf(p->text, PLACE_LENGTH, "%.60s %.90s", base_name(line), function);
        snprintf(p->line, sizeof(p->line), "%.90s", base_name(line));
    }
    snprintf(p->outer, PLACE_LENGTH, "%.60s %.90s", base_name(line), function);
}

/* Reads each place: its address, then two lines per frame. */
static void read_places(FILE *pipe)
{
    char function[512], line[1024];
    uint32_t count = 0;

    while (fgets(function, sizeof(function), pipe) != NULL) {
        if (strncmp(function, "0x", 2) == 0) {
            count++;
            continue;
        }
        if (count == 0 || count > place_count || fgets(line, sizeof(line), pipe) == NULL)
            return;
        note_frame(&places[count - 1], function, line);
    }
}

/* The addresses are in a file without a name. */
static void resolve_places(void)
{
    int file = memfd_create("lab-places", 0);
    char command[256];

    if (file < 0)
        return;
    for (uint32_t i = 0; i < place_count; i++) {
        find_symbol(places[i].pc, STT_FUNC, places[i].text, PLACE_LENGTH);
        find_symbol(places[i].pc, STT_FUNC, places[i].function, sizeof(places[i].function));
        places[i].function[strcspn(places[i].function, "+")] = '\0';
        lab_names_demangle(places[i].function, sizeof(places[i].function));
        dprintf(file, "%#lx\n", places[i].pc == 0 ? 0 : places[i].pc - 1);
    }
    snprintf(command, sizeof(command), "addr2line -C -a -i -f -e /proc/%d/exe < /proc/%d/fd/%d 2>/dev/null", getpid(),
             getpid(), file);
    FILE *pipe = popen(command, "r");
    if (pipe != NULL) {
        read_places(pipe);
        pclose(pipe);
    }
    close(file);
    for (uint32_t i = 0; i < place_count; i++)
        lab_names_demangle(places[i].text, PLACE_LENGTH);
}

static uint32_t cell_of_event(const lab_event *e)
{
    lab_granule *shadow = lab_memory_shadow(e->address);
    return shadow != NULL ? shadow->cell[e->address & 7] : NO_CELL;
}

static bool is_access(const lab_event *e)
{
    return e->kind == OP_LOAD || e->kind == OP_STORE || e->kind == OP_RMW || e->kind == OP_CAS;
}

/* The same file, at any line. */
static bool is_same_file(const char *a, const char *b)
{
    size_t length = strcspn(a, ":");
    return length == strcspn(b, ":") && strncmp(a, b, length) == 0;
}

/* Where the test itself is, and which function it called: "eat (forks.c:24): KeWaitForSingleObject". */
static void describe_caller(const lab_event *e, char *text, size_t size)
{
    const place *entry = find_place(lab->run.threads[e->thread].entry + 1);
    const place *called = NULL;

    text[0] = '\0';
    for (int own = 0; own < EVENT_CALLERS && e->callers[own] != 0; own++) {
        const place *p = find_place(e->callers[own]);

        if (is_same_file(p->line, entry->line)) {
            if (called != NULL)
                snprintf(text, size, "%.40s, in %.60s:", p->text, called->function);
            return;
        }
        if (is_same_file(p->outer, entry->line)) { /* inlined from a header */
            const char *function = strchr(p->text, ' ');
            snprintf(text, size, "%.40s, in %.60s:", p->outer, function != NULL ? function + 1 : "?");
            return;
        }
        called = p;
    }
}

/* The last change of the variable by that thread, or NULL. */
static const lab_event *find_change(uintptr_t address, uint8_t thread)
{
    const lab_granule *shadow = lab_memory_shadow(address);
    uint32_t number = shadow != NULL ? shadow->cell[address & 7] : NO_CELL;

    for (uint32_t i = lab->event_count; i-- != 0 && number != NO_CELL;) {
        const lab_event *e = &lab->events[i];

        if (e->thread == thread && cell_of_event(e) == number && is_access(e) && e->kind != OP_LOAD &&
            !(e->kind == OP_CAS && e->flag))
            return e;
    }
    return NULL;
}

static void print_changes(uintptr_t address, uint8_t but)
{
    bool any = false;

    for (uint8_t thread = 0; thread < lab->run.thread_count; thread++) {
        const lab_event *e = thread != but ? find_change(address, thread) : NULL;
        char caller[160];

        if (e == NULL)
            continue;
        any = true;
        describe_caller(e, caller, sizeof(caller));
        if (caller[0] != '\0')
            caller[strlen(caller) - 1] = '\0'; /* the colon */
        fprintf(out, "\n      %c%s changed it last at %s", 'a' + thread,
               lab->run.threads[thread].state == THREAD_DONE ? ", which has ended," : "",
               caller[0] != '\0' ? caller : place_text(e->pc));
        if (e->kind != OP_STORE || !e->flag)
            fprintf(out, ": %#lx -> %#lx", e->before, e->after);
    }
    if (!any)
        fprintf(out, "\n      no other thread has changed it");
}

/* For a variable on the heap, prints the size of its block and where that was allocated. */
static void print_origin(uintptr_t address)
{
    size_t size = 0;
    uintptr_t pc = lab_memory_origin(address, &size);
    const place *p = find_place(pc);

    if (pc != 0 && p->text[0] != '\0' && p->text[0] != '?')
        fprintf(out, " (of the %zu bytes that %s allocated)", size, p->text);
}

/* Finds @pc@ and $address$ in a text, or prints the text with their names. */
static void walk_text(const char *text, bool print)
{
    while (*text != '\0') {
        if (*text == '@' || *text == '$') {
            char *end;
            uintptr_t value = strtoul(text + 1, &end, 16);

            if (end != text + 1 && *end == *text) {
                char symbol[256];
                size_t bytes = 0;
                if (!print) {
                    want_place(*text == '@' ? value : lab_memory_origin(value, &bytes));
                } else if (*text == '@') {
                    fputs(value == 0 ? "?" : place_text(value), out);
                } else {
                    name_address(value, symbol, sizeof(symbol));
                    fputs(symbol, out);
                    print_origin(value);
                }
                text = end + 1;
                continue;
            }
        }
        if (*text == '#') {
            char *dot, *end;
            uintptr_t address = strtoul(text + 1, &dot, 16);
            unsigned long thread = *dot == '.' ? strtoul(dot + 1, &end, 10) : 0;

            if (*dot == '.' && *end == '#') {
                if (print)
                    print_changes(address, (uint8_t)thread);
                text = end + 1;
                continue;
            }
        }
        if (print)
            fputc(*text, out);
        text++;
    }
}

static const char *const kind_names[] = {
    [OP_START] = "starts",      [OP_LOAD] = "load",      [OP_STORE] = "store", [OP_RMW] = "rmw",
    [OP_CAS] = "cas",           [OP_FENCE] = "fence",    [OP_WAIT] = "wait",   [OP_WAKE] = "wake",
    [OP_TIMEOUT] = "times out", [OP_RESUME] = "resumes", [OP_CLOCK] = "clock", [OP_INTERRUPT] = "interrupt",
    [OP_SPAWN] = "spawns",      [OP_JOIN] = "joins",     [OP_END] = "ends",    [OP_LOCAL] = "chooses",
    [OP_CALL] = "calls",        [OP_EXIT] = "exits",
};

static const char *order_name(int order)
{
    static const char *const names[] = {" rlx", " acq", " acq", " rel", " a/r", ""};
    return order >= 0 && order < 6 ? names[order] : "";
}

static void describe_event(const lab_event *e, char *text, size_t size)
{
    char symbol[128];
    const char *kind = kind_names[e->kind];

    name_address(e->address, symbol, sizeof(symbol));
    switch (e->kind) {
    case OP_LOAD:
        snprintf(text, size, "%s%s %s = %#lx%s", kind, order_name(e->order), symbol, e->before,
                 e->flag ? " (stale)" : "");
        break;
    case OP_STORE:
        if (e->flag)
            snprintf(text, size, "store volatile %s", symbol);
        else
            snprintf(text, size, "%s%s %s: %#lx -> %#lx", kind, order_name(e->order), symbol, e->before, e->after);
        break;
    case OP_RMW:
        snprintf(text, size, "%s%s %s: %#lx -> %#lx", kind, order_name(e->order), symbol, e->before, e->after);
        break;
    case OP_CAS:
        if (e->flag)
            snprintf(text, size, "%s%s %s fails: %#lx", kind, order_name(e->order), symbol, e->before);
        else
            snprintf(text, size, "%s%s %s: %#lx -> %#lx", kind, order_name(e->order), symbol, e->before, e->after);
        break;
    case OP_WAIT:
        snprintf(text, size, e->flag ? "does not wait, %s is %lu" : "sleeps, %s is %lu", symbol, e->before);
        break;
    case OP_WAKE:
        snprintf(text, size, "wakes %lu of %lu at %s", e->after < e->before ? e->after : e->before, e->before, symbol);
        break;
    case OP_LOCAL:
        snprintf(text, size, "chooses %lu of %lu", e->after, e->before);
        break;
    case OP_CALL:
        if (e->address == 0)
            snprintf(text, size, "%s", e->call);
        else if (e->flag)
            snprintf(text, size, "%s(%s) = %s", e->call, symbol, strerrorname_np((int)e->after));
        else
            snprintf(text, size, "%s(%s)", e->call, symbol);
        break;
    case OP_JOIN:
        snprintf(text, size, e->after < MAX_THREADS ? "joins %c" : "joins", (char)('a' + e->after));
        break;
    case OP_EXIT:
        snprintf(text, size, "ends the program, status %lu", e->after);
        break;
    case OP_SPAWN:
        snprintf(text, size, "starts thread %c", (char)('a' + e->after));
        break;
    case OP_END:
        snprintf(text, size, e->flag ? "dies" : "ends");
        break;
    case OP_RESUME:
        snprintf(text, size, "spurious wakeup");
        break;
    case OP_INTERRUPT:
        if (e->flag)
            snprintf(text, size, "is interrupted");
        else
            snprintf(text, size, "interrupts %c", (char)('a' + e->address));
        break;
    default:
        snprintf(text, size, "%s", kind);
        break;
    }
}

typedef struct use {
    uint16_t threads;
    bool written;
} use;

static use *uses; /* of each cell, in this schedule */

static void find_uses(void)
{
    uses = calloc(lab->cell_count, sizeof(*uses));
    for (uint32_t i = 0; i < lab->event_count; i++) {
        const lab_event *e = &lab->events[i];
        uint32_t number = cell_of_event(e);

        if (number == NO_CELL || (!is_access(e) && e->kind != OP_WAIT && e->kind != OP_WAKE))
            continue; /* the objects of calls: is_called_by_one */
        uses[number].threads |= (uint16_t)(1u << e->thread);
        uses[number].written |= is_access(e) && e->kind != OP_LOAD;
    }
}

/* Variables that no other thread accesses are not shown. */
/* Locks used by a single thread, and initializations, are omitted; waits are shown. */
static bool is_called_by_one(const lab_event *call)
{
    if (strstr(call->call, "mutex") == NULL && strstr(call->call, "once") == NULL && strstr(call->call, "static") == NULL)
        return false;
    for (uint32_t i = 0; i < lab->event_count; i++)
        if (lab->events[i].kind == OP_CALL && lab->events[i].address == call->address &&
            lab->events[i].thread != call->thread)
            return false;
    for (uint32_t i = 0; i < lab->run.thread_count; i++)
        if (lab->run.threads[i].gate != NULL && lab->run.threads[i].op.address == call->address)
            return false;
    return true;
}

static bool is_interesting(const lab_event *e)
{
    if (e->kind == OP_CALL && e->address != 0 && !e->flag)
        return !is_called_by_one(e);
    const use *u = &uses[cell_of_event(e)];
    return !is_access(e) || (u->written && (u->threads & (u->threads - 1)) != 0);
}

static bool is_repeated(const lab_event *a, const lab_event *b)
{
    return a->thread == b->thread && a->kind == OP_LOAD && b->kind == OP_LOAD && a->address == b->address &&
           a->before == b->before && a->size == b->size;
}

/* The threads of the trace: their columns and headings. */
static uint32_t find_columns(uint32_t column[MAX_THREADS], char names[MAX_THREADS][128])
{
    bool present[MAX_THREADS] = {false};
    uint32_t columns = 0;

    for (uint32_t i = 0; i < lab->event_count; i++)
        present[lab->events[i].thread] = true;
    if (lab->failure_thread < MAX_THREADS)
        present[lab->failure_thread] = true;
    for (uint32_t t = 0; t < MAX_THREADS; t++) {
        const lab_thread *thread = &lab->run.threads[t];
        char function[112] = "";

        column[t] = columns;
        if (!present[t])
            continue;
        find_symbol(thread->entry, STT_FUNC, function, sizeof(function));
        lab_names_demangle(function, sizeof(function));
        if (thread->name != NULL && !thread->service)
            snprintf(names[columns++], 128, "%c %.15s: %.90s", 'a' + t, thread->name, function);
        else
            snprintf(names[columns++], 128, "%c %.110s", 'a' + t, function);
    }
    return columns;
}

static uint32_t print_header(uint32_t columns, char names[][128])
{
    uint32_t width = columns <= 2 ? WIDE_COLUMN : COLUMN;

    printf("\n        ");
    for (uint32_t i = 0; i < columns; i++)
        printf("%-*.*s", i + 1 < columns ? (int)width : 0, (int)width - 2, names[i]);
    printf("\n");
    return width;
}

/* The values in decimal, and the functions on the stack: more than fits on a line. */
static void describe_hover(const lab_event *e, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    if (is_access(e) && !(e->kind == OP_STORE && e->flag))
        used = (size_t)snprintf(text, size, e->before == e->after ? "value %lu (%#lx)\n" : "from %lu (%#lx) to %lu (%#lx)\n",
                                e->before, e->before, e->after, e->after);
    for (int i = 0; i < EVENT_CALLERS && e->callers[i] != 0 && used + 8 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s\n", place_text(e->callers[i]));
}

typedef struct trace {
    uint32_t column[MAX_THREADS];
    char names[MAX_THREADS][128];
    char call[MAX_THREADS][160]; /* of the library, that each thread is in */
    uint32_t columns, width, number;
    const lab_event *last;
    bool marked;
    FILE *page;
} trace;

/* From the same place of the test. */
static bool is_same_call(const char *a, const char *b)
{
    const char *end = strstr(a, ", in ");
    return end != NULL && strncmp(a, b, (size_t)(end - a) + 5) == 0;
}

/* Steps of one call are shown under it, or, with --calls, as the call alone. */
static void show_event(trace *t, const lab_event *e)
{
    int indent = (int)(t->column[e->thread] * t->width);
    char text[256], caller[160], hover[1500];

    describe_caller(e, caller, sizeof(caller));
    bool enters = caller[0] != '\0' && strcmp(caller, t->call[e->thread]) != 0;
    if (lab->options.calls && enters && is_same_call(caller, t->call[e->thread]))
        enters = false; /* a function that ends with a call of another one is still one call */
    bool folded = caller[0] != '\0' && !enters && lab->options.calls && e->kind != OP_END;
    if (caller[0] != '\0' || e->kind == OP_CALL)
        memcpy(t->call[e->thread], caller, sizeof(caller));
    describe_event(e, text, sizeof(text));
    describe_hover(e, hover, sizeof(hover));
    t->number += !folded;
    if (t->page != NULL)
        lab_html_add(t->page, &(lab_html_row){t->number, t->column[e->thread], text, e->pc != 0 ? place_text(e->pc) : "",
                                              enters ? caller : "", hover, caller[0] != '\0'});
    if (folded)
        return;
    if (t->last != NULL && t->last->thread != e->thread)
        printf("        %*s---\n", indent, "");
    t->last = e;
    if (enters && lab->options.calls) {
        caller[strlen(caller) - 1] = '\0'; /* the colon */
        printf("  %4u  %*s%s\n", t->number, indent, "", caller);
        return;
    }
    if (enters)
        printf("        %*s%s\n", indent, "", caller);
    printf("  %4u  %*s%s%s", t->number, indent, "", caller[0] != '\0' ? "  " : "", text);
    if (e->pc != 0)
        printf("   [%s]", place_text(e->pc));
    printf("\n");
}

/* The failure itself is not a step, unless it is a wait. */
static void show_failure(trace *t)
{
    char text[64];

    if (lab->failure_thread >= MAX_THREADS || lab->failure_pc == 0 || t->columns == 0)
        return;
    snprintf(text, sizeof(text), "<- %s", lab_verdict_names[lab->verdict]);
    if (t->last != NULL && t->last->thread != lab->failure_thread)
        printf("        %*s---\n", (int)(t->column[lab->failure_thread] * t->width), "");
    printf("        %*s%s   [%s]\n", (int)(t->column[lab->failure_thread] * t->width), "", text, place_text(lab->failure_pc));
    if (t->page != NULL)
        lab_html_add(t->page, &(lab_html_row){0, t->column[lab->failure_thread], text, place_text(lab->failure_pc), "", "", false});
}

/* One column per thread; a line marks a switch to another thread. */
static void print_trace(const char *text, const char *token)
{
    static trace t;
    const lab_event *shown = NULL;

    memset(&t, 0, sizeof(t));
    t.columns = find_columns(t.column, t.names);
    t.width = print_header(t.columns, t.names);
    if (lab->options.html != NULL)
        t.page = lab_html_begin(lab->options.html, lab_verdict_names[lab->verdict], text, t.columns, t.names);
    find_uses();
    for (uint32_t i = 0; i < lab->event_count; i++) {
        const lab_event *e = &lab->events[i];

        if (!is_interesting(e) || (shown != NULL && is_repeated(shown, e)))
            continue;
        if (lab->cycle_found && i >= lab->cycle_event && !t.marked) {
            printf("        ==== from here to the end, repeated ====\n");
            t.marked = true;
            t.last = NULL;
        }
        shown = e;
        show_event(&t, e);
    }
    free(uses);
    show_failure(&t);
    if (t.page != NULL)
        lab_html_end(t.page, token);
}

char *lab_report_token(char *buffer, size_t size)
{
    size_t used = (size_t)snprintf(
        buffer, size, "%s@%s,p%s%s%s%s:", lab->scenario->Name, lab_model_names[lab->options.model],
        getenv("INTERLOCK_PROCESSORS") != NULL ? getenv("INTERLOCK_PROCESSORS") : "2", lab->tracking ? ",states" : "",
        lab->options.abstract ? ",abstract" : "", lab->options.abstract_locks ? ",locks" : "");
    uint32_t i = 0;

    while (i < lab->given_count && used + 16 < size) {
        if (!lab->given[i].choice) {
            uint32_t count = 0;
            uint8_t thread = lab->given[i].value;
            while (i < lab->given_count && !lab->given[i].choice && lab->given[i].value == thread) {
                count++;
                i++;
            }
            used += (size_t)snprintf(buffer + used, size - used, count > 1 ? "%c%u" : "%c", 'a' + thread, count);
            continue;
        }
        uint32_t end = i;
        while (end < lab->given_count && lab->given[end].choice)
            end++;
        uint32_t last = end;
        while (last > i && lab->given[last - 1].value == 0)
            last--;
        for (; i < last && used + 16 < size; i++)
            used += (size_t)snprintf(buffer + used, size - used, "~%u", lab->given[i].value);
        i = end;
    }
    return buffer;
}

static void want_event_places(const lab_event *e)
{
    want_place(e->pc);
    want_place(lab->run.threads[e->thread].entry + 1);
    for (int i = 0; i < EVENT_CALLERS && e->callers[i] != 0; i++)
        want_place(e->callers[i]);
}

static bool concerns_all(lab_verdict verdict)
{
    return verdict == VERDICT_DEADLOCK || verdict == VERDICT_LOST_WAKEUP || verdict == VERDICT_LIVELOCK ||
           verdict == VERDICT_STARVATION || verdict == VERDICT_ENDLESS;
}

/* A place and its callers. */
static void print_frames(const char *title, uintptr_t pc, const uintptr_t callers[EVENT_CALLERS])
{
    const char *last = NULL;
    const place *p = find_place(pc);

    if (pc == 0 || p->text[0] == '\0')
        return;
    fprintf(out, "\n    %s %s", title, p->text);
    if (p->line[0] != '\0' && strcmp(p->text, p->outer) != 0)
        fprintf(out, "\n       %s", p->outer); /* into which it was inlined */
    for (int i = 1; i < EVENT_CALLERS && callers[i] != 0; i++) {
        const char *text = place_text(callers[i]);

        if (strstr(text, " run_fiber") != NULL || strstr(text, " run_thread") != NULL || strstr(text, " run_main") != NULL ||
            strstr(text, " lab_program_run") != NULL)
            break; /* the explorer's own frames */
        if (text[0] != '\0' && (last == NULL || strcmp(text, last) != 0))
            fprintf(out, "\n       %s", text);
        last = text;
    }
}

static void print_stack(void)
{
    char title[32];

    print_frames("at", lab->failure_pc, lab->failure_callers);
    snprintf(title, sizeof(title), "thread %c before, at", (char)('a' + lab->earlier.thread));
    if (lab->verdict == VERDICT_RACE)
        print_frames(title, lab->earlier.pc, lab->earlier.callers);
}

void lab_report_failure(void)
{
    static char token[65536];
    char *text = NULL;
    size_t length;

    lab_program_unmute();
    open_program();
    places = calloc(MAX_PLACES, sizeof(place));
    place_count = 0;
    walk_text(lab->text, false);
    want_place(lab->failure_pc);
    for (int i = 0; i < EVENT_CALLERS && lab->failure_callers[i] != 0; i++)
        want_place(lab->failure_callers[i]);
    want_place(lab->earlier.pc);
    for (int i = 0; i < EVENT_CALLERS && lab->earlier.callers[i] != 0; i++)
        want_place(lab->earlier.callers[i]);
    for (uint32_t i = 0; i < lab->event_count; i++)
        want_event_places(&lab->events[i]);
    resolve_places();
    lab_report_token(token, sizeof(token));
    out = open_memstream(&text, &length);
    fprintf(out, "%s", lab_verdict_names[lab->verdict]);
    if (lab->failure_thread < MAX_THREADS && !concerns_all(lab->verdict))
        fprintf(out, " in thread %c", 'a' + lab->failure_thread);
    fprintf(out, ": ");
    walk_text(lab->text, true);
    print_stack();
    fclose(out);
    printf("  %s\n", text);
    if (lab->event_count != 0)
        print_trace(text, token);
    lab_program_print_output();
    printf("\n  replay: %s\n", token);
    fflush(stdout);
    free(text);
    free(places);
}

void lab_report_print(const char *text)
{
    out = stdout;
    open_program();
    places = calloc(MAX_PLACES, sizeof(place));
    place_count = 0;
    walk_text(text, false);
    resolve_places();
    walk_text(text, true);
    free(places);
}
