/*
 * Every exported function, called with arguments that are wrong one at a time. functions.def names the kind of each
 * parameter; values.c has the ordinary and the wrong values of each kind; child.c makes the calls in a forked process;
 * rules.c lists what may happen beyond the general rules; surface.c checks the outcomes.
 */
#ifndef INTERLOCK_TESTS_SURFACE_H
#define INTERLOCK_TESTS_SURFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAXIMUM_PARAMETERS = 11 };

enum layer { LAYER_kernel, LAYER_runtime, LAYER_service, LAYER_win32, LAYER_planted, LAYERS };
enum result { RESULT_nothing, RESULT_value, RESULT_status, RESULT_boolean, RESULT_handle };

/* A function of the table, its kinds split into words. */
struct function {
    const char *name;
    void (*address)(void);
    enum layer layer;
    enum result result;
    const char *kinds;
    unsigned parameters;
    char kind[MAXIMUM_PARAMETERS][48];
    unsigned calls; /* how many this function gets */
    unsigned first; /* the number of its first one among all */
};

void split_kinds(struct function *function);
bool has_failed(const struct function *function, uint64_t result);

extern struct function functions[];
extern const unsigned function_count; /* those of the library; behind them are the planted ones */

/* What is wrong with an argument. */
enum fault_kind {
    FAULT_NONE,       /* all arguments are ordinary */
    FAULT_ALL_ZERO,   /* all of them are 0 or NULL */
    FAULT_NULL,       /* a pointer is NULL */
    FAULT_ROUTINE,    /* a routine is NULL */
    FAULT_MISALIGNED, /* a valid object at a misaligned address */
    FAULT_HANDLE,     /* closed, never given out, NULL */
    FAULT_PSEUDO,     /* one of the pseudo handles */
    FAULT_TYPE,       /* a handle of another type */
    FAULT_EXTREME,    /* a number */
    FAULT_FOREVER,    /* a time that never arrives */
};

/* values.c: call number n of a function: what is wrong with it, and with which parameter; false if there is none. */
struct plan {
    enum fault_kind fault;
    unsigned parameter;
    unsigned choice;
    const char *description;
};

bool plan_call(const struct function *function, unsigned number, struct plan *plan);
void make_arguments(const struct function *function, const struct plan *plan,
                    uint64_t arguments[MAXIMUM_PARAMETERS + 1]);
void prepare_values(void);
bool is_lacking(const char *kind); /* no such object can be made here: only NULL is tried */

/* The outcome of a call. */
enum outcome { NOT_MADE, BEGUN, RETURNED, SKIPPED, FAULTED, STOPPED, ENDED, HUNG };

struct record {
    enum outcome outcome;
    int signal;
    uint64_t result;
    uint64_t address;   /* of the fault, or the code of the bugcheck */
    uint64_t parameter; /* the first of the bugcheck */
    bool general;       /* the processor did not say which address */
    uint32_t error;     /* the last error afterwards; UNTOUCHED if it was not set */
    uint32_t handles;   /* how many more there are */
    int host_error;     /* errno afterwards; UNTOUCHED_HOST_ERROR before */
    bool in_service;    /* afterwards: the thread could not be terminated any more */
};

enum { UNTOUCHED = 0x20BADBAD, UNTOUCHED_HOST_ERROR = 7777 };

/* child.c: calls from (function, number) on, up to the end of function last. Returns the position that it reached. */
enum child_end { CHILD_DONE, CHILD_INTERRUPTED, CHILD_UNSOUND };

struct progress {
    unsigned function;
    unsigned number;
};

/* In a child. */
uint32_t handle_count(void);
bool thread_changed(void); /* it is at a raised IRQL, or in a region */
uint8_t *service_depth(void); /* of the current thread: in how many system services it is */
uint64_t call_function(const struct function *function, const uint64_t *arguments);
bool is_sound(void); /* whether the rest of the library still works */
bool is_skipped(const struct function *function, const struct plan *plan);

enum child_end run_child(struct progress *progress, unsigned last, struct record *records);
const char *child_output(void);

/* rules.c */
enum {
    MAY_END = 1, /* the process or the thread ends, as asked */
    MAY_FAULT =
        2,        /* runs in user mode on Windows and trusts its pointers; in the kernel: trusts what is in an object */
    MAY_STOP = 4, /* a bugcheck with the code, or any */
    NO_FOREVER = 8,       /* would wait forever, as asked */
    NO_SELF = 16,         /* would stop this thread forever, as asked */
    TAKES_ANY = 32,       /* such a handle is legal there */
    TRUSTS_NUMBERS = 64,  /* a number is the size of a buffer, or how much is to be done */
    NOT_CALLED = 128,     /* cannot be called in this way */
    CHANGES_THREAD = 256, /* the next call needs another thread */
    NULL_IS_SELF = 512,
    NEEDS_TIME = 1024, /* NULL does not mean forever */
    SETS_ERRNO = 2048, /* of the C library by its contract */
};

#define ANY_CODE UINT32_MAX

struct rule {
    const char *name; /* of a function, or its beginning and a star */
    unsigned allowed;
    uint32_t code;
    const char *reason;
};

unsigned allowed_for(const struct function *function);
bool trusts_pointers(const struct function *function);
bool may_fault(const struct function *function, const struct plan *plan); /* at NULL, which the caller gave */
bool may_stop(const struct function *function, uint32_t code);
unsigned rule_without_function(void); /* 1 + the index of a rule that fits no function, or 0 */
const char *rule_name(unsigned rule);

#endif
