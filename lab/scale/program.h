/* program.h: shared by the program's files, except for the machine's. */
#ifndef LAB_SCALE_PROGRAM_H
#define LAB_SCALE_PROGRAM_H

#include "locks.h"
#include "machine.h"

#include <sys/types.h>

#define MAX_SIZES       32
#define MOST_NUMA_NODES 64

typedef struct options {
    uint32_t sizes[MAX_SIZES];
    size_t size_count;
    const char *lock; /* NULL: all */
    const char *plot; /* NULL: no */
    uint64_t acquisitions;
    uint32_t nodes;
    unsigned jobs;
    bool lines, json;
} options;

typedef struct measurement {
    bool finished;
    scale_result result;
} measurement;

/* One lock on one machine. */
typedef struct cell {
    const scale_lock *lock;
    uint32_t processors, nodes;
    uint64_t acquisitions;
    pid_t process;
    int from;
    measurement m;
} cell;

/* main.c */
bool measure_cells(cell *cells, size_t count, unsigned jobs, bool lines); /* FALSE: one of them failed */

/* table.c */
double per_acquisition(const scale_result *result, uint64_t number);
uint64_t lock_transfers(const scale_result *result); /* all lines that the lock moves, without the data that it
                                                        protects */
uint64_t lock_crossings(const scale_result *result); /* of these, between nodes */
void print_tables(const options *o, const cell *cells, size_t count);
void print_json(const cell *cells, size_t count);
void print_lines(const scale_lock *lock, uint32_t processors, const scale_result *result);

/* plot.c */
bool plot(const options *o, const cell *cells, size_t count);

/* test.c */
int run_tests(unsigned jobs);

#endif
