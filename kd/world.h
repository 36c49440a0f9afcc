/*
 * world.h: a world of shared objects (src/wo), read from its file or from the memory of a process that maps it. It is
 * copied first and never locked: what a process was changing meanwhile may be inconsistent, and any process may have
 * corrupted it. So every index is checked, and every record is visited once.
 */
#ifndef INTERLOCK_KD_WORLD_H
#define INTERLOCK_KD_WORLD_H

#include "kd.h"

typedef struct kd_world_process {
    uint32_t index;
    uint32_t id;
    uint64_t key;         /* see hal.h: unique */
    char name[64];
    unsigned flags;       /* WO_EXITING, WO_FORKED, WO_STARTED */
    bool dead;            /* the host does not know it (any more) */
    bool stopped;         /* by a signal or a debugger */
    bool looked_into;
    size_t objects, handles;
} kd_world_process;

/* A thread that has waited for shared objects, or a notification. */
typedef struct kd_world_thread {
    uint32_t index;
    uint32_t id;          /* 0: a notification */
    int process;          /* -1: not known */
    bool waiting, all;
    bool mixed;           /* objects of its process end the wait too */
    uint64_t number;      /* of its wait */
    int *objects;         /* what it waits for */
    size_t object_count;
    uint64_t seen;        /* its blocks that are in the lists of objects */
    int thread;           /* in the snapshot, -1: none yet */
} kd_world_thread;

typedef struct kd_world_object {
    uint32_t index;
    unsigned type;        /* WO_TYPE */
    char *name;           /* path from the root; NULL: none */
    int64_t state;        /* as SignalState */
    bool abandoned;
    int owner;            /* thread, -1: none */
    uint64_t due;         /* timer: interrupt time or system time; 0: not set */
    uint32_t period;      /* likewise, in milliseconds */
    int32_t limit;        /* semaphore */
    unsigned handles;
    int *holders;         /* processes */
    size_t holder_count;
    int *waiters;         /* threads, oldest first */
    size_t waiter_count;
    int lock;             /* in the snapshot, -1: none yet */
} kd_world_object;

typedef struct kd_world {
    char path[512];
    unsigned state;       /* WO_WORLD_STATE */
    HAL_FILE_ID file;
    uint64_t size, used;
    bool inconsistent;
    bool machine;         /* of an administrator */
    uint32_t locked_by;   /* the process that has the lock of the world, for moments as a rule; 0: none */
    kd_world_process *processes;
    size_t process_count;
    kd_world_thread *threads;
    size_t thread_count;
    kd_world_object *objects;
    size_t object_count;
    kd_index processes_by_record, threads_by_record, objects_by_record;
    kd_index threads_by_id; /* of the process, and of the thread */
} kd_world;

kd_world *kd_world_read(const char *path, bool quiet); /* NULL: no world; unless quiet, it has reported why */
uint8_t *kd_world_allocate(size_t size); /* zeroed, aligned as a world is; does not fail */
kd_world *kd_world_parse(uint8_t *bytes, size_t size, const char *path); /* frees bytes; NULL: no world */
/* Where a process has it mapped. NULL: it cannot be read. */
kd_world *kd_world_of_process(kd_target *target, const WO_VIEW *view);
void kd_world_free(kd_world *world);
const char *kd_world_type_name(unsigned type);
int kd_world_object_at(const kd_world *world, uint32_t record);               /* -1: none */
int kd_world_thread_with_id(const kd_world *world, uint32_t process, uint32_t thread);

/* The paths of the worlds of this user, and of the machine; the last one is NULL. To be freed, each and all. */
char **kd_world_paths(void);
/* INTERLOCK_SESSION of the processes in it, clean; empty: it is not known from the path. */
char *kd_world_session(const char *path, char *buffer, size_t size);

#endif
