/* stuck.c: no thread can run: reports which thread waits for which. */
#include "engine.h"

#include <stdio.h>
#include <string.h>

#define ROOM_FOR_ONE 700

static uint32_t word_at(const lab_thread *t)
{
    lab_granule *shadow = lab_memory_shadow(t->op.address);
    return shadow != NULL ? *(volatile uint32_t *)t->op.address : 0;
}

void lab_stuck_describe_brief(const lab_thread *t, char *buffer, size_t size)
{
    char place[64], symbol[64], changes[64];

    lab_report_place(t->op.pc, place, sizeof(place));
    lab_report_symbol(t->op.address, symbol, sizeof(symbol));
    lab_report_changes(t->op.address, t->number, changes, sizeof(changes));
    if (t->gate != NULL) {
        char wait[128];

        t->gate->describe(t, wait, sizeof(wait));
        snprintf(buffer, size, "%s, at %s", wait, place);
    } else if (t->state == THREAD_JOINING)
        snprintf(buffer, size, "waits for the end of %c, at %s", 'a' + t->joined, place);
    else if (t->state == THREAD_BLOCKED)
        snprintf(buffer, size, "sleeps on %s, at %s%s", symbol, place, changes);
    else if (t->op.accesses != 0 && t->op.address != 0)
        snprintf(buffer, size, "is at %s, with %s%s", place, symbol, changes);
    else
        snprintf(buffer, size, "is at %s", place);
}

static size_t describe_sleeper(lab_thread *t, char *buffer, size_t size, bool *satisfied)
{
    char place[64], symbol[64], wait[512] = "";
    uint32_t value = word_at(t);
    const char *service = t->service ? " (service)" : "";

    lab_report_place(t->op.pc, place, sizeof(place));
    lab_report_symbol(t->op.address, symbol, sizeof(symbol));
    if (lab_machine.describe_wait != NULL && lab_machine.describe_wait(t, wait, sizeof(wait), satisfied))
        return (size_t)snprintf(buffer, size, "\n  %c%s sleeps on %s at %s: %s", 'a' + t->number, service, symbol,
                                place, wait);
    *satisfied = !t->service && value != t->expected;
    lab_report_changes(t->op.address, t->number, wait, sizeof(wait));
    return (size_t)snprintf(buffer, size, "\n  %c%s sleeps on %s while it is %u (it is %u), at %s%s", 'a' + t->number,
                            service, symbol, t->expected, value, place, t->service ? "" : wait);
}

#define MOST_LOOKS 4
#define LAST_STEPS 24

/* The variables that it has read since it last wrote. */
static uint32_t find_looks(const lab_thread *t, uintptr_t looks[MOST_LOOKS])
{
    uint32_t count = 0, seen = 0;

    for (uint32_t i = lab->run.steps; i-- != 0 && seen < LAST_STEPS && count < MOST_LOOKS;) {
        const lab_step *s = &lab->steps[i];
        bool known = false;

        if (s->thread != t->number)
            continue;
        seen++;
        if (s->op.accesses == 0 || s->op.access[0].cell == NO_CELL || lab_memory_shadow(s->op.address) == NULL)
            continue;
        if (s->op.kind == OP_STORE)
            break;
        for (uint32_t k = 0; k < count; k++)
            known |= looks[k] == s->op.address;
        if (!known)
            looks[count++] = s->op.address;
    }
    return count;
}

static size_t describe_spinner(const lab_thread *t, char *buffer, size_t size)
{
    uintptr_t looks[MOST_LOOKS];
    uint32_t count = find_looks(t, looks);
    char place[64], symbol[64], changes[64];

    lab_report_place(t->op.pc, place, sizeof(place));
    size_t used = (size_t)snprintf(buffer, size, "\n  %c spins at %s", 'a' + t->number, place);
    for (uint32_t i = 0; i < count; i++) {
        lab_report_symbol(looks[i], symbol, sizeof(symbol));
        lab_report_changes(looks[i], t->number, changes, sizeof(changes));
        used += (size_t)snprintf(buffer + used, size - used, "\n    looks at %s%s", symbol, changes);
    }
    return used;
}

static size_t describe_thread(lab_thread *t, char *buffer, size_t size, bool *satisfied)
{
    char place[64];

    if (t->state == THREAD_BLOCKED && (t->gate == NULL || t->in_interrupt))
        return describe_sleeper(t, buffer, size, satisfied);
    lab_report_place(t->op.pc, place, sizeof(place));
    if (t->gate != NULL) {
        char wait[256];

        t->gate->describe(t, wait, sizeof(wait));
        t->waits_for_owner = strstr(wait, "owned by") != NULL;
        return (size_t)snprintf(buffer, size, "\n  %c %s, at %s", 'a' + t->number, wait, place);
    }
    if (t->state == THREAD_JOINING)
        return (size_t)snprintf(buffer, size, "\n  %c waits for the end of %c, at %s", 'a' + t->number, 'a' + t->joined,
                                place);
    return t->state == THREAD_READY ? describe_spinner(t, buffer, size) : 0;
}

void lab_stuck_fail(lab_verdict verdict)
{
    char text[3500] = "";
    size_t used = 0;
    bool lost = false, owned = true;

    for (uint32_t i = 0; i < lab->run.thread_count && used < sizeof(text) - ROOM_FOR_ONE; i++) {
        lab_thread *t = &lab->run.threads[i];
        bool satisfied = false;

        t->waits_for_owner = false;
        used += describe_thread(t, text + used, sizeof(text) - used, &satisfied);
        lost |= satisfied && t->state == THREAD_BLOCKED;
        owned &= t->service || t->state == THREAD_DONE || t->waits_for_owner;
    }
    if (owned && verdict == VERDICT_LIVELOCK)
        verdict = VERDICT_DEADLOCK; /* threads that time out wait for each other again */
    if (lost && verdict == VERDICT_DEADLOCK)
        verdict = VERDICT_LOST_WAKEUP;
    lab_sched_fail(verdict, 0, "no thread can run%s%s",
                   verdict == VERDICT_LOST_WAKEUP ? ", although what one of them waits for has happened" : "", text);
}

void lab_stuck_fail_endless(void)
{
    char text[3500] = "", what[200];
    size_t used = 0;

    for (uint32_t i = 0; i < lab->run.thread_count && used < sizeof(text) - ROOM_FOR_ONE; i++) {
        const lab_thread *t = &lab->run.threads[i];

        if (t->state == THREAD_DONE)
            continue;
        lab_stuck_describe_brief(t, what, sizeof(what));
        used += (size_t)snprintf(text + used, sizeof(text) - used, "\n  %c %s", 'a' + t->number, what);
    }
    lab_sched_fail(VERDICT_ENDLESS, 0, "no end after %u steps%s", lab->run.steps, text);
}
