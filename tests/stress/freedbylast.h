/*
 * freedbylast.h: objects that end with their last use. Each thread uses an object once; the last one destroys and frees
 * it, whatever the one before is still doing with it, and creates the next one.
 */
#ifndef INTERLOCK_TESTS_FREEDBYLAST_H
#define INTERLOCK_TESTS_FREEDBYLAST_H

#include "stress.h"

typedef struct object_kind {
    size_t size;
    void (*make)(void *object, unsigned users);
    int (*is_last)(void *object, unsigned index, test_random *random); /* uses it */
    void (*destroy)(void *object);
} object_kind;

typedef struct relay {
    const object_kind *kind;
    void *object;
    unsigned users;
    unsigned long rounds;
    unsigned long finished;
} relay;

static inline void make_object(relay *r)
{
    void *object = malloc(r->kind->size);

    require(object != NULL);
    r->kind->make(object, r->users);
    store(&r->object, object);
}

static inline void free_object(relay *r, void *object)
{
    r->kind->destroy(object);
    memset(object, 0xdd, r->kind->size);
    free(object);
}

static inline void use_objects(void *argument, unsigned index)
{
    relay *r = argument;
    test_random random;

    random_seed(&random, index + 1);
    for (unsigned long round = 0; round < r->rounds; round++) {
        void *object;

        await(load(&r->finished) == round);
        object = load(&r->object);
        if (r->kind->is_last(object, index, &random)) {
            free_object(r, object);
            make_object(r);
            store(&r->finished, round + 1);
        }
    }
}

static inline void free_by_the_last(const object_kind *kind, unsigned users, unsigned long rounds)
{
    relay r = {.kind = kind, .users = users, .rounds = rounds};

    make_object(&r);
    run_threads(users, HANG_SECONDS, use_objects, &r);
    free_object(&r, r.object);
}

#endif
