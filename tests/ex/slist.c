/* Interlocked singly linked lists. Numbers are those of src/ex/list.c. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hal/halp.h"
#include "support.h"

#include <interlock/ex.h>
#include <interlock/exception.h>

#define PAGE 4096
#define MANY_POPS 5000

static ULONG64 sequence_of(const SLIST_HEADER *list)
{
    return list->HeaderX64.Sequence;
}

static PSLIST_ENTRY first_of(const SLIST_HEADER *list)
{
    return (PSLIST_ENTRY)((ULONG_PTR)list->HeaderX64.NextEntry << 4);
}

static void last_in_first_out(void **state)
{
    static SLIST_HEADER list; /* zeroed and nothing else */
    SLIST_ENTRY entries[3];

    (void)state;
    assert_null(InterlockedPopEntrySList(&list));
    assert_null(RtlFirstEntrySList(&list));
    assert_null(InterlockedPushEntrySList(&list, &entries[0]));
    assert_ptr_equal(InterlockedPushEntrySList(&list, &entries[1]), &entries[0]);
    assert_ptr_equal(InterlockedPushEntrySList(&list, &entries[2]), &entries[1]);
    assert_ptr_equal(RtlFirstEntrySList(&list), &entries[2]);
    assert_int_equal(QueryDepthSList(&list), 3);
    for (int i = 3; i-- != 0;) {
        assert_ptr_equal(InterlockedPopEntrySList(&list), &entries[i]);
        assert_int_equal(QueryDepthSList(&list), i);
    }
    assert_null(InterlockedPopEntrySList(&list));
}

static void flush_takes_all(void **state)
{
    SLIST_HEADER list;
    SLIST_ENTRY entries[2];

    (void)state;
    InitializeSListHead(&list);
    assert_null(InterlockedFlushSList(&list));
    InterlockedPushEntrySList(&list, &entries[0]);
    InterlockedPushEntrySList(&list, &entries[1]);
    assert_ptr_equal(InterlockedFlushSList(&list), &entries[1]);
    assert_ptr_equal(entries[1].Next, &entries[0]);
    assert_null(entries[0].Next);
    assert_int_equal(QueryDepthSList(&list), 0);
    assert_null(InterlockedFlushSList(&list));
}

static void a_list_is_pushed_in_its_order(void **state)
{
    SLIST_HEADER list;
    SLIST_ENTRY entries[5];

    (void)state;
    InitializeSListHead(&list);
    entries[1].Next = &entries[2];
    entries[2].Next = &entries[3];
    InterlockedPushEntrySList(&list, &entries[0]);
    assert_ptr_equal(InterlockedPushListSListEx(&list, &entries[1], &entries[3], 3), &entries[0]);
    assert_int_equal(QueryDepthSList(&list), 4);
    assert_int_equal(InterlockedPopEntrySList(&list) - entries, 1);
    assert_int_equal(InterlockedPopEntrySList(&list) - entries, 2);
    assert_int_equal(InterlockedPopEntrySList(&list) - entries, 3);
    assert_int_equal(InterlockedPopEntrySList(&list) - entries, 0);
    assert_null(InterlockedPushListSList(&list, &entries[4], &entries[4], 1));
    assert_ptr_equal(InterlockedPopEntrySList(&list), &entries[4]);
}

/* The layout: the first entry's address, the sequence that pushes count up, the depth. */
static void header_bits(void **state)
{
    SLIST_HEADER list;
    SLIST_ENTRY entries[2];

    (void)state;
    memset(&list, 0xa5, sizeof(list));
    InitializeSListHead(&list);
    assert_int_equal(list.Alignment, 0);
    assert_int_equal(list.Region, 0);
    InterlockedPushEntrySList(&list, &entries[0]);
    assert_int_equal(list.Alignment, 0x10001);
    assert_int_equal(list.Region, (ULONG_PTR)&entries[0]);
    InterlockedPushEntrySList(&list, &entries[1]);
    assert_int_equal(list.HeaderX64.Depth, 2);
    assert_int_equal(sequence_of(&list), 2);
    assert_int_equal(list.HeaderX64.Reserved, 0);
    assert_ptr_equal(first_of(&list), &entries[1]);
    InterlockedPopEntrySList(&list);
    assert_int_equal(list.HeaderX64.Depth, 1);
    assert_int_equal(sequence_of(&list), 2);
    InterlockedFlushSList(&list);
    assert_int_equal(list.HeaderX64.Depth, 0);
    assert_int_equal(sequence_of(&list), 2);
    InterlockedPushListSListEx(&list, &entries[0], &entries[0], 1);
    assert_int_equal(sequence_of(&list), 3);
}

/* 1: a header that has seen a push differs, even if its contents look the same. */
static void a_push_changes_the_header_for_good(void **state)
{
    SLIST_HEADER list, before;
    SLIST_ENTRY a, b;

    (void)state;
    InitializeSListHead(&list);
    InterlockedPushEntrySList(&list, &b);
    InterlockedPushEntrySList(&list, &a);
    before = list;
    assert_ptr_equal(InterlockedPopEntrySList(&list), &a);
    assert_ptr_equal(InterlockedPopEntrySList(&list), &b);
    InterlockedPushEntrySList(&list, &a);
    assert_ptr_equal(first_of(&list), first_of(&before));
    assert_true(sequence_of(&list) != sequence_of(&before));
    /* What a pop that was delayed since then would do now: b is no longer in the list. */
    assert_false(InterlockedCompareExchange128((LONG64 *)&list, (LONG64)(ULONG_PTR)&b,
                                               (LONG64)(before.Alignment - 1), (LONG64 *)&before));
    assert_ptr_equal(InterlockedPopEntrySList(&list), &a);
    assert_null(InterlockedPopEntrySList(&list));
}

/* 5: the depth is modulo 65536, and its overflow does not reach the sequence. */
static void depth_wraps(void **state)
{
    SLIST_HEADER list;
    SLIST_ENTRY a, b;

    (void)state;
    InitializeSListHead(&list);
    InterlockedPushListSListEx(&list, &a, &a, 0xffff);
    assert_int_equal(QueryDepthSList(&list), 0xffff);
    InterlockedPushEntrySList(&list, &b);
    assert_int_equal(QueryDepthSList(&list), 0);
    assert_int_equal(sequence_of(&list), 2);
    InterlockedPopEntrySList(&list);
    assert_int_equal(QueryDepthSList(&list), 0xffff);
    assert_int_equal(sequence_of(&list), 2);
    InterlockedPushListSListEx(&list, &b, &b, 0x10002);
    assert_int_equal(QueryDepthSList(&list), 1);
    assert_int_equal(sequence_of(&list), 3);

    list.HeaderX64.Sequence = 0xffffffffffff;
    InterlockedPushListSListEx(&list, &b, &b, 0);
    assert_int_equal(sequence_of(&list), 0);
    assert_int_equal(QueryDepthSList(&list), 1);
    assert_ptr_equal(first_of(&list), &b);
}

static void other_names(void **state)
{
    KSPIN_LOCK held = 1;
    SLIST_HEADER list;
    SLIST_ENTRY entry;

    (void)state;
    ExInitializeSListHead(&list);
    assert_null(ExInterlockedPushEntrySList(&list, &entry, &held));
    assert_int_equal(ExQueryDepthSList(&list), 1);
    assert_ptr_equal(ExInterlockedPopEntrySList(&list, &held), &entry);
    assert_null((ExInterlockedPushEntrySList)(&list, &entry, &held));
    assert_ptr_equal((ExInterlockedPopEntrySList)(&list, &held), &entry);
    assert_null(ExInterlockedFlushSList(&list));
    RtlInitializeSListHead(&list);
    assert_null(RtlInterlockedPushEntrySList(&list, &entry));
    assert_int_equal(RtlQueryDepthSList(&list), 1);
    assert_ptr_equal(RtlInterlockedFlushSList(&list), &entry);
    assert_null(RtlInterlockedPushListSListEx(&list, &entry, &entry, 1));
    assert_ptr_equal(RtlInterlockedPopEntrySList(&list), &entry);
    assert_int_equal(held, 1);
}

/* Misaligned headers and entries. */

static SLIST_HEADER aligned[2];
static SLIST_ENTRY *entry_at(unsigned offset) { return (SLIST_ENTRY *)((char *)aligned + offset); }
static SLIST_HEADER *list_at(unsigned offset) { return (SLIST_HEADER *)((char *)aligned + offset); }

static void initialize(unsigned offset) { InitializeSListHead(list_at(offset)); }
static void push_to(unsigned offset) { InterlockedPushEntrySList(list_at(offset), &(SLIST_ENTRY){NULL}); }
static void push(unsigned offset) { InterlockedPushEntrySList(&aligned[0], entry_at(16 + offset)); }
static void push_list_to(unsigned offset)
{
    SLIST_ENTRY entry;

    InterlockedPushListSListEx(list_at(offset), &entry, &entry, 1);
}
static void push_list(unsigned offset)
{
    InterlockedPushListSListEx(&aligned[0], entry_at(16 + offset), &(SLIST_ENTRY){NULL}, 1);
}
static void pop(unsigned offset) { InterlockedPopEntrySList(list_at(offset)); }
static void flush(unsigned offset) { InterlockedFlushSList(list_at(offset)); }

static NTSTATUS raised_by(void (*operation)(unsigned), unsigned offset)
{
    volatile NTSTATUS raised = STATUS_SUCCESS;

    __try {
        operation(offset);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        raised = GetExceptionCode();
    }
    return raised;
}

static void misalignment(void **state)
{
    static void (*const operations[])(unsigned) = {initialize, push_to, push, push_list_to, push_list, pop, flush};
    static const unsigned offsets[] = {1, 4, 8, 15};

    (void)state;
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
        for (size_t k = 0; k < sizeof(offsets) / sizeof(offsets[0]); k++) {
            InitializeSListHead(&aligned[0]);
            assert_int_equal(raised_by(operations[i], offsets[k]), STATUS_DATATYPE_MISALIGNMENT);
            assert_null(RtlFirstEntrySList(&aligned[0]));
        }
}

/* 4: an entry that the program unmapped while it was in the list is the program's fault, before and after a check of
 * the handlers. Here the program repairs it. */

static SLIST_HEADER faulting;
static SLIST_ENTRY *broken;
static volatile int faults;

static void repair(int number, siginfo_t *information, void *context)
{
    (void)number;
    (void)context;
    if (information->si_addr != broken)
        _exit(3);
    faults++;
    if (faults == 2 && InterlockedFlushSList(&faulting) != broken)
        _exit(4);
    mprotect(broken, PAGE, PROT_READ | PROT_WRITE);
}

static void install_repair(void)
{
    struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};

    if (sigaction(SIGSEGV, &action, NULL) != 0)
        _exit(5);
}

static int pop_broken(void)
{
    SLIST_ENTRY *popped;

    InterlockedPushEntrySList(&faulting, broken);
    mprotect(broken, PAGE, PROT_NONE);
    popped = InterlockedPopEntrySList(&faulting);
    return popped == NULL ? 0 : popped == broken ? 1 : -1;
}

static void pop_in_child(int late)
{
    SLIST_ENTRY other;

    if (late) {
        InterlockedPushEntrySList(&faulting, &other);
        InterlockedPopEntrySList(&faulting);
    }
    install_repair();
    for (int i = 0; i < MANY_POPS; i++) {
        InterlockedPushEntrySList(&faulting, &other);
        InterlockedPopEntrySList(&faulting);
    }
    /* The first time the entry is mapped again and popped, the second time removed by the handler. */
    if (pop_broken() != 1 || faults != 1)
        _exit(6);
    if (pop_broken() != 0 || faults != 2)
        _exit(7);
    if (HalpFailedReads < 2)
        _exit(8);
    _exit(0);
}

static void unmapped_entry(void **state)
{
    (void)state;
    broken = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(broken != MAP_FAILED);
    for (int late = 0; late < 2; late++) {
        pid_t child;
        int status;

        fflush(NULL);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(30 * test_slowdown());
            pop_in_child(late);
        }
        while (waitpid(child, &status, 0) < 0 && errno == EINTR)
            continue;
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_in_first_out),
        cmocka_unit_test(flush_takes_all),
        cmocka_unit_test(a_list_is_pushed_in_its_order),
        cmocka_unit_test(header_bits),
        cmocka_unit_test(a_push_changes_the_header_for_good),
        cmocka_unit_test(depth_wraps),
        cmocka_unit_test(other_names),
        cmocka_unit_test(misalignment),
        cmocka_unit_test(unmapped_entry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
