#include "support.h"

#include <windows.h>

#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static SIZE_T page;
static sigjmp_buf place;

static void on_fault(int signal)
{
    (void)signal;
    siglongjmp(place, 1);
}

static bool faults(volatile char *address, bool write)
{
    struct sigaction action = {.sa_handler = on_fault}, before, before_bus;
    volatile bool faulted = true;

    sigaction(SIGSEGV, &action, &before);
    sigaction(SIGBUS, &action, &before_bus);
    if (sigsetjmp(place, 1) == 0) {
        if (write)
            *address = 1;
        else
            (void)*address;
        faulted = false;
    }
    sigaction(SIGSEGV, &before, NULL);
    sigaction(SIGBUS, &before_bus, NULL);
    return faulted;
}

static void expect(const void *address, SIZE_T pages, DWORD state, DWORD protect, const void *base, DWORD first)
{
    MEMORY_BASIC_INFORMATION information;

    assert_int_equal(VirtualQuery(address, &information, sizeof(information)), sizeof(information));
    assert_ptr_equal(information.BaseAddress, address);
    assert_int_equal(information.State, state);
    assert_int_equal(information.Protect, protect);
    assert_int_equal(information.RegionSize, pages * page);
    assert_ptr_equal(information.AllocationBase, base);
    assert_int_equal(information.AllocationProtect, first);
    assert_int_equal(information.Type, MEM_PRIVATE);
}

static void reserve_commit_decommit_release(void **state)
{
    char *base = VirtualAlloc(NULL, 16 * page, MEM_RESERVE, PAGE_READWRITE);

    (void)state;
    assert_non_null(base);
    assert_int_equal((ULONG_PTR)base % 65536, 0);
    expect(base, 16, MEM_RESERVE, 0, base, PAGE_READWRITE);
    assert_true(faults(base, false));

    assert_ptr_equal(VirtualAlloc(base + 4 * page + 100, page, MEM_COMMIT, PAGE_READWRITE), base + 4 * page);
    expect(base, 4, MEM_RESERVE, 0, base, PAGE_READWRITE);
    expect(base + 4 * page, 2, MEM_COMMIT, PAGE_READWRITE, base, PAGE_READWRITE); /* the range touches two pages */
    expect(base + 6 * page, 10, MEM_RESERVE, 0, base, PAGE_READWRITE);
    assert_int_equal(base[4 * page], 0);
    memset(base + 4 * page, 'x', 2 * page);

    /* Committing again keeps the contents and sets the protection. */
    assert_ptr_equal(VirtualAlloc(base + 5 * page, 2 * page, MEM_COMMIT, PAGE_READONLY), base + 5 * page);
    assert_int_equal(base[5 * page], 'x');
    assert_true(faults(base + 5 * page, true));
    expect(base + 5 * page, 2, MEM_COMMIT, PAGE_READONLY, base, PAGE_READWRITE);

    assert_true(VirtualFree(base + 5 * page, page, MEM_DECOMMIT));
    expect(base + 5 * page, 1, MEM_RESERVE, 0, base, PAGE_READWRITE);
    assert_true(VirtualFree(base + 5 * page, page, MEM_DECOMMIT)); /* of reserved pages, too */
    assert_int_equal(base[4 * page], 'x');
    assert_ptr_equal(VirtualAlloc(base + 5 * page, page, MEM_COMMIT, PAGE_READWRITE), base + 5 * page);
    assert_int_equal(base[5 * page], 0); /* zeroed again */

    assert_true(VirtualFree(base, 0, MEM_DECOMMIT));
    expect(base, 16, MEM_RESERVE, 0, base, PAGE_READWRITE);
    assert_true(VirtualFree(base, 0, MEM_RELEASE));
    assert_true(faults(base, false));
}

static void both_at_once(void **state)
{
    char *base = VirtualAlloc(NULL, 1, MEM_COMMIT, PAGE_READWRITE); /* reserves, too */
    char *top = VirtualAlloc(NULL, 100000, MEM_RESERVE | MEM_COMMIT | MEM_TOP_DOWN, PAGE_READONLY);
    SIZE_T pages = (100000 + page - 1) / page;

    (void)state;
    assert_non_null(base);
    expect(base, 1, MEM_COMMIT, PAGE_READWRITE, base, PAGE_READWRITE);
    base[page - 1] = 1;
    assert_non_null(top);
    expect(top, pages, MEM_COMMIT, PAGE_READONLY, top, PAGE_READONLY);
    assert_true(VirtualFree(base, 0, MEM_RELEASE));
    assert_true(VirtualFree(top, 0, MEM_RELEASE));
}

static void at_an_address(void **state)
{
    char *base = VirtualAlloc(NULL, 3 * 65536, MEM_RESERVE, PAGE_NOACCESS);
    char *again;

    (void)state;
    assert_null(VirtualAlloc(base + 65536, page, MEM_RESERVE, PAGE_READWRITE));
    assert_int_equal(GetLastError(), ERROR_INVALID_ADDRESS);
    VirtualFree(base, 0, MEM_RELEASE);
    again = VirtualAlloc(base + 100, page, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    assert_ptr_equal(again, base); /* rounded down to 64 KB, up to the page */
    expect(base, 2, MEM_COMMIT, PAGE_READWRITE, base, PAGE_READWRITE);
    VirtualFree(base, 0, MEM_RELEASE);
}

static void protections(void **state)
{
    char *base = VirtualAlloc(NULL, 4 * page, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    DWORD old = 0;

    (void)state;
    base[page] = 5;
    assert_true(VirtualProtect(base + page + 7, 1, PAGE_READONLY, &old));
    assert_int_equal(old, PAGE_READWRITE);
    assert_true(faults(base + page, true));
    assert_false(faults(base + page, false));
    assert_false(faults(base, true));
    assert_true(VirtualProtect(base, 4 * page, PAGE_NOACCESS, &old));
    assert_int_equal(old, PAGE_READWRITE); /* of the first page */
    expect(base, 4, MEM_COMMIT, PAGE_NOACCESS, base, PAGE_READWRITE);
    assert_true(faults(base, false));
    assert_true(VirtualProtect(base, 4 * page, PAGE_EXECUTE_READ, &old));
    assert_int_equal(old, PAGE_NOACCESS);
    assert_int_equal(base[page], 5);
    assert_true(VirtualProtect(base, page, PAGE_READWRITE | PAGE_GUARD, &old));
    expect(base, 1, MEM_COMMIT, PAGE_READWRITE | PAGE_GUARD, base, PAGE_READWRITE);
    assert_true(faults(base, false));
    assert_true(VirtualProtect(base, page, PAGE_READWRITE, &old));
    assert_int_equal(old, PAGE_READWRITE | PAGE_GUARD);
    assert_false(faults(base, true));
    VirtualFree(base, 0, MEM_RELEASE);
}

static void refuse_allocation(LPVOID address, SIZE_T size, DWORD type, DWORD protect, DWORD error)
{
    SetLastError(0);
    assert_null(VirtualAlloc(address, size, type, protect));
    assert_int_equal(GetLastError(), error);
}

static void refuse_free(LPVOID address, SIZE_T size, DWORD type, DWORD error)
{
    SetLastError(0);
    assert_false(VirtualFree(address, size, type));
    assert_int_equal(GetLastError(), error);
}

static void refuse_protect(LPVOID address, SIZE_T size, DWORD protect, DWORD error)
{
    DWORD old = 77;

    SetLastError(0);
    assert_false(VirtualProtect(address, size, protect, &old));
    assert_int_equal(GetLastError(), error);
    assert_int_equal(old, 77);
}

static void documented_errors(void **state)
{
    char *base = VirtualAlloc(NULL, 4 * 65536, MEM_RESERVE, PAGE_READWRITE);
    char *gone = VirtualAlloc(NULL, page, MEM_RESERVE, PAGE_READWRITE);
    MEMORY_BASIC_INFORMATION information;

    (void)state;
    VirtualFree(gone, 0, MEM_RELEASE);
    refuse_allocation(NULL, 0, MEM_RESERVE, PAGE_READWRITE, ERROR_INVALID_PARAMETER);
    refuse_allocation(NULL, page, 0, PAGE_READWRITE, ERROR_INVALID_PARAMETER);
    refuse_allocation(NULL, page, MEM_RESERVE, 0, ERROR_INVALID_PARAMETER);
    refuse_allocation(NULL, page, MEM_RESERVE, PAGE_READONLY | PAGE_READWRITE, ERROR_INVALID_PARAMETER);
    refuse_allocation(NULL, page, MEM_COMMIT, PAGE_WRITECOPY, ERROR_INVALID_PARAMETER);
    refuse_allocation(NULL, page, MEM_COMMIT, PAGE_NOACCESS | PAGE_GUARD, ERROR_INVALID_PARAMETER);
    refuse_allocation(NULL, page, MEM_RESERVE | MEM_RESET, PAGE_READWRITE, ERROR_INVALID_PARAMETER);
    refuse_allocation(NULL, page, MEM_RESERVE | 0x80, PAGE_READWRITE, ERROR_INVALID_PARAMETER);
    refuse_allocation(NULL, page, MEM_RESERVE | MEM_COMMIT | MEM_LARGE_PAGES, PAGE_READWRITE,
                      ERROR_PRIVILEGE_NOT_HELD);
    refuse_allocation(NULL, (SIZE_T)1 << 60, MEM_RESERVE, PAGE_READWRITE, ERROR_INVALID_PARAMETER);
    refuse_allocation(NULL, ((SIZE_T)1 << 47) - 65536, MEM_RESERVE, PAGE_READWRITE, ERROR_NOT_ENOUGH_MEMORY);
    refuse_allocation(gone, page, MEM_COMMIT, PAGE_READWRITE, ERROR_INVALID_ADDRESS);
    refuse_allocation(base + 3 * 65536, 2 * 65536, MEM_COMMIT, PAGE_READWRITE, ERROR_INVALID_ADDRESS);

    refuse_free(base, page, MEM_RELEASE, ERROR_INVALID_PARAMETER);
    refuse_free(base, 0, MEM_RELEASE | MEM_DECOMMIT, ERROR_INVALID_PARAMETER);
    refuse_free(base, 0, 0, ERROR_INVALID_PARAMETER);
    refuse_free(base + page, 0, MEM_RELEASE, ERROR_INVALID_ADDRESS);
    refuse_free(base + page, 0, MEM_DECOMMIT, ERROR_INVALID_ADDRESS);
    refuse_free(base, 5 * 65536, MEM_DECOMMIT, ERROR_INVALID_PARAMETER);
    refuse_free(gone, 0, MEM_RELEASE, ERROR_INVALID_ADDRESS);
    refuse_free(NULL, 0, MEM_RELEASE, ERROR_INVALID_ADDRESS);

    refuse_protect(base, page, PAGE_READWRITE, ERROR_INVALID_ADDRESS); /* not committed */
    VirtualAlloc(base, page, MEM_COMMIT, PAGE_READWRITE);
    refuse_protect(base, 2 * page, PAGE_READWRITE, ERROR_INVALID_ADDRESS); /* not all of it */
    refuse_protect(base, page, 0, ERROR_INVALID_PARAMETER);
    refuse_protect(base, 0, PAGE_READWRITE, ERROR_INVALID_PARAMETER);
    refuse_protect(gone, page, PAGE_READWRITE, ERROR_INVALID_ADDRESS);
    assert_false(VirtualProtect(base, page, PAGE_READONLY, NULL));
    assert_int_equal(GetLastError(), ERROR_NOACCESS);
    assert_false(faults(base, true)); /* and nothing has changed */

    assert_int_equal(VirtualQuery(base, &information, sizeof(information) - 1), 0);
    assert_int_equal(GetLastError(), ERROR_BAD_LENGTH);
    assert_int_equal(VirtualQuery((PVOID)-1, &information, sizeof(information)), 0);
    assert_int_equal(GetLastError(), ERROR_INVALID_PARAMETER);
    VirtualFree(base, 0, MEM_RELEASE);
}

static char data[3 * 65536];
static const char constant[] = "constant";

/* Memory that did not come from VirtualAlloc. */
static void memory_of_the_host(void **state)
{
    MEMORY_BASIC_INFORMATION information;
    char *inside = (char *)(((ULONG_PTR)data + page - 1) / page * page);
    char *pages = mmap(NULL, 8 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    DWORD old = 0;

    (void)state;
    assert_int_equal(VirtualQuery(constant, &information, sizeof(information)), sizeof(information));
    assert_int_equal(information.State, MEM_COMMIT);
    assert_int_equal(information.Type, MEM_IMAGE);
    assert_true(information.AllocationBase < (PVOID)constant);
    assert_int_equal(VirtualQuery(&information, &information, sizeof(information)), sizeof(information));
    assert_int_equal(information.Protect, PAGE_READWRITE);

    inside[0] = 4;
    assert_true(VirtualProtect(inside, page, PAGE_READONLY, &old));
    assert_int_equal(old, PAGE_READWRITE);
    assert_true(faults(inside, true));
    assert_true(VirtualProtect(inside, page, old, &old));
    assert_int_equal(old, PAGE_READONLY);
    assert_false(faults(inside, true));

    assert_int_equal(VirtualQuery(pages + page, &information, sizeof(information)), sizeof(information));
    assert_int_equal(information.Type, MEM_PRIVATE);
    assert_int_equal(information.Protect, PAGE_READONLY);
    munmap(pages, 8 * page);
    refuse_protect(pages, page, PAGE_READWRITE, ERROR_INVALID_ADDRESS);
    assert_int_equal(VirtualQuery((PVOID)(16 * page), &information, sizeof(information)), sizeof(information));
    assert_int_equal(information.State, MEM_FREE);
    assert_int_equal(information.Protect, PAGE_NOACCESS);
    assert_null(information.AllocationBase);
}

/* The whole address space, from one region to the next. */
static void a_walk(void **state)
{
    char *base = VirtualAlloc(NULL, 2 * page, MEM_RESERVE, PAGE_READWRITE);
    MEMORY_BASIC_INFORMATION information;
    SYSTEM_INFO system;
    bool met = false;

    (void)state;
    GetSystemInfo(&system);
    for (ULONG_PTR next = 0; next < (ULONG_PTR)system.lpMaximumApplicationAddress;
         next = (ULONG_PTR)information.BaseAddress + information.RegionSize) {
        if (VirtualQuery((LPVOID)next, &information, sizeof(information)) == 0)
            break;
        assert_int_not_equal(information.RegionSize, 0);
        met = met || (information.AllocationBase == base && information.State == MEM_RESERVE);
    }
    assert_true(met);
    VirtualFree(base, 0, MEM_RELEASE);
}

static void reset_and_lock(void **state)
{
    char *base = VirtualAlloc(NULL, 4 * page, MEM_RESERVE, PAGE_READWRITE);

    (void)state;
    assert_false(VirtualLock(base, page));
    assert_int_equal(GetLastError(), ERROR_NOACCESS);
    refuse_allocation(base, page, MEM_RESET, PAGE_READWRITE, ERROR_INVALID_ADDRESS);
    VirtualAlloc(base, 2 * page, MEM_COMMIT, PAGE_READWRITE);
    assert_ptr_equal(VirtualAlloc(base, page, MEM_RESET, PAGE_READWRITE), base);
    base[0] = 1;
    assert_int_equal(base[0], 1);
    if (VirtualLock(base, 2 * page))
        assert_true(VirtualUnlock(base, 2 * page));
    else
        assert_int_equal(GetLastError(), ERROR_WORKING_SET_QUOTA);
    VirtualFree(base, 0, MEM_RELEASE);
}

static void by_process(void **state)
{
    HANDLE self = OpenProcess(PROCESS_ALL_ACCESS, FALSE, GetCurrentProcessId());
    MEMORY_BASIC_INFORMATION information;
    DWORD old;
    char *base = VirtualAllocEx(self, NULL, page, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);

    (void)state;
    assert_non_null(base);
    assert_true(VirtualProtectEx(GetCurrentProcess(), base, page, PAGE_READONLY, &old));
    assert_int_equal(VirtualQueryEx(self, base, &information, sizeof(information)), sizeof(information));
    assert_int_equal(information.Protect, PAGE_READONLY);
    assert_true(VirtualFreeEx(self, base, 0, MEM_RELEASE));
    CloseHandle(self);
    assert_null(VirtualAllocEx(self, NULL, page, MEM_RESERVE, PAGE_READWRITE));
    assert_int_equal(GetLastError(), ERROR_INVALID_HANDLE);
}

/* Threads with their own reservations, which never overlap those of other threads. */
static void change_spans(void *argument, unsigned index)
{
    unsigned long rounds = test_rounds(300);
    test_random random;

    (void)argument;
    random_seed(&random, index);
    for (unsigned long round = 0; round < rounds; round++) {
        char *base = VirtualAlloc(NULL, 32 * page, MEM_RESERVE, PAGE_READWRITE);
        bool committed[32] = {false};

        assert_non_null(base);
        for (int step = 0; step < 20; step++) {
            unsigned first = random_below(&random, 32);
            unsigned count = 1 + random_below(&random, 32 - first);
            bool commit = random_below(&random, 2) != 0;
            if (commit)
                assert_non_null(VirtualAlloc(base + first * page, count * page, MEM_COMMIT, PAGE_READWRITE));
            else
                assert_true(VirtualFree(base + first * page, count * page, MEM_DECOMMIT));
            for (unsigned number = first; number < first + count; number++)
                committed[number] = commit;
        }
        for (unsigned number = 0; number < 32; number++) {
            MEMORY_BASIC_INFORMATION information;
            unsigned run = 1;
            while (number + run < 32 && committed[number + run] == committed[number])
                run++;
            assert_int_equal(VirtualQuery(base + number * page, &information, sizeof(information)),
                             sizeof(information));
            assert_int_equal(information.State == MEM_COMMIT, committed[number]);
            assert_int_equal(information.RegionSize, run * page);
        }
        assert_true(VirtualFree(base, 0, MEM_RELEASE));
    }
}

static void many_threads(void **state)
{
    (void)state;
    run_threads(4, 60, change_spans, NULL);
}

static int query_page(void **state)
{
    (void)state;
    page = (SIZE_T)sysconf(_SC_PAGESIZE);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reserve_commit_decommit_release),
        cmocka_unit_test(both_at_once),
        cmocka_unit_test(at_an_address),
        cmocka_unit_test(protections),
        cmocka_unit_test(documented_errors),
        cmocka_unit_test(memory_of_the_host),
        cmocka_unit_test(a_walk),
        cmocka_unit_test(reset_and_lock),
        cmocka_unit_test(by_process),
        cmocka_unit_test(many_threads),
    };

    return cmocka_run_group_tests_name("win32/virtual", tests, query_page, NULL);
}
