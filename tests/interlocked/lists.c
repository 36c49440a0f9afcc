/* Doubly and singly linked lists. lists-unchecked.c runs this again without the verification of
 * links. */
#include "support.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <interlock/ntdef.h>

#ifdef NO_KERNEL_LIST_ENTRY_CHECKS
#define CHECKED 0
#define NAME    "interlocked/lists-unchecked"
#else
#define CHECKED 1
#define NAME    "interlocked/lists"
#endif

#define ITEMS 8

struct item {
    int number;
    LIST_ENTRY links;
};

struct fixture {
    LIST_ENTRY head, other;
    struct item items[ITEMS];
};

static void setup(struct fixture *f)
{
    InitializeListHead(&f->head);
    InitializeListHead(&f->other);
    for (int i = 0; i < ITEMS; i++)
        f->items[i].number = i;
}

/* Walks forward and backward; digits are the numbers of the items in order. */
static void expect_list(LIST_ENTRY *head, const char *digits)
{
    LIST_ENTRY *entry = head->Flink, *previous = head;

    for (; *digits; digits++, previous = entry, entry = entry->Flink) {
        assert_ptr_not_equal(entry, head);
        assert_ptr_equal(entry->Blink, previous);
        assert_int_equal(CONTAINING_RECORD(entry, struct item, links)->number, *digits - '0');
    }
    assert_ptr_equal(entry, head);
    assert_ptr_equal(head->Blink, previous);
}

static void test_insert(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f);
    assert_true(IsListEmpty(&f.head));
    expect_list(&f.head, "");
    InsertTailList(&f.head, &f.items[1].links);
    assert_false(IsListEmpty(&f.head));
    InsertTailList(&f.head, &f.items[2].links);
    InsertHeadList(&f.head, &f.items[0].links);
    expect_list(&f.head, "012");
    InsertHeadList(&f.items[1].links, &f.items[5].links);
    InsertTailList(&f.items[1].links, &f.items[6].links);
    expect_list(&f.head, "06152");
}

static void test_remove(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f);
    for (int i = 0; i < 5; i++)
        InsertTailList(&f.head, &f.items[i].links);
    assert_false(RemoveEntryList(&f.items[2].links));
    expect_list(&f.head, "0134");
    assert_ptr_equal(RemoveHeadList(&f.head), &f.items[0].links);
    assert_ptr_equal(RemoveTailList(&f.head), &f.items[4].links);
    expect_list(&f.head, "13");
    assert_false(RemoveEntryList(&f.items[3].links));
    assert_true(RemoveEntryList(&f.items[1].links));
    expect_list(&f.head, "");
    assert_true(IsListEmpty(&f.head));
    assert_ptr_equal(RemoveHeadList(&f.head), &f.head);
    assert_ptr_equal(RemoveTailList(&f.head), &f.head);
    assert_true(RemoveEntryList(&f.head));
    assert_true(IsListEmpty(&f.head));
}

/* AppendTailList takes a list without a head: its first entry stands for it. */
static void test_append(void **state)
{
    struct fixture f;

    (void)state;
    setup(&f);
    for (int i = 0; i < 2; i++)
        InsertTailList(&f.head, &f.items[i].links);
    for (int i = 2; i < 5; i++)
        InsertTailList(&f.other, &f.items[i].links);
    RemoveEntryList(&f.other);
    AppendTailList(&f.head, &f.items[2].links);
    expect_list(&f.head, "01234");

    setup(&f);
    InitializeListHead(&f.items[7].links);
    AppendTailList(&f.head, &f.items[7].links);
    expect_list(&f.head, "7");
}

static void test_single(void **state)
{
    SINGLE_LIST_ENTRY head = {NULL}, entries[3];

    (void)state;
    assert_null(PopEntryList(&head));
    for (int i = 0; i < 3; i++)
        PushEntryList(&head, &entries[i]);
    for (int i = 2; i >= 0; i--)
        assert_ptr_equal(PopEntryList(&head), &entries[i]);
    assert_null(PopEntryList(&head));
    assert_null(head.Next);
}

/* A model: an array that is edited along with the list. */
static void test_against_model(void **state)
{
    struct fixture f;
    char order[ITEMS + 1] = "";
    size_t count = 0;
    test_random random;

    (void)state;
    setup(&f);
    random_seed(&random, 1);
    for (unsigned long n = test_rounds(20000); n > 0; n--) {
        const int number = (int)random_below(&random, ITEMS);
        char *const place = strchr(order, '0' + number);

        if (place == NULL) {
            if (random_below(&random, 2)) {
                InsertTailList(&f.head, &f.items[number].links);
                order[count++] = (char)('0' + number);
            } else {
                InsertHeadList(&f.head, &f.items[number].links);
                memmove(order + 1, order, count++);
                order[0] = (char)('0' + number);
            }
            order[count] = 0;
        } else {
            count--;
            if (place == order && random_below(&random, 2))
                assert_ptr_equal(RemoveHeadList(&f.head), &f.items[number].links);
            else if (place == order + count && random_below(&random, 2))
                assert_ptr_equal(RemoveTailList(&f.head), &f.items[number].links);
            else
                assert_int_equal(RemoveEntryList(&f.items[number].links), count == 0);
            memmove(place, place + 1, strlen(place));
        }
        expect_list(&f.head, order);
    }
}

/* Items 0 to 3 are on the list. Each breaks one link and makes one call that has to notice. */
static void remove_entry_flink(struct fixture *f)
{
    f->items[2].links.Blink = &f->other;
    RemoveEntryList(&f->items[1].links);
}

static void remove_entry_blink(struct fixture *f)
{
    f->items[0].links.Flink = &f->other;
    RemoveEntryList(&f->items[1].links);
}

static void remove_entry_twice(struct fixture *f)
{
    RemoveEntryList(&f->items[1].links);
    RemoveEntryList(&f->items[1].links);
}

static void remove_head_first(struct fixture *f)
{
    f->items[0].links.Blink = &f->other;
    RemoveHeadList(&f->head);
}

static void remove_head_second(struct fixture *f)
{
    f->items[1].links.Blink = &f->other;
    RemoveHeadList(&f->head);
}

static void remove_tail_last(struct fixture *f)
{
    f->items[3].links.Flink = &f->other;
    RemoveTailList(&f->head);
}

static void remove_tail_second(struct fixture *f)
{
    f->items[2].links.Flink = &f->other;
    RemoveTailList(&f->head);
}

static void insert_tail(struct fixture *f)
{
    f->items[3].links.Flink = &f->other;
    InsertTailList(&f->head, &f->items[7].links);
}

static void insert_head(struct fixture *f)
{
    f->items[0].links.Blink = &f->other;
    InsertHeadList(&f->head, &f->items[7].links);
}

static void append_after_tail(struct fixture *f)
{
    f->items[3].links.Flink = &f->other;
    InitializeListHead(&f->items[7].links);
    AppendTailList(&f->head, &f->items[7].links);
}

static void append_before_head(struct fixture *f)
{
    f->items[0].links.Blink = &f->other;
    InitializeListHead(&f->items[7].links);
    AppendTailList(&f->head, &f->items[7].links);
}

static void append_flink(struct fixture *f)
{
    InitializeListHead(&f->items[7].links);
    InsertTailList(&f->items[7].links, &f->items[6].links);
    f->items[6].links.Flink = &f->other;
    AppendTailList(&f->head, &f->items[7].links);
}

static void append_blink(struct fixture *f)
{
    InitializeListHead(&f->items[7].links);
    InsertTailList(&f->items[7].links, &f->items[6].links);
    f->items[6].links.Blink = &f->other;
    AppendTailList(&f->head, &f->items[7].links);
}

#define CORRUPTION(function)                                                                       \
    {                                                                                              \
#function, function                                                                        \
    }
static const struct {
    const char *name;
    void (*function)(struct fixture *f);
} corruptions[] = {
    CORRUPTION(remove_entry_flink), CORRUPTION(remove_entry_blink), CORRUPTION(remove_entry_twice),
    CORRUPTION(remove_head_first),  CORRUPTION(remove_head_second), CORRUPTION(remove_tail_last),
    CORRUPTION(remove_tail_second), CORRUPTION(insert_tail),        CORRUPTION(insert_head),
    CORRUPTION(append_after_tail),  CORRUPTION(append_before_head), CORRUPTION(append_flink),
    CORRUPTION(append_blink),
};

static void test_corruption(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAYSIZE(corruptions); i++) {
        const pid_t child = fork();
        int status;

        assert_true(child >= 0);
        if (child == 0) {
            const struct rlimit no_core = {0, 0};
            struct fixture f;

            setrlimit(RLIMIT_CORE, &no_core);
            signal(SIGABRT, SIG_DFL);
            if (freopen("/dev/null", "w", stderr) == NULL)
                _exit(2);
            setup(&f);
            for (int n = 0; n < 4; n++)
                InsertTailList(&f.head, &f.items[n].links);
            corruptions[i].function(&f);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (CHECKED ? !WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT
                    : !WIFEXITED(status) || WEXITSTATUS(status) != 0)
            fail_msg("%s ended with wait status %#x", corruptions[i].name, (unsigned)status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_insert),        cmocka_unit_test(test_remove),
        cmocka_unit_test(test_append),        cmocka_unit_test(test_single),
        cmocka_unit_test(test_against_model), cmocka_unit_test(test_corruption),
    };
    return cmocka_run_group_tests_name(NAME, tests, NULL, NULL);
}
