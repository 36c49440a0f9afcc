/* Lookaside lists: what they keep, their statistics, their depth, the routines of the program. */
#include <interlock/ex.h>

#include "ke/ki.h"
#include "support.h"

#include <string.h>

#define TAG     0x6b6f6f4cu
#define THREADS 4

static ULONG allocated, freed;
static POOL_TYPE type_seen;
static PVOID list_seen;

static PVOID count_allocate(POOL_TYPE type, SIZE_T bytes, ULONG tag)
{
    __atomic_fetch_add(&allocated, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&type_seen, type, __ATOMIC_RELAXED);
    return ExAllocatePoolWithTag(type, bytes, tag);
}

static VOID count_free(PVOID buffer)
{
    __atomic_fetch_add(&freed, 1, __ATOMIC_RELAXED);
    ExFreePoolWithTag(buffer, TAG);
}

static PVOID allocate_ex(POOL_TYPE type, SIZE_T bytes, ULONG tag, PLOOKASIDE_LIST_EX list)
{
    type_seen = type;
    list_seen = list;
    allocated += 1;
    return ExAllocatePoolWithTag((POOL_TYPE)((ULONG)type & ~(ULONG)POOL_QUOTA_FAIL_INSTEAD_OF_RAISE), bytes, tag);
}

static VOID free_ex(PVOID buffer, PLOOKASIDE_LIST_EX list)
{
    list_seen = list;
    freed += 1;
    ExFreePoolWithTag(buffer, TAG);
}

static int begin(void **state)
{
    (void)state;
    KiVerifierEnabled = FALSE; /* with it a list keeps nothing */
    allocated = freed = 0;
    return 0;
}

static void test_statistics(void **state)
{
    NPAGED_LOOKASIDE_LIST list;
    PVOID blocks[6];
    (void)state;
    ExInitializeNPagedLookasideList(&list, count_allocate, count_free, 0, 100, TAG, 0);
    assert_int_equal(list.L.Depth, 4);
    assert_int_equal(list.L.MaximumDepth, 256);
    assert_int_equal(list.L.Size, 100);
    assert_int_equal(list.L.Tag, TAG);
    for (int i = 0; i < 6; i += 1) {
        blocks[i] = ExAllocateFromNPagedLookasideList(&list);
        assert_non_null(blocks[i]);
        memset(blocks[i], i, 100);
    }
    assert_int_equal(list.L.TotalAllocates, 6);
    assert_int_equal(list.L.AllocateMisses, 6);
    for (int i = 0; i < 6; i += 1) {
        ExFreeToNPagedLookasideList(&list, blocks[i]);
    }
    assert_int_equal(list.L.TotalFrees, 6);
    assert_int_equal(list.L.FreeMisses, 2);
    assert_int_equal(freed, 2);
    assert_int_equal(QueryDepthSList(&list.L.ListHead), 4);
    assert_ptr_equal(ExAllocateFromNPagedLookasideList(&list), blocks[3]);
    assert_int_equal(list.L.TotalAllocates, 7);
    assert_int_equal(list.L.AllocateMisses, 6);
    assert_int_equal(allocated, 6);
    ExFreeToNPagedLookasideList(&list, blocks[3]);
    ExDeleteNPagedLookasideList(&list);
    assert_int_equal(freed, 6);
}

static void test_the_pool_by_default(void **state)
{
    PAGED_LOOKASIDE_LIST paged;
    NPAGED_LOOKASIDE_LIST nonpaged;
    LOOKASIDE_LIST_EX any;
    (void)state;
    ExInitializePagedLookasideList(&paged, NULL, NULL, 0, 1, TAG, 0);
    assert_int_equal(paged.L.Size, LOOKASIDE_MINIMUM_BLOCK_SIZE);
    assert_int_equal(paged.L.Type, PagedPool);
    ExInitializeNPagedLookasideList(&nonpaged, NULL, NULL, POOL_NX_ALLOCATION, 64, TAG, 0);
    assert_int_equal(nonpaged.L.Type, NonPagedPoolNx);
    assert_int_equal(ExInitializeLookasideListEx(&any, NULL, NULL, PagedPool, 0, 64, TAG, 0), STATUS_SUCCESS);
    for (int i = 0; i < 10; i += 1) {
        PVOID first = ExAllocateFromPagedLookasideList(&paged);
        PVOID second = ExAllocateFromNPagedLookasideList(&nonpaged);
        PVOID third = ExAllocateFromLookasideListEx(&any);
        ExFreeToPagedLookasideList(&paged, first);
        ExFreeToNPagedLookasideList(&nonpaged, second);
        ExFreeToLookasideListEx(&any, third);
    }
    assert_int_equal(any.L.AllocateMisses, 1);
    ExDeletePagedLookasideList(&paged);
    ExDeleteNPagedLookasideList(&nonpaged);
    ExDeleteLookasideListEx(&any);
}

static void test_ex(void **state)
{
    LOOKASIDE_LIST_EX list;
    (void)state;
    assert_int_equal(ExInitializeLookasideListEx(&list, NULL, NULL, (POOL_TYPE)0x4000, 0, 64, TAG, 0),
                     STATUS_INVALID_PARAMETER_4);
    assert_int_equal(ExInitializeLookasideListEx(&list, NULL, NULL, PagedPool, 3, 64, TAG, 0),
                     STATUS_INVALID_PARAMETER_5);
    assert_int_equal(ExInitializeLookasideListEx(&list, NULL, NULL, PagedPool, 4, 64, TAG, 0),
                     STATUS_INVALID_PARAMETER_5);
    assert_int_equal(ExInitializeLookasideListEx(&list, allocate_ex, free_ex, NonPagedPoolNx,
                                                 EX_LOOKASIDE_LIST_EX_FLAGS_RAISE_ON_FAIL, 64, TAG, 0),
                     STATUS_SUCCESS);
    PVOID block = ExAllocateFromLookasideListEx(&list);
    assert_ptr_equal(list_seen, &list);
    assert_int_equal(type_seen, NonPagedPoolNx | POOL_RAISE_IF_ALLOCATION_FAILURE);
    list_seen = NULL;
    ExFreeToLookasideListEx(&list, block);
    assert_int_equal(freed, 0);
    ExFlushLookasideListEx(&list);
    assert_ptr_equal(list_seen, &list);
    assert_int_equal(freed, 1);
    block = ExAllocateFromLookasideListEx(&list);
    assert_int_equal(allocated, 2);
    ExFreeToLookasideListEx(&list, block);
    ExDeleteLookasideListEx(&list);
    assert_int_equal(ExInitializeLookasideListEx(&list, allocate_ex, free_ex, PagedPool,
                                                 EX_LOOKASIDE_LIST_EX_FLAGS_FAIL_NO_RAISE, 64, TAG, 0),
                     STATUS_SUCCESS);
    ExFreeToLookasideListEx(&list, ExAllocateFromLookasideListEx(&list));
    assert_int_equal(type_seen, PagedPool | POOL_QUOTA_FAIL_INSTEAD_OF_RAISE);
    ExDeleteLookasideListEx(&list);
}

/* Makes the list believe that this many seconds have passed since its last check. */
static void pass_seconds(GENERAL_LOOKASIDE *list, ULONG seconds)
{
    *(PULONG64)list->Future -= seconds * 10000000ull;
}

static void churn(PNPAGED_LOOKASIDE_LIST list, ULONG blocks, ULONG times)
{
    PVOID held[64];
    for (ULONG t = 0; t < times; t += 1) {
        for (ULONG i = 0; i < blocks; i += 1) {
            held[i] = ExAllocateFromNPagedLookasideList(list);
        }
        for (ULONG i = 0; i < blocks; i += 1) {
            ExFreeToNPagedLookasideList(list, held[i]);
        }
    }
}

static void test_depth_follows_the_demand(void **state)
{
    NPAGED_LOOKASIDE_LIST list;
    (void)state;
    ExInitializeNPagedLookasideList(&list, NULL, NULL, 0, 64, TAG, 0);
    for (ULONG depth = 4; depth < 64; depth *= 2) {
        assert_int_equal(list.L.Depth, depth);
        churn(&list, 64, 2);
        assert_int_equal(list.L.Depth, depth);
        pass_seconds(&list.L, 1);
        churn(&list, 64, 1);
    }
    assert_int_equal(list.L.Depth, 64);
    churn(&list, 64, 1);
    ULONG misses = list.L.AllocateMisses;
    churn(&list, 64, 10);
    assert_int_equal(list.L.AllocateMisses, misses);
    /* Hardly used: each check halves the depth, down to 4. Only a miss checks. */
    for (ULONG depth = 32; depth >= 4; depth /= 2) {
        ULONG kept = QueryDepthSList(&list.L.ListHead);
        PVOID held[65];
        for (ULONG i = 0; i <= kept; i += 1) {
            if (i == kept) {
                pass_seconds(&list.L, 1000);
            }
            held[i] = ExAllocateFromNPagedLookasideList(&list);
        }
        assert_int_equal(list.L.Depth, depth);
        for (ULONG i = 0; i <= kept; i += 1) {
            ExFreeToNPagedLookasideList(&list, held[i]);
        }
        assert_int_equal(QueryDepthSList(&list.L.ListHead), depth);
    }
    ExDeleteNPagedLookasideList(&list);
}

static void test_maximum_depth(void **state)
{
    NPAGED_LOOKASIDE_LIST list;
    (void)state;
    ExInitializeNPagedLookasideList(&list, NULL, NULL, 0, 64, TAG, 0);
    list.L.Depth = 200;
    list.L.TotalAllocates = list.L.AllocateMisses = 100000;
    pass_seconds(&list.L, 1);
    ExFreeToNPagedLookasideList(&list, ExAllocateFromNPagedLookasideList(&list));
    assert_int_equal(list.L.Depth, 256);
    ExDeleteNPagedLookasideList(&list);
}

static void test_the_verifier_keeps_nothing(void **state)
{
    NPAGED_LOOKASIDE_LIST list;
    (void)state;
    KiVerifierEnabled = TRUE;
    ExInitializeNPagedLookasideList(&list, count_allocate, count_free, 0, 64, TAG, 0);
    PUCHAR block = ExAllocateFromNPagedLookasideList(&list);
    assert_int_equal(block[0], 0xcd);
    ExFreeToNPagedLookasideList(&list, block);
    assert_int_equal(freed, 1);
    ExDeleteNPagedLookasideList(&list);
    KiVerifierEnabled = FALSE;
}

static PVOID fail_to_allocate(POOL_TYPE type, SIZE_T bytes, ULONG tag)
{
    (void)type;
    (void)bytes;
    (void)tag;
    return NULL;
}

static void test_no_memory(void **state)
{
    NPAGED_LOOKASIDE_LIST list;
    (void)state;
    ExInitializeNPagedLookasideList(&list, fail_to_allocate, NULL, 0, 64, TAG, 0);
    assert_null(ExAllocateFromNPagedLookasideList(&list));
    ExDeleteNPagedLookasideList(&list);
    ExInitializeNPagedLookasideList(&list, count_allocate, NULL, POOL_RAISE_IF_ALLOCATION_FAILURE, 64, TAG, 0);
    ExFreePool(ExAllocateFromNPagedLookasideList(&list));
    assert_int_equal(type_seen, NonPagedPool | POOL_RAISE_IF_ALLOCATION_FAILURE);
    ExDeleteNPagedLookasideList(&list);
}

static NPAGED_LOOKASIDE_LIST shared;

static void use_shared(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(20000);
    (void)argument;
    for (unsigned long i = 0; i < rounds; i += 1) {
        PVOID blocks[3];
        for (int b = 0; b < 3; b += 1) {
            blocks[b] = ExAllocateFromNPagedLookasideList(&shared);
            assert_non_null(blocks[b]);
            memset(blocks[b], (int)index + 1, 48);
        }
        for (int b = 0; b < 3; b += 1) {
            UCHAR *bytes = blocks[b];
            assert_int_equal(bytes[0], index + 1);
            assert_int_equal(bytes[47], index + 1);
            ExFreeToNPagedLookasideList(&shared, blocks[b]);
        }
    }
}

static void test_shared_list(void **state)
{
    (void)state;
    ExInitializeNPagedLookasideList(&shared, count_allocate, count_free, 0, 48, TAG, 0);
    run_threads(THREADS, 120, use_shared, NULL);
    assert_int_equal(shared.L.TotalAllocates, shared.L.TotalFrees);
    assert_int_equal(shared.L.TotalAllocates, THREADS * 3 * test_rounds(20000));
    assert_int_equal(shared.L.AllocateMisses, allocated);
    ExDeleteNPagedLookasideList(&shared);
    assert_int_equal(allocated, freed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_statistics, begin),
        cmocka_unit_test_setup(test_the_pool_by_default, begin),
        cmocka_unit_test_setup(test_ex, begin),
        cmocka_unit_test_setup(test_depth_follows_the_demand, begin),
        cmocka_unit_test_setup(test_maximum_depth, begin),
        cmocka_unit_test_setup(test_the_verifier_keeps_nothing, begin),
        cmocka_unit_test_setup(test_no_memory, begin),
        cmocka_unit_test_setup(test_shared_list, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
