/* target.h: the process or core file, shared by target.c and memory.c. */
#ifndef INTERLOCK_KD_TARGET_H
#define INTERLOCK_KD_TARGET_H

#include "kd.h"

#include <elfutils/libdwfl.h>
#include <gelf.h>

#define KD_MOST_REGIONS 1000000

typedef struct kd_region {
    kd_address begin, end;
    uint64_t offset; /* in the core file */
    bool readable;   /* memory, not a device: reading has no side effects */
    bool scannable;  /* data of a program or library may be there */
} kd_region;

typedef struct kd_named_root {
    char name[64];
    KD_ROOT raw;
} kd_named_root;

struct kd_target {
    int process;
    int self;             /* pidfd; -1: none */
    int folder;           /* /proc/PID, likewise */
    int file;             /* /proc/PID/mem or the core file */
    Elf *core;
    Dwfl *dwfl;
    kd_region *regions;   /* in the order of their addresses */
    size_t region_count;
    kd_segments segments;
    kd_address block;     /* where data is from */
    KD_DEBUGGER_DATA data;
    char version[4 * 32]; /* of the library, clean */
    kd_named_root *roots;
    size_t root_count;
    bool quiet;
    uint64_t work, memory; /* the remaining budget */
    bool spent;            /* more was requested */
    kd_index host_threads; /* by the id that a thread has in its own namespace; see kd_host_thread */
    bool has_namespace;
    bool noting;           /* reads of the process are recorded */
    kd_address *noted;     /* pages */
    size_t noted_count;
    kd_index noted_pages;
    kd_time taken;         /* of a snapshot */
};

/* Visits a note of a core file; FALSE ends the visit. The name and the contents are as long as the note says. */
typedef bool kd_visit_note(const GElf_Nhdr *note, const char *name, const char *contents, void *context);
void kd_visit_notes(kd_target *target, kd_visit_note *visit, void *context);

/* memory.c */
bool kd_map_process(kd_target *target); /* FALSE: errno has the reason, or is 0: it has no memory */
bool kd_map_core(kd_target *target);
void kd_forget_memory(kd_target *target);
FILE *kd_open_of_process(const kd_target *target, const char *name); /* below /proc/PID */

#endif
