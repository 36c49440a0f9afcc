/*
 * kd.h: inspects a process that uses Interlock, from outside, without its cooperation: it may be stopped, deadlocked or
 * a core file. Its structures are copied with the types of the internal headers, so a pointer in a copy is an address of
 * the process, to be read with kd_read.
 *
 * A live process runs meanwhile. Related data is read until two reads agree; a thread that keeps changing is marked as
 * moving and ignored for conclusions.
 *
 * The process is not trusted: its owner may want to attack root, who debugs it. No length, pointer or index from it is
 * trusted, lists are followed within a budget (memory.c), text is escaped where it is read (text.h), and impossible
 * values are recorded as inconsistent and shown (walk.c).
 */
#ifndef INTERLOCK_KD_H
#define INTERLOCK_KD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "index.h"
#include "json.h"
#include "text.h"

#include "ex/exp.h"
#include "ex/pushlock.h"
#include "ex/resource.h"
#include "ex/waiterhash.h"
#include "ke/debugdata.h"
#include "ke/fork.h"
#include "ke/wait.h"
#include "ob/obp.h"
#include "ps/psp.h"
#include "rtl/criticalsection.h"
#include "rtl/rtlp.h"
#include "wo/session.h"

typedef uint64_t kd_address;

#define KD_ADDRESS(pointer) ((kd_address)(uintptr_t)(pointer))
#define KD_SYMBOL_SIZE 256

/* target.c: the process or core file. */

typedef struct kd_target kd_target;

/* NULL: it has reported the reason. Quiet: reports nothing, and another process guards it (guard.c). */
kd_target *kd_open(const char *what, bool quiet);
/* save.c: records the pages that are read of the process from now on. */
kd_target *kd_open_noting(const char *process);
void kd_note_pages(kd_target *target, kd_address address, uint64_t size);
void kd_sort_noted(kd_target *target);
uint32_t kd_own_thread_id(kd_target *target, int host_thread); /* the id that the thread has for its process */

/* In units of 100 ns. 0: not known, as of a core file. */
typedef struct kd_time {
    uint64_t interrupt, system;
} kd_time;
#define KD_NOTE_OWNER "Interlock"
#define KD_NOTE_TIME 1
kd_time kd_time_now(void);
kd_time kd_time_of(const kd_target *target); /* when a snapshot was taken; of a process, now */
void kd_close(kd_target *target);
int kd_process_of(const kd_target *target);       /* 0: a core file */
bool kd_is_there(kd_target *target);              /* it is still the process that was opened */
kd_address kd_root(kd_target *target, const char *name, size_t *size); /* 0: the program lacks this part */
const char *kd_version(const kd_target *target);
bool kd_process_name(const kd_target *target, char *buffer, size_t size);
int kd_host_thread(kd_target *target, uint32_t id); /* the debugger's own id for it; -1: it has no such thread */
FILE *kd_open_of_thread(kd_target *target, uint32_t id, const char *name); /* below /proc/PID/task/ID; NULL: none */
struct Dwfl *kd_dwfl(kd_target *target);
struct Dwfl_Module *kd_module_at(kd_target *target, kd_address address); /* NULL: none */

/* memory.c */
#define KD_PAGE 4096
#define KD_MOST_TEXT 1024          /* bytes that are read of a name */
#define KD_WORK 8000000            /* reads of up to a kilobyte for a snapshot, and for printing it */
#define KD_MEMORY ((uint64_t)512 << 20)
#define KD_BEHIND_THREADS 0.5      /* reserved for the rest, however many threads there are, and */
#define KD_BEHIND_HANDLES 0.25     /* handles */

bool kd_read(kd_target *target, kd_address address, void *buffer, size_t size);
/* The bounds of the mapping that an address is in. */
bool kd_mapping_of(kd_target *target, kd_address address, kd_address *begin, kd_address *end);
bool kd_read_string(kd_target *target, kd_address address, char *buffer, size_t size); /* clean */
/* Likewise, of UTF-16. Returns buffer. */
char *kd_read_wide(kd_target *target, kd_address address, size_t units, char *buffer, size_t size);
void kd_renew_budget(kd_target *target, uint64_t share); /* a fraction of the whole: 1 / share */
bool kd_has_left(const kd_target *target, double share); /* more than this share of the total */
bool kd_spend_work(kd_target *target, uint64_t amount);
bool kd_spend_memory(kd_target *target, uint64_t bytes);
bool kd_is_spent(const kd_target *target);
void *kd_allocate(size_t count, size_t size);          /* zeroed; does not fail */
void *kd_allocate_lines(size_t size);                  /* likewise, as a KTHREAD or KPRCB is aligned */
void *kd_grow(void *array, size_t count, size_t size); /* room for one more; does not fail */
void kd_no_memory(void) __attribute__((noreturn));

/* guard.c: if the code between the two calls takes longer, the command reports why and exits. */
void kd_guard_start(bool watched); /* watched: another process kills this one if it takes too long */
void kd_unlimit_memory(void); /* for another program that is started */
void kd_guard_begin(int seconds, const char *what);
void kd_guard_end(void);
/* A child with limits that runs this, which exits; what it writes to `to` is read from *from. Below 0: there is none. */
pid_t kd_start_child(void (*run)(const char *process, int to), const char *process, int cpu_seconds, int *from);

/* A loaded part of a program or library, with all of its .bss: only what is in the file belongs to libdwfl's module. */
typedef struct kd_segment {
    kd_address begin, end;
    struct Dwfl_Module *module;
} kd_segment;

#define KD_MOST_SEGMENTS 100000
#define KD_MOST_SYMBOLS 4000000 /* of a module */
#define KD_FILE_SECONDS 60      /* for callers that need only a few */

typedef struct kd_segments {
    kd_segment *list; /* in the order of their addresses */
    size_t count;
} kd_segments;

struct Dwfl_Module *kd_module_in(struct Dwfl *dwfl, kd_segments *segments, kd_address address);
struct Elf *kd_core(kd_target *target); /* NULL: a process */
void kd_say(const char *format, ...) __attribute__((format(printf, 1, 2))); /* cleaned, to stderr or to */
void kd_say_into(char *buffer, size_t size); /* redirects kd_say; NULL: stderr */

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
void kd_forget_symbols(struct Dwfl *dwfl); /* before it is ended */
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

/* Locks and objects that threads wait for or own. */

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
const char *kd_kind_title(kd_kind kind); /* for text output */

typedef enum kd_hold { KD_FREE, KD_EXCLUSIVE, KD_SHARED, KD_HOLD_UNKNOWN } kd_hold;

/* An owner that is a thread has an id; one that is not is an owner pointer. */
typedef struct kd_owner {
    kd_address address;
    uint32_t id;
    int thread;    /* index, -1: none that lives */
    unsigned count;
    bool probable; /* the lock records no owner; this thread was the last to acquire it after a wait */
    bool cannot_orphan; /* the end of the owner releases the lock */
    uint32_t process_id; /* of a thread of another process, else 0 */
} kd_owner;

typedef struct kd_waiter {
    int thread;
    bool exclusive;
} kd_waiter;

typedef struct kd_lock {
    kd_kind kind;
    kd_address address;
    kd_address object;   /* the dispatcher header, 0: it has none */
    const char *name;    /* or empty */
    kd_hold hold;
    bool has_state;      /* it is a dispatcher object itself, with */
    int64_t signal_state;
    int64_t contention;  /* -1: not counted */
    uint64_t contended;  /* since the last sample of the history */
    kd_owner *owners;
    size_t owner_count;
    kd_waiter *waiters;
    size_t waiter_count;
    kd_address outside;  /* of a proxy: its KI_OUTSIDE; 0: none */
    int world;           /* number of the world that has its state, -1: it is local */
    uint32_t record;     /* there */
    const struct kd_world_object *shared; /* likewise, NULL: the world was not read */
    uint32_t process_id; /* of a local lock of another process, else 0 */
} kd_lock;

typedef struct kd_block {
    kd_address address;
    KWAIT_BLOCK raw;
    int lock;            /* index, -1: nothing is known about it */
} kd_block;

typedef struct kd_thread {
    kd_address address;  /* of the KTHREAD */
    ETHREAD *object;
    KTHREAD *raw;        /* the same */
    uint32_t id;
    const char *name;    /* or empty */
    char host_state;     /* as in /proc, '?': not known */
    double user_time, kernel_time; /* seconds, -1: not known */
    bool moving;
    bool waiting;        /* and committed to it */
    bool system;
    kd_block *blocks;
    size_t block_count;
    int *owned;          /* the locks that it owns, without thread objects */
    size_t owned_count;
    int cycle;           /* of the deadlocks, -1: none */
    bool deadlocked;     /* its wait can never end */
    bool orphaned;       /* it waits, directly or indirectly, for a lock whose owner has exited */
    bool granted;        /* its wait for a shared object has ended, and it has not noticed yet */
    uint64_t wait_number; /* of its wait for shared objects */
    uint32_t process_id; /* of a thread of another process, else 0: only the members that kd/shared.c fills in are known */
    const char *process_name;
    bool probable;       /* its process was not inspected: it may wait for more than this */
} kd_thread;

/* An object that has a handle. */
typedef struct kd_handle {
    uint64_t handle;
    kd_address body;
    kd_address header;   /* dispatcher header that a wait by handle waits for; 0: none */
    uint32_t access;
    bool inherit, protect;
    int64_t handle_count, pointer_count;
    const char *type;
    const char *name;    /* whole path, or empty */
    int lock;            /* a shared object that is known as a lock, -1: none */
} kd_handle;

/* An impossible value, or more data than the debugger's budget allows. */
typedef struct kd_fault {
    const char *what;
    kd_address where;
    const char *why;
    bool moving;         /* the process changed it during the read: it may be consistent */
} kd_fault;

#define KD_CHANGED "it changed while it was read"

typedef struct kd_snapshot {
    kd_target *target;
    uint64_t now;        /* interrupt time in 100 ns; 0: a core file, not known */
    uint64_t system_time;
    uint32_t process_id;
    uint32_t processors;
    bool verifier;
    kd_thread *threads;
    size_t thread_count;
    size_t own_count;    /* of its own threads: those of other processes come after them */
    kd_handle *handles;
    size_t handle_count;
    kd_lock *locks;
    size_t lock_count;
    struct kd_deadlocks *deadlocks;
    kd_fault *faults;
    size_t fault_count, faults_left_out;
    bool incomplete;               /* the budget was spent */
    int rests;                     /* how often a changing list was read again */
    struct kd_kept *kept;          /* the texts */
    bool alone;                    /* other processes are not inspected */
    struct kd_world *worlds[WO_PLACES]; /* of shared objects, NULL: none */
    kd_address views[WO_PLACES];   /* the process's name for each */
    HAL_FILE_ID files[WO_PLACES];
    uint64_t key;                  /* by which the worlds know the process */
    kd_index threads_by_address, threads_by_id, threads_before_fork;
    kd_index handles_by_header, handles_by_body;
    kd_index locks_by_address[KD_KINDS], locks_by_object;
    kd_index waiters;              /* lock and thread */
    kd_index wait_kinds;           /* what a thread waits for in the waiter hash, by its address */
    kd_index resources_waited_for; /* by thread */
    struct kd_push_block *push_blocks; /* of the pushlocks that have been inspected */
    size_t push_block_count;
    kd_index push_locks, push_blocks_by_address, push_blocks_by_thread;
} kd_snapshot;

/* snapshot.c */
kd_snapshot *kd_snapshot_take(kd_target *target); /* NULL: it has reported the reason */
kd_snapshot *kd_snapshot_take_alone(kd_target *target); /* other processes are not inspected */
/* A snapshot of a world alone: the threads of its processes, as far as they wait for each other. NULL: unless quiet, it
   has reported the reason. */
kd_snapshot *kd_snapshot_of_world(const char *path, bool quiet);
void kd_snapshot_free(kd_snapshot *snapshot);
int kd_thread_at(const kd_snapshot *snapshot, kd_address address);  /* -1: none */
int kd_thread_with_id(const kd_snapshot *snapshot, uint32_t id);
/* Is the thread of Now in the same wait as Before? */
/* In the process, now: the wait of the snapshot. */
bool kd_is_still_waiting(const kd_snapshot *snapshot, const kd_thread *thread);
bool kd_has_waited_since(const kd_snapshot *before, const kd_snapshot *now, const kd_thread *thread);
int kd_find_same_lock(const kd_snapshot *there, const kd_lock *lock); /* the lock of another snapshot there; -1: none */
kd_address kd_start_address(const kd_thread *thread); /* 0: the library did not create it */

/* walk.c */
bool kd_has_fault(const kd_snapshot *snapshot, const kd_fault *fault);
void kd_doubt(kd_fault *fault); /* the process may have changed it during the read */
void kd_inconsistent(kd_snapshot *snapshot, const char *what, kd_address where, const char *why);
void kd_note_spent(kd_snapshot *snapshot);
void kd_write_faults(FILE *out, const kd_snapshot *snapshot);              /* nothing if there are none */
void kd_json_faults(json *out, const kd_snapshot *snapshot);    /* a member of an object */
/*
 * The addresses of the structures in a list whose links are at the given offset. The list is read again while the process
 * changes it; an inconsistent list is recorded and returned up to the fault. The caller frees the result.
 */
kd_address *kd_list(kd_snapshot *snapshot, const char *what, kd_address head, size_t offset, size_t *count,
                    bool *whole);
/* Likewise for a singly linked chain: next is the offset of the link. What: NULL if it may legitimately not be a chain. */
kd_address *kd_chain(kd_snapshot *snapshot, const char *what, kd_address first, size_t next, size_t *count);
const char *kd_keep(kd_snapshot *snapshot, const char *text);   /* valid as long as the snapshot */
void kd_forget_kept(kd_snapshot *snapshot);

/* handles.c */
void kd_collect_handles(kd_snapshot *snapshot);
const kd_handle *kd_handle_of_header(const kd_snapshot *snapshot, kd_address header);
const kd_handle *kd_handle_of_body(const kd_snapshot *snapshot, kd_address body);
const kd_handle *kd_handle_with_value(const kd_snapshot *snapshot, uint64_t handle);

/* locks.c */
void kd_collect_locks(kd_snapshot *snapshot);
int kd_find_lock(const kd_snapshot *snapshot, kd_address address);
void kd_note_owned(kd_snapshot *snapshot); /* which thread owns which locks */
int kd_object_lock(kd_snapshot *snapshot, kd_address address); /* of a dispatcher object; -1: none */
const char *kd_describe_lock(const kd_lock *lock, char *buffer, size_t size); /* critical section 0x.. (name) */
const char *kd_describe_thread(const kd_snapshot *snapshot, int thread, char *buffer, size_t size);

/* shared.c */
void kd_collect_shared(kd_snapshot *snapshot);
void kd_adopt_world(kd_snapshot *snapshot, struct kd_world *world); /* for a snapshot without a process */

/* deadlock.c */
typedef struct kd_link {
    int thread;
    int lock;
    int owner;           /* the owner, -1: it has exited */
    uint32_t owner_id;
} kd_link;

typedef struct kd_cycle {
    kd_link *links;      /* each waits for the next; the last for the first, or for one that has exited */
    size_t count;
    bool orphaned;       /* the owner of the last lock has exited */
    bool certain;
} kd_cycle;

/* A lock without a recorded owner, and threads that wait for its waiters: a deadlock if one of them owns it. */
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

/* compare.c: of two processes or files. The exit status. */
int kd_compare(const char *before, const char *after, bool as_json);

void kd_find_deadlocks(kd_snapshot *snapshot);
/* Leaves the deadlocks that two snapshots of a process have in common, in both. */
void kd_confirm_deadlocks(kd_snapshot *before, kd_snapshot *now);
void kd_forget_deadlocks(kd_snapshot *snapshot);
void kd_print_deadlocks(const kd_snapshot *snapshot);             /* nothing if there are none */
#define KD_DEADLOCKED 3 /* the exit status */
int kd_status_of(const kd_snapshot *snapshot);                    /* KD_DEADLOCKED if a deadlock is certain, else 0 */
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
    int (*show)(kd_snapshot *snapshot, const kd_options *options); /* 0: shown; 1: it has reported why not */
    int (*status)(const kd_snapshot *snapshot); /* the exit status once it is shown; NULL: 0 */
} kd_view;

extern const kd_view kd_threads_view, kd_deadlocks_view, kd_locks_view, kd_object_view, kd_handles_view;
extern const kd_view kd_explain_view;
extern const kd_view kd_qlocks_view, kd_dpcs_view, kd_timers_view, kd_graph_view, kd_pool_view, kd_contention_view;

int kd_run(const kd_view *view, int argc, char **argv);
json kd_json(const kd_options *options);
bool kd_parse_number(const char *text, uint64_t *number);
void kd_json_process(json *out, const char *key, uint32_t process); /* null: the inspected process */
void kd_json_thread(json *out, const char *key, const kd_snapshot *snapshot, int thread); /* id and name */
void kd_json_lock(json *out, const char *key, const kd_snapshot *snapshot, const kd_lock *lock);
/* Without its waiters, and with a few of its owners: for views that repeat it per waiter. */
void kd_json_lock_briefly(json *out, const char *key, const kd_lock *lock);
void kd_print_thread(kd_snapshot *snapshot, const kd_thread *thread, const kd_options *options);
void kd_print_thread_briefly(kd_snapshot *snapshot, const kd_thread *thread); /* without what it owns */
void kd_json_end(json *out, kd_snapshot *snapshot); /* of a view: what is inconsistent, and the end of the object */
void kd_print_lock(const kd_snapshot *snapshot, const kd_lock *lock, bool verbose);
void kd_print_stack(kd_target *target, uint32_t id);
double kd_seconds(uint64_t interval);

/* threads.c */
/* For a wait for more objects than Windows allows, text shows a few blocks, and those of objects with owners. */
bool kd_is_block_shown(const kd_snapshot *snapshot, const kd_thread *thread, size_t block);
double kd_waited(const kd_snapshot *snapshot, const kd_thread *thread);
bool kd_time_left(const kd_snapshot *snapshot, const kd_thread *thread, double *left);

/* lockview.c: what `interlock locks` shows. */
bool kd_is_lock(const kd_lock *lock);

/* processorview.c */
bool kd_read_processor(kd_snapshot *snapshot, uint32_t number, kd_address *address, KPRCB *prcb);
int kd_owner_of_processor(const kd_snapshot *snapshot, const KPRCB *prcb); /* -1: none */
bool kd_is_idle_processor(const KPRCB *prcb);

#endif
