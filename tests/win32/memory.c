#include "support.h"

#include <windows.h>

#include <string.h>

static void is_zero(const void *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(((const char *)memory)[i], 0);
}

static void the_process_heap(void **state)
{
    HANDLE heap = GetProcessHeap();
    char *memory = HeapAlloc(heap, HEAP_ZERO_MEMORY, 100);

    (void)state;
    assert_non_null(heap);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % MEMORY_ALLOCATION_ALIGNMENT, 0);
    is_zero(memory, 100);
    assert_int_equal(HeapSize(heap, 0, memory), 100);
    memset(memory, 'x', 100);
    memory = HeapReAlloc(heap, HEAP_ZERO_MEMORY, memory, 200);
    assert_non_null(memory);
    assert_int_equal(HeapSize(heap, 0, memory), 200);
    assert_int_equal(memory[99], 'x');
    is_zero(memory + 100, 100);
    memory = HeapReAlloc(heap, 0, memory, 10);
    assert_int_equal(memory[9], 'x');
    assert_ptr_equal(HeapReAlloc(heap, 0, memory, 10), memory);
    assert_null(HeapReAlloc(heap, HEAP_REALLOC_IN_PLACE_ONLY, memory, 1000));
    assert_true(HeapFree(heap, 0, memory));
    assert_true(HeapFree(heap, 0, NULL));
    memory = HeapAlloc(heap, 0, 0);
    assert_non_null(memory);
    assert_int_equal(HeapSize(heap, 0, memory), 0);
    assert_true(HeapFree(heap, 0, memory));
    assert_false(HeapDestroy(heap));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
}

static void heaps_of_their_own(void **state)
{
    HANDLE heap = HeapCreate(0, 0, 1000);
    char *first, *second;

    (void)state;
    assert_non_null(heap);
    first = HeapAlloc(heap, 0, 600);
    assert_non_null(first);
    assert_null(HeapAlloc(heap, 0, 401));
    assert_int_equal(GetLastError(), ERROR_NOT_ENOUGH_MEMORY);
    second = HeapAlloc(heap, 0, 400);
    assert_non_null(second);
    assert_true(HeapFree(heap, 0, first));
    first = HeapAlloc(heap, 0, 600);
    assert_non_null(first);
    assert_false(HeapFree(GetProcessHeap(), 0, first));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_true(HeapSize(GetProcessHeap(), 0, first) == (SIZE_T)-1);
    assert_true(HeapDestroy(heap));
    assert_null(HeapCreate(0, 100, 50));
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    assert_false(HeapDestroy(NULL));
}

static void what_there_is_not_enough_of(void **state)
{
    volatile NTSTATUS code = 0;

    (void)state;
    SetLastError(0);
    assert_null(HeapAlloc(GetProcessHeap(), 0, (SIZE_T)-1));
    assert_int_equal(GetLastError(), ERROR_NOT_ENOUGH_MEMORY);
    __try {
        HeapAlloc(GetProcessHeap(), HEAP_GENERATE_EXCEPTIONS, (SIZE_T)-1);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        code = GetExceptionCode();
    }
    assert_int_equal(code, (NTSTATUS)STATUS_NO_MEMORY);
}

/* What a heap was created with holds for every call, and for that heap alone. */
static void a_heap_that_raises(void **state)
{
    HANDLE heap = HeapCreate(HEAP_GENERATE_EXCEPTIONS, 0, 4096), other = HeapCreate(0, 0, 4096);
    void *memory = HeapAlloc(heap, 0, 16);
    volatile int raised = 0;

    (void)state;
    assert_non_null(memory);
    __try {
        HeapAlloc(heap, 0, 100000);
    } __except (GetExceptionCode() == STATUS_NO_MEMORY ? EXCEPTION_EXECUTE_HANDLER : EXCEPTION_CONTINUE_SEARCH) {
        raised += 1;
    }
    __try {
        HeapReAlloc(heap, 0, memory, 100000);
    } __except (GetExceptionCode() == STATUS_NO_MEMORY ? EXCEPTION_EXECUTE_HANDLER : EXCEPTION_CONTINUE_SEARCH) {
        raised += 1;
    }
    assert_int_equal(raised, 2);
    assert_int_equal(HeapSize(heap, 0, memory), 16);
    assert_null(HeapAlloc(other, 0, 100000));
    assert_int_equal(GetLastError(), ERROR_NOT_ENOUGH_MEMORY);
    assert_true(HeapDestroy(heap));
    assert_true(HeapDestroy(other));
}

static void local_and_global(void **state)
{
    HLOCAL local = LocalAlloc(LPTR, 50);
    HGLOBAL global = GlobalAlloc(GMEM_MOVEABLE | GMEM_ZEROINIT, 60);
    char *memory = GlobalLock(global);

    (void)state;
    is_zero(local, 50);
    is_zero(memory, 60);
    assert_int_equal(LocalSize(local), 50);
    assert_int_equal(GlobalSize(global), 60);
    assert_ptr_equal(LocalLock(local), local);
    assert_false(LocalUnlock(local));
    assert_int_equal(GetLastError(), ERROR_NOT_LOCKED);
    SetLastError(77);
    assert_true(GlobalUnlock(global)); /* the older one is another */
    assert_int_equal(GetLastError(), 77);
    assert_null(LocalFree(local));
    assert_null(GlobalFree(global));
    assert_null(LocalFree(NULL));
    assert_int_equal(LocalSize(NULL), 0);
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_process_heap),
        cmocka_unit_test(heaps_of_their_own),
        cmocka_unit_test(what_there_is_not_enough_of),
        cmocka_unit_test(a_heap_that_raises),
        cmocka_unit_test(local_and_global),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
