/* machine.c: threads, clocks, and scheduling. The queue is a binary heap, by time and then by number. */
#include "machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

lab_machine_routines lab_machine;

const char *const lab_verdict_names[VERDICTS];
const char *const lab_model_names[MODELS];

static struct machine_state {
    uint32_t processors, room, thread_count;
    uint32_t under_way; /* of the processors' threads: those that are not at the gate and have not ended */
    bool stopped;
    scale_thread *threads;
    char *stacks;
    scale_thread **queue;
    uint32_t queued;
} machine;

uint32_t machine_processors(void)
{
    return machine.processors;
}

uint32_t machine_threads(void)
{
    return machine.thread_count;
}

scale_thread *machine_thread(uint32_t number)
{
    return &machine.threads[number];
}

/* The queue. */

static bool is_before(const scale_thread *a, const scale_thread *b)
{
    return a->key != b->key ? a->key < b->key : a->base.number < b->base.number;
}

static void put(scale_thread *t, uint32_t place)
{
    machine.queue[place] = t;
    t->place = place;
}

static void rise(scale_thread *t)
{
    uint32_t place = t->place;

    while (place != 0 && is_before(t, machine.queue[(place - 1) / 2])) {
        put(machine.queue[(place - 1) / 2], place);
        place = (place - 1) / 2;
    }
    put(t, place);
}

static void sink(scale_thread *t)
{
    uint32_t place = t->place;

    for (;;) {
        uint32_t child = 2 * place + 1;

        if (child + 1 < machine.queued && is_before(machine.queue[child + 1], machine.queue[child]))
            child++;
        if (child >= machine.queued || !is_before(machine.queue[child], t))
            break;
        put(machine.queue[child], place);
        place = child;
    }
    put(t, place);
}

void machine_queue(scale_thread *t, uint64_t when)
{
    t->key = when;
    t->place = machine.queued++;
    rise(t);
}

void machine_hurry(scale_thread *t, uint64_t when)
{
    if (when < t->key) {
        t->key = when;
        rise(t);
    }
}

static void take_out(scale_thread *t)
{
    scale_thread *last = machine.queue[--machine.queued];

    if (last != t) {
        last->place = t->place;
        rise(last);
        sink(last);
    }
    t->place = NOT_QUEUED;
}

/* Switching. */

static void switch_to(lab_thread *next)
{
    lab_thread *t = lab->current;

    if (t == next)
        return;
    memcpy(t != NULL ? t->tls : lab->main_tls, lab->tls, lab->tls_size);
    memcpy(lab->tls, next != NULL ? next->tls : lab->main_tls, lab->tls_size);
    lab->current = next;
    lab_fiber_switch(t != NULL ? &t->sp : &lab->main_sp, next != NULL ? next->sp : lab->main_sp);
}

void machine_leave(void)
{
    if (machine.queued == 0) {
        switch_to(NULL);
        return;
    }
    scale_thread *next = machine.queue[0];
    take_out(next);
    switch_to(&next->base);
}

void machine_take_turn(scale_thread *t)
{
    if (machine.queued != 0 && machine.queue[0]->key < t->clock) {
        machine_queue(t, t->clock);
        machine_leave();
    }
}

void machine_pass(uint64_t cycles)
{
    machine_current()->clock += cycles;
}

void machine_stop(void)
{
    machine.stopped = true;
    switch_to(NULL);
}

bool machine_run(void)
{
    lab->only_schedule = true;
    lab->running = true;
    machine_leave();
    lab->running = false;
    return machine.stopped || machine.under_way == 0;
}

/* Threads. */

/* It is at the gate, or has ended. A thread that waits with a deadline stays in the queue: what was started ends
   first.
 */
static void arrive(const scale_thread *t)
{
    if (!t->is_library && --machine.under_way == 0)
        switch_to(NULL);
    else
        machine_leave();
}

static void run_thread(void)
{
    scale_thread *t = machine_current();

    t->base.routine(t->base.argument);
    if (t->base.runs_exit)
        lab_thread_exit();
    arrive(t);
    __builtin_unreachable();
}

static void *map(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED) {
        perror("lab-scale: mmap");
        exit(2);
    }
    return memory;
}

static void make_thread(scale_thread *t, uint32_t number, void (*routine)(void *))
{
    t->base.number = (uint16_t)number;
    t->base.stack = machine.stacks + (size_t)number * STACK_SIZE;
    t->base.routine = routine;
    t->base.argument = t;
    t->place = NOT_QUEUED;
    t->random = number * 0x9E3779B97F4A7C15ull + 1;
    memcpy(t->base.tls, lab->tls_image, lab->tls_image_size);
    lab_fiber_prepare(&t->base, run_thread);
}

void machine_start(machine_shape shape, void (*routine)(void *), cache_invalidated *invalidated)
{
    uint32_t room = shape.processors + shape.library_threads;

    machine = (struct machine_state){.processors = shape.processors, .room = room, .thread_count = shape.processors};
    machine.threads = map(room * sizeof(scale_thread));
    machine.queue = map(room * sizeof(scale_thread *));
    machine.stacks = map((size_t)room * STACK_SIZE);
    cache_initialize(room, invalidated);
    cache_divide(shape.processors, shape.nodes);
    for (uint32_t i = 0; i < shape.processors; i++) {
        make_thread(&machine.threads[i], i, routine);
        machine.threads[i].at_gate = true;
    }
}

void machine_gate(void)
{
    machine_current()->at_gate = true;
    arrive(machine_current());
}

void machine_open_gate(uint32_t number)
{
    scale_thread *t = &machine.threads[number];

    if (t->at_gate) {
        t->at_gate = false;
        machine.under_way++;
        machine_queue(t, t->clock);
    }
}

void machine_level_clocks(void)
{
    uint64_t latest = 0;

    for (uint32_t i = 0; i < machine.processors; i++)
        latest = machine.threads[i].clock > latest ? machine.threads[i].clock : latest;
    for (uint32_t i = 0; i < machine.processors; i++)
        machine.threads[i].clock = latest;
}

/* What lab/hal and the files of the engine require of their machine, and what this machine does not do. */

uintptr_t lab_sched_program_sp(const lab_thread *t, uintptr_t innermost)
{
    (void)t;
    return innermost;
}

void lab_sched_fail(lab_verdict verdict, uintptr_t pc, const char *format, ...)
{
    va_list arguments;

    (void)verdict;
    fprintf(stderr, "lab-scale: thread %d, %#lx: ", lab->current != NULL ? lab->current->number : -1, pc);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    _Exit(2);
}

lab_thread *lab_thread_spawn(void (*routine)(void *), void *argument, const char *name, bool service)
{
    (void)service;
    if (machine.thread_count == machine.room)
        lab_sched_fail(VERDICT_UNSUPPORTED, (uintptr_t)routine, "no room for the thread %s", name != NULL ? name : "?");
    uint32_t number = machine.thread_count++;
    scale_thread *t = &machine.threads[number];

    make_thread(t, number, routine);
    t->base.argument = argument;
    t->base.name = name;
    t->is_library = true;
    t->clock = (lab->current != NULL ? machine_current()->clock : 0) + WAKE_CYCLES;
    machine_queue(t, t->clock);
    return &t->base;
}

void lab_thread_exit(void)
{
    if (lab_machine.thread_exit != NULL)
        lab_machine.thread_exit();
    lab_thread_terminate();
}

void lab_thread_terminate(void)
{
    arrive(machine_current());
    __builtin_unreachable();
}

/* There is one process. */
int LabIsProcessKilled(unsigned Process)
{
    (void)Process;
    return 0;
}

uint32_t lab_explore_choose(uint32_t count)
{
    (void)count;
    return 0;
}
