/* index.c: a hash table with open addressing. */
#include "index.h"
#include "kd.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define FIRST_SIZE 64

typedef struct kd_index_slot {
    uint64_t key;
    int value; /* plus 1; 0: the slot is free */
} kd_index_slot;

static uint64_t secret(void)
{
    static uint64_t value;

    if (value == 0 && getrandom(&value, sizeof(value), GRND_NONBLOCK) != (ssize_t)sizeof(value))
        value = (uint64_t)(uintptr_t)&value; /* at least where the host has put us */
    return value | 1;
}

/* Mixes the key as the finalizer of MurmurHash3 does. */
static size_t place_of(const kd_index *index, uint64_t key)
{
    key ^= secret();
    key = (key ^ key >> 33) * 0xff51afd7ed558ccdull;
    key = (key ^ key >> 33) * (0xc4ceb9fe1a85ec53ull ^ (secret() << 1));
    return (size_t)(key ^ key >> 33) & (index->size - 1);
}

static kd_index_slot *slot_of(const kd_index *index, uint64_t key)
{
    size_t place = place_of(index, key);

    while (index->slots[place].value != 0 && index->slots[place].key != key)
        place = (place + 1) & (index->size - 1);
    return &index->slots[place];
}

int kd_index_find(const kd_index *index, uint64_t key)
{
    return index->slots != NULL ? slot_of(index, key)->value - 1 : -1;
}

static void grow(kd_index *index)
{
    kd_index larger = {.size = index->slots != NULL ? 2 * index->size : FIRST_SIZE};

    larger.slots = kd_allocate(larger.size, sizeof(kd_index_slot));
    for (size_t i = 0; index->slots != NULL && i < index->size; i++)
        if (index->slots[i].value != 0)
            *slot_of(&larger, index->slots[i].key) = index->slots[i];
    larger.count = index->count;
    free(index->slots);
    *index = larger;
}

bool kd_index_add(kd_index *index, uint64_t key, int value)
{
    kd_index_slot *slot;

    if (index->slots == NULL || 2 * index->count >= index->size)
        grow(index);
    slot = slot_of(index, key);
    if (slot->value != 0)
        return false;
    *slot = (kd_index_slot){.key = key, .value = value + 1};
    index->count++;
    return true;
}

static uint64_t address_of(const void *structure)
{
    uint64_t address;

    memcpy(&address, structure, sizeof(address));
    return address;
}

int kd_by_address(const void *one, const void *other)
{
    uint64_t a = address_of(one), b = address_of(other);

    return a < b ? -1 : a > b;
}

size_t kd_count_up_to(const void *list, size_t count, size_t size, uint64_t address)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (address_of((const char *)list + middle * size) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void kd_index_free(kd_index *index)
{
    free(index->slots);
    *index = (kd_index){.slots = NULL};
}
