/*
 * resourcetest.h: threads that use one resource as a script says. The same scripts run over executive and fast
 * resources.
 *
 * A script is a list of steps separated by blanks. A step is a thread's digit and what it does:
 *     X S V W   acquire: exclusively, shared, shared starving exclusive waiters, shared waiting for exclusive waiters
 *     x s v w   the same without waiting
 *     R C       release, convert to shared
 *     F         release for the thread whose digit follows
 * After an acquire comes the expectation: + it succeeds, - it fails, ! it waits. A digit with a dot: the thread's wait
 * has succeeded by now. =A/S/E is the expected state: A owners (with an x: exclusively), S shared and E exclusive
 * waiters.
 */
#ifndef INTERLOCK_TESTS_RESOURCETEST_H
#define INTERLOCK_TESTS_RESOURCETEST_H

#include "ex/resource.h"

#include "../ke/waittest.h"

#include <ctype.h>

#define PLAYERS 5
#define MOST_ACQUIRES 8

typedef struct player {
    actor actor;
    const struct lock_kind *kind;
    PERESOURCE resource;
    char step;
    ERESOURCE_THREAD other;
    BOOLEAN result;
    ULONG depth;
    FAST_OWNER_ENTRY entry[MOST_ACQUIRES];
} player;

typedef struct lock_kind {
    void (*initialize)(PERESOURCE resource);
    void (*remove)(PERESOURCE resource);
    BOOLEAN (*acquire)(player *p, char how, BOOLEAN wait);
    void (*release)(player *p);
    void (*convert)(player *p);
} lock_kind;

static player players[PLAYERS];

static inline void play(void *argument)
{
    player *p = argument;
    switch (p->step) {
    case 'R':
        p->kind->release(p);
        break;
    case 'C':
        p->kind->convert(p);
        break;
    case 'F':
        ExReleaseResourceForThreadLite(p->resource, p->other);
        break;
    default:
        p->result = p->kind->acquire(p, (char)toupper(p->step), isupper(p->step) != 0);
    }
}

static inline void enter_region(void *unused)
{
    (void)unused;
    KeEnterCriticalRegion();
}

static inline void leave_region(void *unused)
{
    (void)unused;
    KeLeaveCriticalRegion();
}

/* How many records and entries name it. */
static inline ULONG owner_count(PKTHREAD thread)
{
    return ExpThread(thread)->ResourceOwners + ExpThread(thread)->ResourceOwnersByOthers;
}

static inline int start_players(void **state)
{
    (void)state;
    watchdog_start(TEST_SECONDS);
    for (ULONG i = 0; i < PLAYERS; i += 1) {
        memset(&players[i], 0, sizeof(players[i]));
        for (ULONG k = 0; k < MOST_ACQUIRES; k += 1) {
            ExInitializeFastOwnerEntry(&players[i].entry[k]);
        }
        start_actor(&players[i].actor);
        run_on(&players[i].actor, enter_region, NULL);
    }
    return 0;
}

static inline int end_players(void **state)
{
    (void)state;
    for (ULONG i = 0; i < PLAYERS; i += 1) {
        check(owner_count(players[i].actor.thread) == 0);
        run_on(&players[i].actor, leave_region, NULL);
        end_actor(&players[i].actor);
    }
    watchdog_stop();
    return 0;
}

#define PLAYED(test) cmocka_unit_test_setup_teardown(test, start_players, end_players)

static inline void expect_state(PERESOURCE resource, const char *expected, const char *script)
{
    char text[32];
    PKTHREAD self = KeGetCurrentThread();
    ExpLockResource(resource, self);
    snprintf(text, sizeof(text), "=%u%s/%u/%u", resource->ActiveEntries,
             resource->Flag & ResourceOwnedExclusive ? "x" : "", resource->NumberOfSharedWaiters,
             resource->NumberOfExclusiveWaiters);
    BOOLEAN consistent = resource->ActiveCount == (resource->ActiveEntries != 0) &&
                         (resource->SharedWaiters != NULL) == (resource->NumberOfSharedWaiters != 0) &&
                         (resource->ExclusiveWaiters != NULL) == (resource->NumberOfExclusiveWaiters != 0);
    ExpUnlockResource(resource, self);
    if (!consistent || strncmp(text, expected, strlen(text)) != 0 || !strchr(" ", expected[strlen(text)])) {
        fprintf(stderr, "script \"%s\" at \"%s\": the resource is %s\n", script, expected, text);
        abort();
    }
}

static inline void expect_result(player *p, BOOLEAN expected, const char *at, const char *script)
{
    await(is_idle(&p->actor));
    if (p->result != expected) {
        fprintf(stderr, "script \"%s\" at \"%s\": returned %d\n", script, at, p->result);
        abort();
    }
}

static inline void perform_step(player *p, const char *at, const char *script)
{
    p->step = at[1];
    if (p->step == '.') {
        expect_result(p, TRUE, at, script);
        return;
    }
    if (p->step == 'F') {
        p->other = (ERESOURCE_THREAD)players[at[2] - '1'].actor.thread;
    }
    tell(&p->actor, play, p);
    if (p->step == 'R' || p->step == 'C' || p->step == 'F') {
        await(is_idle(&p->actor));
    } else if (at[2] == '!') {
        await(is_committed(p->actor.thread));
    } else {
        expect_result(p, at[2] == '+', at, script);
    }
}

static inline void run_script(const lock_kind *kind, PERESOURCE resource, const char *script)
{
    for (ULONG i = 0; i < PLAYERS; i += 1) {
        players[i].kind = kind;
        players[i].resource = resource;
    }
    for (const char *at = script + strspn(script, " "); *at != '\0'; at += strcspn(at, " "), at += strspn(at, " ")) {
        if (*at == '=') {
            expect_state(resource, at, script);
        } else {
            perform_step(&players[*at - '1'], at, script);
        }
    }
}

/* Every script ends with the resource idle, and it can be deleted. */
static inline void run_scripts(const lock_kind *kind, const char *const *scripts, ULONG count)
{
    for (ULONG i = 0; i < count; i += 1) {
        PERESOURCE resource = malloc(sizeof(*resource));
        memset(resource, 0xcc, sizeof(*resource));
        kind->initialize(resource);
        run_script(kind, resource, scripts[i]);
        expect_state(resource, "=0/0/0", scripts[i]);
        kind->remove(resource);
        free(resource);
    }
}

#define RUN(kind, scripts) run_scripts(kind, scripts, RTL_NUMBER_OF(scripts))

/* Tests for every kind of resource. */

static const char *const exclusion_scripts[] = {
    "1X+ =1x/0/0 2x- 2s- 2v- 1R 2x+ 2R",
    "1S+ 2S+ 3S+ =3/0/0 4x- 1R =2/0/0 4x- 2R 4x- 3R 4x+ =1x/0/0 4R",
    "1S+ =1/0/0 1R =0/0/0 1X+ 1R",
    "1V+ 2V+ =2/0/0 3x- 2R 1R",
    "1X+ 2X! 3x- 3s- 1R 2. 3x- 3s- 2R",
};

static const char *const exclusive_recursion_scripts[] = {
    "1X+ 1X+ 1S+ 1V+ 2s- 1R 2s- 1R 2s- 1R 2s- 2x- 1R =0/0/0 2x+ 2R",
    "1X+ 2S! 3X! 1x+ 1s+ 1v+ 1X+ 1S+ 1R 1R 1R 1R 1R =1x/1/1 1R 2. =1/0/1 2R 3. 3R",
};

static const char *const shared_recursion_scripts[] = {
    "1S+ 2X! 1S+ 1s+ 1R 1R =1/0/1 1R 2. =1x/0/0 2R",
    "1S+ 2S+ 2S+ 2S+ 3X! 1S+ 2s+ 1R 1R 2R 2R 2R =1/0/1 2R 3. 3R",
    "1S+ 2S+ 3S+ 4X! 3S+ 3R 1R 3S+ 3R 3R 2S+ 2R =1/0/1 2R 4. 4R",
};

static const char *const behind_exclusive_scripts[] = {
    "1S+ 2X! 3s- 3S! 4v+ =2/1/1 4R =1/1/1 1R 2. =1x/1/0 2R 3. 3R",
    "1S+ 2X! 3V+ 1R =1/0/1 3R 2. 3V! 2R 3. 3R",
    "1S+ 2X! 3X! 4s- 1R 2. 4s- 2R 3. 4v- 3R 4s+ 4R",
};

static const char *const hand_over_scripts[] = {
    "1X+ 2S! 3S! 1R =2/0/0 2. 3. 2R 3R",
    "1X+ 2S! 3X! 4S! =1x/2/1 1R =2/0/1 2. 4. 2R =1/0/1 4R =1x/0/0 3. 3R",
    "1X+ 2X! 3X! 4X! =1x/0/3 1R =1x/0/2 2. 2R =1x/0/1 3. 3R 4. 4R",
    "1X+ 2X! 3X! 4X! 1R 2. 5X! 2R =1x/0/2 3. 3R 4. 4R 5. 5R",
    "1S+ 2X! 3S! 4X! 1R =1x/1/1 2. 2R =1/0/1 3. 3R =1x/0/0 4. 4R",
    "1X+ 2X! 1R 2. 1X! 2R 1. 2X! 1R 2. 2R",
};

static const char *const conversion_scripts[] = {
    "1X+ 1C =1/0/0 2S+ 1R 2R",
    "1X+ 2S! 3X! 4S! 1C =3/0/1 2. 4. 5s- 1S+ 1R 1R 2R =1/0/1 4R 3. =1x/0/0 3R",
    "1X+ 2X! 1C =1/0/1 3s- 1R 2. 2R",
};

#endif
