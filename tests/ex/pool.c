/* Pool memory: allocations, and misuse. */
#include <interlock/ex.h>
#include <interlock/exception.h>

#include "ke/ki.h"
#include "support.h"

#include <string.h>

#define TAG 0x74736554u

static BOOLEAN is_filled(const UCHAR *block, SIZE_T size, UCHAR value)
{
    for (SIZE_T i = 0; i < size; i += 1) {
        if (block[i] != value) {
            return FALSE;
        }
    }
    return TRUE;
}

/* Zeroed only on request. The verifier fills the rest, so both can be checked. */
static void test_contents(void **state)
{
    BOOLEAN verifier = KiVerifierEnabled;
    (void)state;
    KiVerifierEnabled = TRUE;
    for (SIZE_T size = 1; size < 20000; size = size * 3 + 1) {
        const struct {
            UCHAR *block;
            UCHAR value;
        } blocks[] = {
            {ExAllocatePool2(POOL_FLAG_NON_PAGED, size, TAG), 0},
            {ExAllocatePool2(POOL_FLAG_NON_PAGED | POOL_FLAG_UNINITIALIZED, size, TAG), 0xcd},
            {ExAllocatePool3(POOL_FLAG_PAGED, size, TAG, NULL, 0), 0},
            {ExAllocatePoolWithTag(PagedPool, size, TAG), 0xcd},
            {ExAllocatePool(NonPagedPool, size), 0xcd},
            {ExAllocatePoolZero(NonPagedPoolNx, size, TAG), 0},
            {ExAllocatePoolUninitialized(PagedPool, size, TAG), 0xcd},
            {ExAllocatePoolQuotaZero(PagedPool, size, TAG), 0},
            {ExAllocatePoolQuotaUninitialized(PagedPool, size, TAG), 0xcd},
            {ExAllocatePoolPriorityZero(PagedPool, size, TAG, NormalPoolPriority), 0},
            {ExAllocatePoolPriorityUninitialized(PagedPool, size, TAG, LowPoolPriority), 0xcd},
            {ExAllocatePoolWithQuotaTag(PagedPool, size, TAG), 0xcd},
            {ExAllocatePoolWithTagPriority(NonPagedPoolCacheAligned, size, TAG, HighPoolPriority), 0xcd},
        };
        for (ULONG i = 0; i < ARRAYSIZE(blocks); i += 1) {
            assert_non_null(blocks[i].block);
            assert_true(is_filled(blocks[i].block, size, blocks[i].value));
        }
        for (ULONG i = 0; i < ARRAYSIZE(blocks); i += 1) {
            ExFreePool(blocks[i].block);
        }
    }
    KiVerifierEnabled = verifier;
    ExInitializeDriverRuntime(DrvRtPoolNxOptIn);
}

/* Memory requested as zeroed is zeroed, even if it was used before. */
static void test_memory_used_again(void **state)
{
    BOOLEAN verifier = KiVerifierEnabled;
    (void)state;
    KiVerifierEnabled = FALSE;
    for (int i = 0; i < 100; i += 1) {
        UCHAR *block = ExAllocatePoolUninitialized(NonPagedPoolNx, 1000, TAG);
        memset(block, 0xa5, 1000);
        ExFreePool2(block, TAG, NULL, 0);
        block = ExAllocatePoolZero(NonPagedPoolNx, 1000, TAG);
        assert_true(is_filled(block, 1000, 0));
        ExFreePoolWithTag(block, TAG);
    }
    KiVerifierEnabled = verifier;
}

static void test_extended_parameters(void **state)
{
    POOL_EXTENDED_PARAMETER parameters[2] = {{.Type = PoolExtendedParameterPriority},
                                             {.Type = PoolExtendedParameterNumaNode}};
    (void)state;
    parameters[0].Priority = NormalPoolPriority;
    parameters[1].PreferredNode = MM_ANY_NODE_OK;
    PVOID block = ExAllocatePool3(POOL_FLAG_NON_PAGED, 32, TAG, parameters, 2);
    assert_non_null(block);
    ExFreePool2(block, TAG, parameters, 2);
    parameters[1].Type = PoolExtendedParameterSecurePool;
    assert_null(ExAllocatePool3(POOL_FLAG_NON_PAGED, 32, TAG, parameters, 2));
    parameters[1].Optional = 1;
    block = ExAllocatePool3(POOL_FLAG_NON_PAGED, 32, TAG, parameters, 2);
    assert_non_null(block);
    ExFreePool2(block, 0, NULL, 0);
}

static NTSTATUS raised_by_quota(POOL_TYPE type, SIZE_T size)
{
    NTSTATUS status = STATUS_SUCCESS;
    __try {
        assert_null(ExAllocatePoolWithQuotaTag(type, size, TAG));
    }
    __except (EXCEPTION_EXECUTE_HANDLER) {
        status = GetExceptionCode();
    }
    return status;
}

static void test_quota_raises(void **state)
{
    (void)state;
    assert_int_equal(raised_by_quota(PagedPool, (SIZE_T)-64), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(raised_by_quota((POOL_TYPE)(PagedPool | POOL_QUOTA_FAIL_INSTEAD_OF_RAISE), (SIZE_T)-64),
                     STATUS_SUCCESS);
}

static const struct allocation {
    POOL_FLAGS flags;
    SIZE_T size;
    ULONG tag;
    SIZE_T alignment; /* 0: refused */
} allocations[] = {
    {POOL_FLAG_NON_PAGED, 1, TAG, 16},
    {POOL_FLAG_NON_PAGED, 100, TAG, 16},
    {POOL_FLAG_PAGED, 4095, TAG, 16},
    {POOL_FLAG_NON_PAGED_EXECUTE, 17, TAG, 16},
    {POOL_FLAG_PAGED, 4096, TAG, 4096},
    {POOL_FLAG_NON_PAGED, 10000, TAG, 4096},
    {POOL_FLAG_NON_PAGED | POOL_FLAG_CACHE_ALIGNED, 24, TAG, 64},
    {POOL_FLAG_NON_PAGED | POOL_FLAG_USE_QUOTA | POOL_FLAG_SESSION, 24, TAG, 16},
    {POOL_FLAG_NON_PAGED | POOL_FLAG_OPTIONAL_START << 5, 24, TAG, 16},
    {0, 24, TAG, 0},
    {POOL_FLAG_UNINITIALIZED, 24, TAG, 0},
    {POOL_FLAG_NON_PAGED | POOL_FLAG_PAGED, 24, TAG, 0},
    {POOL_FLAG_NON_PAGED | 0x10, 24, TAG, 0},
    {POOL_FLAG_NON_PAGED | 0x80000000u, 24, TAG, 0},
    {POOL_FLAG_NON_PAGED, 24, 0, 0},
    {POOL_FLAG_NON_PAGED, (SIZE_T)-1, TAG, 0},
    {POOL_FLAG_NON_PAGED, (SIZE_T)-100, TAG, 0},
};

static void test_allocate_pool2(void **state)
{
    (void)state;
    for (ULONG i = 0; i < ARRAYSIZE(allocations); i += 1) {
        const struct allocation *a = &allocations[i];
        UCHAR *block = ExAllocatePool2(a->flags, a->size, a->tag);
        if (a->alignment == 0) {
            assert_null(block);
            continue;
        }
        assert_non_null(block);
        assert_int_equal((ULONG_PTR)block % a->alignment, 0);
        for (SIZE_T byte = 0; byte < a->size; byte += 1) {
            assert_int_equal(block[byte], 0);
        }
        memset(block, 0xa5, a->size);
        ExFreePoolWithTag(block, a->tag);
    }
}

static NTSTATUS raised_by(POOL_FLAGS flags, SIZE_T size, ULONG tag)
{
    volatile NTSTATUS raised = STATUS_SUCCESS;
    __try {
        ExAllocatePool2(flags | POOL_FLAG_RAISE_ON_FAILURE, size, tag);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        raised = GetExceptionCode();
    }
    return raised;
}

static void test_raise_on_failure(void **state)
{
    (void)state;
    static const struct {
        POOL_FLAGS flags;
        SIZE_T size;
        ULONG tag;
        NTSTATUS status;
    } rows[] = {
        {POOL_FLAG_NON_PAGED, (SIZE_T)-100, TAG, STATUS_INSUFFICIENT_RESOURCES},
        {POOL_FLAG_PAGED, MAXLONG_PTR, TAG, STATUS_INSUFFICIENT_RESOURCES},
        {POOL_FLAG_NON_PAGED, 24, 0, STATUS_INVALID_PARAMETER},
        {POOL_FLAG_NON_PAGED | POOL_FLAG_PAGED, 24, TAG, STATUS_INVALID_PARAMETER},
    };
    for (ULONG i = 0; i < ARRAYSIZE(rows); i += 1) {
        assert_int_equal(raised_by(rows[i].flags, rows[i].size, rows[i].tag), rows[i].status);
    }
}

static void test_allocate_with_tag(void **state)
{
    (void)state;
    static const struct {
        POOL_TYPE type;
        SIZE_T size;
        SIZE_T alignment;
    } rows[] = {
        {NonPagedPool, 8, 16},    {PagedPool, 33, 16},    {NonPagedPoolNx, 4096, 4096},
        {PagedPoolCacheAligned, 8, 64}, {NonPagedPoolNxCacheAligned, 8, 64},
    };
    for (ULONG i = 0; i < ARRAYSIZE(rows); i += 1) {
        PVOID block = ExAllocatePoolWithTag(rows[i].type, rows[i].size, TAG);
        assert_non_null(block);
        assert_int_equal((ULONG_PTR)block % rows[i].alignment, 0);
        memset(block, 1, rows[i].size);
        if (i % 2 == 0) {
            ExFreePool(block);
        } else {
            ExFreePoolWithTag(block, TAG);
        }
    }
    assert_null(ExAllocatePoolWithTag(NonPagedPool, (SIZE_T)-64, TAG));
}

static void free_with_wrong_tag(void *unused)
{
    (void)unused;
    ExFreePoolWithTag(ExAllocatePoolWithTag(NonPagedPool, 32, TAG), TAG + 1);
}

static void free_unaligned(void *unused)
{
    (void)unused;
    UCHAR *block = ExAllocatePoolWithTag(NonPagedPool, 32, TAG);
    ExFreePool(block + 3);
}

static void free_middle_of_block(void *unused)
{
    (void)unused;
    UCHAR *block = ExAllocatePoolWithTag(NonPagedPool, 64, TAG);
    memset(block, 0, 64);
    ExFreePool(block + 32);
}

static void free_nothing(void *unused)
{
    (void)unused;
    ExFreePool(NULL);
}

static void allocate_without_tag(void *unused)
{
    (void)unused;
    ExAllocatePoolWithTag(NonPagedPool, 32, 0);
}

static void allocate_paged_at_dispatch(void *unused)
{
    KIRQL old;
    (void)unused;
    KiVerifierEnabled = TRUE;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    ExAllocatePool2(POOL_FLAG_PAGED, 32, TAG);
}

static void free_paged_at_dispatch(void *unused)
{
    KIRQL old;
    (void)unused;
    PVOID block = ExAllocatePool2(POOL_FLAG_PAGED, 32, TAG);
    KiVerifierEnabled = TRUE;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    ExFreePool(block);
}

static void allocate_above_dispatch(void *unused)
{
    KIRQL old;
    (void)unused;
    KiVerifierEnabled = TRUE;
    KeRaiseIrql(HIGH_LEVEL, &old);
    ExAllocatePool2(POOL_FLAG_NON_PAGED, 32, TAG);
}

static void allocate_nothing_verified(void *unused)
{
    (void)unused;
    KiVerifierEnabled = TRUE;
    ExAllocatePoolWithTag(NonPagedPool, 0, TAG);
}

static void test_misuse(void **state)
{
    (void)state;
    static void (*const misuses[])(void *) = {
        free_with_wrong_tag,        free_unaligned,         free_middle_of_block,    allocate_without_tag,
        allocate_paged_at_dispatch, free_paged_at_dispatch, allocate_above_dispatch, allocate_nothing_verified,
        free_nothing,
    };
    for (ULONG i = 0; i < ARRAYSIZE(misuses); i += 1) {
        expect_bugcheck(BAD_POOL_CALLER, misuses[i], NULL);
    }
}

static void free_twice(void *unused)
{
    (void)unused;
    PVOID block = ExAllocatePoolWithTag(NonPagedPool, 200, TAG);
    ExFreePoolWithTag(block, TAG);
    ExFreePoolWithTag(block, TAG);
}

static void test_double_free(void **state)
{
    (void)state;
    if (test_slowdown() > 1) {
        skip(); /* a sanitizer stops it itself */
    }
    expect_bugcheck(BAD_POOL_CALLER, free_twice, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocate_pool2),
        cmocka_unit_test(test_contents),
        cmocka_unit_test(test_memory_used_again),
        cmocka_unit_test(test_extended_parameters),
        cmocka_unit_test(test_quota_raises),
        cmocka_unit_test(test_raise_on_failure),
        cmocka_unit_test(test_allocate_with_tag), cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_double_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
