/*
 * kd.h: looking into a process that uses Interlock, from outside: no cooperation of the process, which may be stopped,
 * deadlocked or a core file. Its structures are copied with the types of the internal headers, so what a pointer in a
 * copy points to is read with kd_read as well.
 *
 * A live process goes on while it is looked at. What belongs together is read until it stays the same between two
 * reads; a thread that does not hold still for that is marked as moving, and nothing is concluded from it.
 */
#ifndef INTERLOCK_KD_H
#define INTERLOCK_KD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "json.h"

#include "ex/pushlock.h"
#include "ex/resource.h"
#include "ex/waiterhash.h"
#include "ke/debugdata.h"
#include "ke/wait.h"
#include "ob/handletable.h"
#include "ob/namespace.h"
#include "ps/psp.h"
#include "rtl/criticalsection.h"
#include "rtl/waiter.h"

typedef uint64_t kd_address;

#define KD_ADDRESS(pointer) ((kd_address)(uintptr_t)(pointer))
#define KD_SYMBOL_SIZE 256

/* target.c: the process or core file. */

typedef struct kd_target kd_target;

kd_target *kd_open(const char *what, bool quiet); /* NULL: it has said why, unless quiet */
void kd_close(kd_target *target);
int kd_process_of(const kd_target *target);       /* 0: a core file */
bool kd_read(kd_target *target, kd_address address, void *buffer, size_t size);
bool kd_read_string(kd_target *target, kd_address address, char *buffer, size_t size);
kd_address kd_root(kd_target *target, const char *name, size_t *size); /* 0: the program has no such part */
const char *kd_version(const kd_target *target);
struct Dwfl *kd_dwfl(kd_target *target);
struct Dwfl_Module *kd_module_at(kd_target *target, kd_address address); /* NULL: none */

/* A loaded part of a program or library, with all of its .bss: only what is in the file belongs to libdwfl's module. */
typedef struct kd_segment {
    kd_address begin, end;
    struct Dwfl_Module *module;
} kd_segment;

typedef struct kd_segments {
    kd_segment *list;
    size_t count;
} kd_segments;

struct Dwfl_Module *kd_module_in(struct Dwfl *dwfl, kd_segments *segments, kd_address address);
struct Elf *kd_core(kd_target *target); /* NULL: a process */
void kd_say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* to standard error, or to */
void kd_say_into(char *buffer, size_t size); /* what kd_say says from now on; NULL: standard error */

/* layout.c */
bool kd_has_known_layout(kd_target *target);

/* symbol.c */
bool kd_symbol(kd_target *target, kd_address address, char buffer[KD_SYMBOL_SIZE]); /* as module!name+0x10 */
typedef struct kd_frame {
    kd_address pc;
    char symbol[KD_SYMBOL_SIZE];
    char file[KD_SYMBOL_SIZE];
    int line; /* 0: not known */
} kd_frame;
/* Without a target; the module may be NULL. */
bool kd_symbol_in(struct Dwfl_Module *module, kd_address address, char buffer[KD_SYMBOL_SIZE]);
void kd_describe_frame(struct Dwfl_Module *module, kd_address pc, bool activation, kd_frame *frame);
typedef void kd_visit_frame(const kd_frame *frame, void *context);
/* Why there is no stack, or NULL. Visits the innermost frame first. */
const char *kd_stack(kd_target *target, uint32_t id, kd_visit_frame *visit, void *context);

/* names.c: NT's words. */
const char *kd_thread_state_name(unsigned state);
const char *kd_wait_reason_name(unsigned reason);
const char *kd_wait_type_name(unsigned type);
const char *kd_block_state_name(unsigned state);
const char *kd_wait_state_name(unsigned state);
const char *kd_object_type_name(unsigned type);

/* What threads wait for or own. */

typedef enum kd_kind {
    KD_EVENT,
    KD_SEMAPHORE,
    KD_MUTANT,
    KD_TIMER,
    KD_QUEUE,
    KD_GATE,
    KD_THREAD,
    KD_PROCESS,
    KD_PUSH_LOCK,
    KD_ADDRESS_PUSH_LOCK,
    KD_FAST_MUTEX,
    KD_GUARDED_MUTEX,
    KD_RESOURCE,
    KD_FAST_RESOURCE,
    KD_RUNDOWN,
    KD_KEYED_EVENT,
    KD_SRW_LOCK,
    KD_CRITICAL_SECTION,
    KD_RTL_RESOURCE,
    KD_CONDITION_VARIABLE,
    KD_ADDRESS_WAIT,
    KD_ALERT,
    KD_SUSPENSION,
    KD_UNKNOWN,
    KD_KINDS
} kd_kind;

const char *kd_kind_name(kd_kind kind);  /* for JSON */
const char *kd_kind_title(kd_kind kind); /* for people */

typedef enum kd_hold { KD_FREE, KD_EXCLUSIVE, KD_SHARED, KD_HOLD_UNKNOWN } kd_hold;

/* An owner that is a thread has an id; one that is not is an owner pointer. */
typedef struct kd_owner {
    kd_address address;
    uint32_t id;
    int thread;    /* index, -1: none that lives */
    unsigned count;
    bool probable; /* the lock does not say; the thread was the last to get it after a wait */
} kd_owner;

typedef struct kd_waiter {
    int thread;
    bool exclusive;
} kd_waiter;

typedef struct kd_lock {
    kd_kind kind;
    kd_address address;
    kd_address object;   /* the dispatcher header, 0: it has none */
    char name[KD_SYMBOL_SIZE];
    kd_hold hold;
    bool has_state;      /* it is a dispatcher object itself, with */
    int64_t signal_state;
    int64_t contention;  /* -1: not counted */
    kd_owner *owners;
    size_t owner_count;
    kd_waiter *waiters;
    size_t waiter_count;
} kd_lock;

typedef struct kd_block {
    kd_address address;
    KWAIT_BLOCK raw;
    int lock;            /* index, -1: nothing is known about it */
} kd_block;

typedef struct kd_thread {
    kd_address address;  /* of the KTHREAD */
    KI_THREAD_SLOT *slot;
    KTHREAD *raw;
    ETHREAD *object;
    uint32_t id;
    char name[128];
    char host_state;     /* as in /proc, '?': not known */
    bool moving;
    bool waiting;        /* and committed to it */
    bool system;
    kd_block *blocks;
    size_t block_count;
    bool deadlocked;     /* its wait can never end */
    bool orphaned;       /* because it waits, directly or not, for a lock whose owner has ended */
} kd_thread;

/* An object that has a handle. */
typedef struct kd_handle {
    uint64_t handle;
    kd_address body;
    kd_address header;   /* dispatcher header that a wait by handle waits for; 0: none */
    uint32_t access;
    bool inherit, protect;
    int64_t handle_count, pointer_count;
    char type[64];
    char name[512];      /* whole path, or empty */
} kd_handle;

typedef struct kd_snapshot {
    kd_target *target;
    uint64_t now;        /* interrupt time in 100 ns; 0: a core file, not known */
    uint64_t system_time;
    uint32_t process_id;
    uint32_t processors;
    bool verifier;
    kd_thread *threads;
    size_t thread_count;
    kd_handle *handles;
    size_t handle_count;
    kd_lock *locks;
    size_t lock_count;
    struct kd_deadlocks *deadlocks;
} kd_snapshot;

/* snapshot.c */
kd_snapshot *kd_snapshot_take(kd_target *target); /* NULL: it has said why */
void kd_snapshot_free(kd_snapshot *snapshot);
int kd_thread_at(const kd_snapshot *snapshot, kd_address address);  /* -1: none */
int kd_thread_with_id(const kd_snapshot *snapshot, uint32_t id);
char *kd_utf8(kd_target *target, kd_address text, size_t units, char *buffer, size_t size);

/* handles.c */
void kd_collect_handles(kd_snapshot *snapshot);
const kd_handle *kd_handle_of_header(const kd_snapshot *snapshot, kd_address header);
const kd_handle *kd_handle_with_value(const kd_snapshot *snapshot, uint64_t handle);
bool kd_object_name(kd_target *target, kd_address body, char *buffer, size_t size);

/* locks.c */
void kd_collect_locks(kd_snapshot *snapshot);
int kd_find_lock(const kd_snapshot *snapshot, kd_address address);
const char *kd_describe_lock(const kd_lock *lock, char *buffer, size_t size); /* critical section 0x.. (name) */
const char *kd_describe_thread(const kd_snapshot *snapshot, int thread, char *buffer, size_t size);

/* deadlock.c */
typedef struct kd_link {
    int thread;
    int lock;
    int owner;           /* the thread that holds it, -1: one that has ended */
    uint32_t owner_id;
} kd_link;

typedef struct kd_cycle {
    kd_link *links;      /* each waits for the next; the last for the first, or for one that has ended */
    size_t count;
    bool orphaned;       /* the last one's lock belongs to a thread that has ended */
    bool certain;
} kd_cycle;

/* A lock that does not say who holds it, and threads that wait for its waiters: if one of those holds it, no end. */
typedef struct kd_suspicion {
    int lock;
    int *suspects;
    size_t count;
} kd_suspicion;

typedef struct kd_deadlocks {
    kd_cycle *cycles;
    size_t cycle_count;
    kd_suspicion *suspicions;
    size_t suspicion_count;
} kd_deadlocks;

void kd_find_deadlocks(kd_snapshot *snapshot);
void kd_print_deadlocks(const kd_snapshot *snapshot);             /* nothing if there are none */
void kd_json_deadlocks(json *out, const kd_snapshot *snapshot);   /* two members of an object */

/* view.c: what the views share. */
typedef struct kd_options {
    bool json, compact, verbose, stack, dot;
    FILE *file;          /* where JSON goes */
    const char *target;
    const char *argument;
} kd_options;

typedef struct kd_view {
    const char *name;
    const char *arguments;
    bool has_argument, needs_argument;
    bool has_dot;
    int (*show)(kd_snapshot *snapshot, const kd_options *options);
} kd_view;

extern const kd_view kd_threads_view, kd_deadlocks_view, kd_locks_view, kd_object_view, kd_handles_view;
extern const kd_view kd_qlocks_view, kd_dpcs_view, kd_timers_view, kd_graph_view;

int kd_run(const kd_view *view, int argc, char **argv);
json kd_json(const kd_options *options);
bool kd_parse_number(const char *text, uint64_t *number);
void kd_json_thread(json *out, const char *key, const kd_snapshot *snapshot, int thread); /* id and name */
void kd_json_lock(json *out, const char *key, const kd_snapshot *snapshot, const kd_lock *lock);
/* Without its waiters: for what is said once for each of those. */
void kd_json_lock_briefly(json *out, const char *key, const kd_lock *lock);
void kd_print_thread(kd_snapshot *snapshot, const kd_thread *thread, const kd_options *options);
void kd_print_lock(const kd_snapshot *snapshot, const kd_lock *lock, bool verbose);
void kd_print_stack(kd_target *target, uint32_t id);
double kd_seconds(uint64_t interval);

/* threads.c */
double kd_waited(const kd_snapshot *snapshot, const kd_thread *thread);
bool kd_time_left(const kd_snapshot *snapshot, const kd_thread *thread, double *left);
bool kd_owns(const kd_lock *lock, int thread);

/* lockview.c: what `interlock locks` shows. */
bool kd_is_lock(const kd_lock *lock);

/* processorview.c */
bool kd_read_processor(kd_snapshot *snapshot, uint32_t number, kd_address *address, KPRCB *prcb);
int kd_owner_of_processor(const kd_snapshot *snapshot, const KPRCB *prcb); /* -1: nobody */
bool kd_is_idle_processor(const KPRCB *prcb);

void *kd_grow(void *array, size_t count, size_t size); /* room for one more; does not fail */

#endif
