/*
 * index.h: finds a number by a key: an address, an id. The keys come from a process that may have chosen them so that
 * they collide, so the hash has a secret.
 */
#ifndef INTERLOCK_KD_INDEX_H
#define INTERLOCK_KD_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct kd_index {
    struct kd_index_slot *slots; /* NULL: it is empty */
    size_t size, count;          /* size is a power of two */
} kd_index;

int kd_index_find(const kd_index *index, uint64_t key);           /* -1: none */
bool kd_index_add(kd_index *index, uint64_t key, int value);      /* FALSE: the key exists, and keeps its value */
void kd_index_free(kd_index *index);

/* Structures that begin with an address: compares two of them for qsort; counts those in a sorted list up to an address. */
int kd_by_address(const void *one, const void *other);
size_t kd_count_up_to(const void *list, size_t count, size_t size, uint64_t address);

#define KD_INDEX_COST 64 /* bytes that an entry may take */

#endif
