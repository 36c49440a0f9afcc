/* table.c: generic and balanced tables and splay links, against an array of flags. */
#include "support.h"

#include <interlock/rtl.h>

#include <stdlib.h>

#define KEYS 200

/* An element: its key orders it. */
typedef struct {
    int key;
    int payload;
} element;

static unsigned allocated;
static bool no_memory;
static CLONG last_size;

static void *allocate(CLONG size)
{
    last_size = size;
    if (no_memory)
        return NULL;
    allocated++;
    return malloc(size);
}

static RTL_GENERIC_COMPARE_RESULTS order(const element *first, const element *second)
{
    return first->key < second->key ? GenericLessThan : first->key > second->key ? GenericGreaterThan : GenericEqual;
}

static RTL_GENERIC_COMPARE_RESULTS generic_compare(RTL_GENERIC_TABLE *table, PVOID first, PVOID second)
{
    assert_ptr_equal(table->TableContext, &allocated);
    return order(first, second);
}

static PVOID generic_allocate(RTL_GENERIC_TABLE *table, CLONG size)
{
    (void)table;
    return allocate(size);
}

static VOID generic_free(RTL_GENERIC_TABLE *table, PVOID buffer)
{
    (void)table;
    allocated--;
    free(buffer);
}

static RTL_GENERIC_COMPARE_RESULTS avl_compare(RTL_AVL_TABLE *table, PVOID first, PVOID second)
{
    (void)table;
    return order(first, second);
}

static PVOID avl_allocate(RTL_AVL_TABLE *table, CLONG size)
{
    (void)table;
    return allocate(size);
}

static VOID avl_free(RTL_AVL_TABLE *table, PVOID buffer)
{
    (void)table;
    allocated--;
    free(buffer);
}

/* The links of the tree agree. */
static ULONG check_splay(PRTL_SPLAY_LINKS node, PRTL_SPLAY_LINKS parent)
{
    if (node == NULL)
        return 0;
    assert_ptr_equal(node->Parent, parent != NULL ? parent : node);
    return 1 + check_splay(node->LeftChild, node) + check_splay(node->RightChild, node);
}

/* The links and the balances of the tree agree. Returns its depth. */
static int check_avl(PRTL_BALANCED_LINKS node, PRTL_BALANCED_LINKS parent)
{
    int left, right;

    if (node == NULL)
        return 0;
    assert_ptr_equal(node->Parent, parent);
    left = check_avl(node->LeftChild, node);
    right = check_avl(node->RightChild, node);
    assert_int_equal(node->Balance, right - left);
    assert_true(node->Balance >= -1 && node->Balance <= 1);
    return 1 + (left > right ? left : right);
}

static void check_generic(PRTL_GENERIC_TABLE table, const bool *present, const int *inserted, ULONG count)
{
    PVOID key = NULL;
    element *e;

    assert_int_equal(RtlNumberGenericTableElements(table), count);
    assert_int_equal(RtlIsGenericTableEmpty(table), count == 0);
    assert_int_equal(check_splay(table->TableRoot, NULL), count);
    for (int i = 0; i < KEYS; i++) {
        if (present[i]) {
            e = RtlEnumerateGenericTableWithoutSplaying(table, &key);
            assert_non_null(e);
            assert_int_equal(e->key, i);
            assert_int_equal(e->payload, -i);
        }
    }
    assert_null(RtlEnumerateGenericTableWithoutSplaying(table, &key));
    for (ULONG i = 0; i < count; i++)
        assert_int_equal(((element *)RtlGetElementGenericTable(table, i))->key, inserted[i]);
    assert_null(RtlGetElementGenericTable(table, count));
}

static void generic_table(void **state)
{
    RTL_GENERIC_TABLE table;
    bool present[KEYS] = {false};
    int inserted[KEYS] = {0};
    ULONG count = 0;
    test_random random;

    (void)state;
    random_seed(&random, 3);
    RtlInitializeGenericTable(&table, generic_compare, generic_allocate, generic_free, &allocated);
    check_generic(&table, present, inserted, 0);
    assert_null(RtlEnumerateGenericTable(&table, TRUE));
    for (int step = 0; step < 4000; step++) {
        int key = (int)random_below(&random, KEYS);
        element e = {key, -key}, *found;
        BOOLEAN new = 7;
        PVOID node;
        TABLE_SEARCH_RESULT result;

        switch (random_below(&random, step < 2000 ? 3 : 4)) {
        case 0:
            found = RtlInsertElementGenericTable(&table, &e, sizeof(e), &new);
            assert_int_equal(last_size, sizeof(e) + 40);
            break;
        case 1:
            found = RtlLookupElementGenericTableFull(&table, &e, &node, &result);
            assert_int_equal(found != NULL, present[key]);
            assert_int_equal(result == TableFoundNode, present[key]);
            assert_int_equal(result == TableEmptyTree, count == 0);
            found = RtlInsertElementGenericTableFull(&table, &e, sizeof(e), step % 2 ? &new : NULL, node, result);
            if (step % 2 == 0)
                new = !present[key];
            break;
        case 2:
            found = RtlLookupElementGenericTable(&table, &e);
            assert_int_equal(found != NULL, present[key]);
            if (found != NULL)
                assert_int_equal(found->key, key);
            continue;
        default:
            assert_int_equal(RtlDeleteElementGenericTable(&table, &e), present[key]);
            for (ULONG i = 0, kept = 0; present[key] && i < count; i++) {
                if (inserted[i] != key)
                    inserted[kept++] = inserted[i];
            }
            count -= present[key];
            present[key] = false;
            check_generic(&table, present, inserted, count);
            continue;
        }
        assert_int_equal(found->key, key);
        assert_int_equal(new, !present[key]);
        if (!present[key])
            inserted[count++] = key;
        present[key] = true;
        check_generic(&table, present, inserted, count);
    }
    assert_true(count > 20);
    for (ULONG i = 0; i < 300; i++) { /* elements by number, in any order */
        ULONG n = random_below(&random, count);

        assert_int_equal(((element *)RtlGetElementGenericTable(&table, n))->key, inserted[n]);
    }
    for (int i = 0, first = 1; i < KEYS; i++) {
        if (present[i]) {
            assert_int_equal(((element *)RtlEnumerateGenericTable(&table, (BOOLEAN)first))->key, i);
            first = 0;
        }
    }
    assert_null(RtlEnumerateGenericTable(&table, FALSE));
    while (!RtlIsGenericTableEmpty(&table)) /* as drivers empty their tables */
        assert_true(RtlDeleteElementGenericTable(&table, RtlGetElementGenericTable(&table, 0)));
    assert_int_equal(allocated, 0);
}

static void without_memory(void **state)
{
    RTL_GENERIC_TABLE generic;
    RTL_AVL_TABLE avl;
    element e = {1, 2};
    BOOLEAN new = TRUE;

    (void)state;
    RtlInitializeGenericTable(&generic, generic_compare, generic_allocate, generic_free, &allocated);
    RtlInitializeGenericTableAvl(&avl, avl_compare, avl_allocate, avl_free, NULL);
    no_memory = true;
    assert_null(RtlInsertElementGenericTable(&generic, &e, sizeof(e), &new));
    assert_false(new);
    new = TRUE;
    assert_null(RtlInsertElementGenericTableAvl(&avl, &e, sizeof(e), &new));
    assert_false(new);
    no_memory = false;
    assert_true(RtlIsGenericTableEmpty(&generic));
    assert_true(RtlIsGenericTableEmptyAvl(&avl));
}

static void check_avl_table(PRTL_AVL_TABLE table, const bool *present, ULONG count)
{
    PVOID key = NULL;
    ULONG number = 0;
    element *e;

    assert_int_equal(RtlNumberGenericTableElementsAvl(table), count);
    assert_int_equal(RtlIsGenericTableEmptyAvl(table), count == 0);
    assert_int_equal(check_avl(table->BalancedRoot.RightChild, &table->BalancedRoot), table->DepthOfTree);
    for (int i = 0; i < KEYS; i++) {
        if (present[i]) {
            e = RtlEnumerateGenericTableWithoutSplayingAvl(table, &key);
            assert_non_null(e);
            assert_int_equal(e->key, i);
            assert_int_equal(e->payload, -i);
            assert_ptr_equal(RtlGetElementGenericTableAvl(table, number++), e);
        }
    }
    assert_null(RtlEnumerateGenericTableWithoutSplayingAvl(table, &key));
    assert_null(RtlGetElementGenericTableAvl(table, count));
}

static void balanced_table(void **state)
{
    RTL_AVL_TABLE table;
    bool present[KEYS] = {false};
    ULONG count = 0, deleted = 0;
    test_random random;

    (void)state;
    random_seed(&random, 5);
    RtlInitializeGenericTableAvl(&table, avl_compare, avl_allocate, avl_free, NULL);
    check_avl_table(&table, present, 0);
    for (int step = 0; step < 6000; step++) {
        /* Grows in order, then at random; shrinks to nothing at the end. */
        int key = step < KEYS / 2 ? step : (int)random_below(&random, KEYS);
        element e = {key, -key}, *found;
        BOOLEAN new = 7;
        PVOID node;
        TABLE_SEARCH_RESULT result;
        unsigned kind = step < KEYS / 2 ? 0 : random_below(&random, step < 3000 ? 4 : 6);

        if (kind == 0) {
            found = RtlInsertElementGenericTableAvl(&table, &e, sizeof(e), &new);
            if (new)
                assert_int_equal(last_size, sizeof(e) + 32);
        } else if (kind == 1) {
            found = RtlLookupElementGenericTableFullAvl(&table, &e, &node, &result);
            assert_int_equal(found != NULL, present[key]);
            found = RtlInsertElementGenericTableFullAvl(&table, &e, sizeof(e), &new, node, result);
        } else if (kind == 2) {
            found = RtlLookupElementGenericTableAvl(&table, &e);
            assert_int_equal(found != NULL, present[key]);
            continue;
        } else {
            if (present[key] && step % 2 != 0) {
                RtlLookupElementGenericTableFullAvl(&table, &e, &node, &result);
                RtlDeleteElementGenericTableAvlEx(&table, node);
            } else {
                assert_int_equal(RtlDeleteElementGenericTableAvl(&table, &e), present[key]);
            }
            count -= present[key];
            deleted += present[key];
            assert_int_equal(table.DeleteCount, deleted);
            present[key] = false;
            check_avl_table(&table, present, count);
            continue;
        }
        assert_int_equal(found->key, key);
        assert_int_equal(new, !present[key]);
        count += !present[key];
        present[key] = true;
        check_avl_table(&table, present, count);
    }
    while (!RtlIsGenericTableEmptyAvl(&table)) {
        element *first = RtlGetElementGenericTableAvl(&table, random_below(&random, count));

        present[first->key] = false;
        assert_true(RtlDeleteElementGenericTableAvl(&table, first));
        check_avl_table(&table, present, --count);
    }
    assert_int_equal(table.DepthOfTree, 0);
    assert_int_equal(allocated, 0);
}

static void fill(PRTL_AVL_TABLE table, int count)
{
    RtlInitializeGenericTableAvl(table, avl_compare, avl_allocate, avl_free, NULL);
    for (int i = 0; i < count; i++) {
        element e = {i * 10, i};

        RtlInsertElementGenericTableAvl(table, &e, sizeof(e), NULL);
    }
}

static void drain(PRTL_AVL_TABLE table)
{
    PVOID e;

    while ((e = RtlEnumerateGenericTableAvl(table, TRUE)) != NULL)
        RtlDeleteElementGenericTableAvl(table, e);
    assert_int_equal(allocated, 0);
}

/* The table remembers its position over changes. */
static void enumeration_with_changes(void **state)
{
    RTL_AVL_TABLE table;
    element *e, between = {15, 0};

    (void)state;
    fill(&table, 5);
    e = RtlEnumerateGenericTableAvl(&table, TRUE);
    assert_int_equal(e->key, 0);
    assert_true(RtlDeleteElementGenericTableAvl(&table, e)); /* the first one: the next one is first now */
    e = RtlEnumerateGenericTableAvl(&table, FALSE);
    assert_int_equal(e->key, 10);
    RtlInsertElementGenericTableAvl(&table, &between, sizeof(between), NULL);
    e = RtlEnumerateGenericTableAvl(&table, FALSE);
    assert_int_equal(e->key, 15);
    e = RtlEnumerateGenericTableAvl(&table, FALSE);
    assert_int_equal(e->key, 20);
    assert_true(RtlDeleteElementGenericTableAvl(&table, e));
    e = RtlEnumerateGenericTableAvl(&table, FALSE);
    assert_int_equal(e->key, 30);
    e = RtlEnumerateGenericTableAvl(&table, FALSE);
    assert_int_equal(e->key, 40);
    assert_null(RtlEnumerateGenericTableAvl(&table, FALSE));
    drain(&table);
}

static NTSTATUS multiples_of_twenty(RTL_AVL_TABLE *table, PVOID user, PVOID match)
{
    const element *e = user;

    (void)table;
    if (e->key >= *(int *)match)
        return STATUS_NO_MORE_MATCHES;
    return e->key % 20 == 0 ? STATUS_SUCCESS : STATUS_NO_MATCH;
}

static element *like_a_directory(PRTL_AVL_TABLE table, int limit, ULONG next, PVOID *restart, PULONG deletes, int key)
{
    element from = {key, 0};

    return RtlEnumerateGenericTableLikeADirectory(table, limit != 0 ? multiples_of_twenty : NULL, &limit, next, restart,
                                                  deletes, &from);
}

static void directory(void **state)
{
    RTL_AVL_TABLE table;
    PVOID restart = NULL;
    ULONG deletes = 0;

    (void)state;
    fill(&table, 10);
    /* From the key, or what follows it. */
    assert_int_equal(like_a_directory(&table, 0, FALSE, &restart, &deletes, 20)->key, 20);
    restart = NULL;
    assert_int_equal(like_a_directory(&table, 0, TRUE, &restart, &deletes, 20)->key, 30);
    restart = NULL;
    assert_int_equal(like_a_directory(&table, 0, TRUE, &restart, &deletes, 25)->key, 30);
    restart = NULL;
    assert_int_equal(like_a_directory(&table, 0, FALSE, &restart, &deletes, 35)->key, 40);
    /* From the position. */
    assert_int_equal(like_a_directory(&table, 0, TRUE, &restart, &deletes, -1)->key, 50);
    assert_int_equal(like_a_directory(&table, 0, FALSE, &restart, &deletes, -1)->key, 50);
    /* A deletion makes the position invalid: the key counts. */
    assert_true(RtlDeleteElementGenericTableAvl(&table, &(element){50, 0}));
    assert_int_equal(like_a_directory(&table, 0, TRUE, &restart, &deletes, 50)->key, 60);
    assert_int_equal(deletes, 1);
    /* With a match function. */
    restart = NULL;
    assert_int_equal(like_a_directory(&table, 70, FALSE, &restart, &deletes, 10)->key, 20);
    assert_int_equal(like_a_directory(&table, 70, TRUE, &restart, &deletes, 0)->key, 40);
    assert_int_equal(like_a_directory(&table, 70, TRUE, &restart, &deletes, 0)->key, 60);
    assert_null(like_a_directory(&table, 70, TRUE, &restart, &deletes, 0));
    restart = NULL;
    assert_null(like_a_directory(&table, 0, FALSE, &restart, &deletes, 91));
    drain(&table);
    restart = NULL;
    assert_null(like_a_directory(&table, 0, FALSE, &restart, &deletes, 0));
}

/* All keys of one ten are equal for this search: the first one of them is found. */
static RTL_GENERIC_COMPARE_RESULTS by_tens(RTL_AVL_TABLE *table, PVOID first, PVOID second)
{
    const element tens[] = {{((element *)first)->key / 10, 0}, {((element *)second)->key / 10, 0}};

    (void)table;
    return order(&tens[0], &tens[1]);
}

static void first_match(void **state)
{
    RTL_AVL_TABLE table;
    PVOID restart;
    element *e;

    (void)state;
    RtlInitializeGenericTableAvl(&table, avl_compare, avl_allocate, avl_free, NULL);
    for (int i = 0; i < 60; i++) {
        element each = {i, 0};

        RtlInsertElementGenericTableAvl(&table, &each, sizeof(each), NULL);
    }
    table.CompareRoutine = by_tens;
    for (int ten = 0; ten < 6; ten++) {
        e = RtlLookupFirstMatchingElementGenericTableAvl(&table, &(element){ten * 10 + 7, 0}, &restart);
        assert_int_equal(e->key, ten * 10);
        e = RtlEnumerateGenericTableWithoutSplayingAvl(&table, &restart);
        assert_int_equal(e->key, ten * 10 + 1);
    }
    assert_null(RtlLookupFirstMatchingElementGenericTableAvl(&table, &(element){70, 0}, &restart));
    table.CompareRoutine = avl_compare;
    drain(&table);
}

/* A tree of links alone, as cache managers and file systems keep. */
typedef struct {
    RTL_SPLAY_LINKS links;
    int key;
} node;

static PRTL_SPLAY_LINKS insert(PRTL_SPLAY_LINKS root, node *new)
{
    PRTL_SPLAY_LINKS at = root;

    RtlInitializeSplayLinks(&new->links);
    while (at != NULL) {
        if (new->key < ((node *)at)->key) {
            if (RtlLeftChild(at) == NULL) {
                RtlInsertAsLeftChild(at, &new->links);
                break;
            }
            at = RtlLeftChild(at);
        } else {
            if (RtlRightChild(at) == NULL) {
                RtlInsertAsRightChild(at, &new->links);
                break;
            }
            at = RtlRightChild(at);
        }
    }
    return RtlSplay(&new->links);
}

static void splay_links(void **state)
{
    node nodes[KEYS];
    bool present[KEYS] = {false};
    PRTL_SPLAY_LINKS root = NULL;
    test_random random;
    ULONG count = 0;

    (void)state;
    random_seed(&random, 9);
    for (int step = 0; step < 5000; step++) {
        int key = (int)random_below(&random, KEYS), next = key + 1, previous = key - 1;

        if (!present[key]) {
            nodes[key].key = key;
            root = insert(root, &nodes[key]);
            assert_ptr_equal(root, &nodes[key].links);
            present[key] = true;
            count++;
        } else if (step % 3 == 0) {
            root = RtlDelete(&nodes[key].links);
            present[key] = false;
            count--;
        } else if (step % 3 == 1) {
            RtlDeleteNoSplay(&nodes[key].links, &root);
            present[key] = false;
            count--;
        } else {
            root = RtlSplay(&nodes[key].links);
            while (next < KEYS && !present[next])
                next++;
            while (previous >= 0 && !present[previous])
                previous--;
            assert_ptr_equal(RtlRealSuccessor(root), next < KEYS ? &nodes[next].links : NULL);
            assert_ptr_equal(RtlRealPredecessor(root), previous >= 0 ? &nodes[previous].links : NULL);
            assert_ptr_equal(RtlSubtreeSuccessor(root), RtlRealSuccessor(root)); /* the root has everything below */
            assert_ptr_equal(RtlSubtreePredecessor(root), RtlRealPredecessor(root));
        }
        assert_int_equal(root == NULL, count == 0);
        assert_int_equal(check_splay(root, NULL), count);
        if (root != NULL) { /* in order, from any node */
            PRTL_SPLAY_LINKS at = root;
            int last = -1;
            ULONG seen = 0;

            while (RtlLeftChild(at) != NULL)
                at = RtlLeftChild(at);
            for (; at != NULL; at = RtlRealSuccessor(at), seen++) {
                assert_true(((node *)at)->key > last);
                last = ((node *)at)->key;
            }
            assert_int_equal(seen, count);
        }
    }
}

/* Paths of two components in two cases, with all of their prefixes, against a search of all. */
#define PATHS 12

static const WCHAR *const paths[PATHS] = {
    u"\\", u"\\a", u"\\A", u"\\a\\b", u"\\A\\b", u"\\a\\B", u"\\ab", u"\\a\\b\\c", u"\\x", u"\\x\\y\\z", u"\\X\\Y\\Z", u"\\b",
};

static unsigned wide_length(const WCHAR *text)
{
    unsigned length = 0;

    while (text[length] != 0)
        length++;
    return length;
}

static bool same(WCHAR a, WCHAR b, bool insensitive)
{
    return a == b || (insensitive && (a | 0x20) == (b | 0x20));
}

/* Is it a prefix? Returns its length, 0 if not. */
static unsigned model_prefix(const UNICODE_STRING *prefix, const UNICODE_STRING *name, ULONG index)
{
    unsigned length = prefix->Length / 2, i;

    if (prefix->Length > name->Length)
        return 0;
    for (i = 0; i < length; i++) {
        if (!same(prefix->Buffer[i], name->Buffer[i], i >= index))
            return 0;
    }
    return length == 1 || i == name->Length / 2u || name->Buffer[i] == '\\' ? length : 0;
}

static void prefix_table(void **state)
{
    UNICODE_PREFIX_TABLE table;
    UNICODE_PREFIX_TABLE_ENTRY entries[PATHS], *entry;
    UNICODE_STRING strings[PATHS];
    bool present[PATHS] = {false};
    test_random random;

    (void)state;
    random_seed(&random, 11);
    RtlInitializeUnicodePrefix(&table);
    for (int i = 0; i < PATHS; i++)
        strings[i] = (UNICODE_STRING){(USHORT)(2 * wide_length(paths[i])), (USHORT)(2 * wide_length(paths[i])), (PWSTR)paths[i]};
    assert_null(RtlNextUnicodePrefix(&table, TRUE));
    for (int step = 0; step < 3000; step++) {
        int n = (int)random_below(&random, PATHS), seen = 0, count = 0;
        ULONG index = random_below(&random, 8);
        unsigned longest = 0;
        UNICODE_STRING name = strings[random_below(&random, PATHS)];

        if (present[n]) {
            UNICODE_PREFIX_TABLE_ENTRY other;

            assert_false(RtlInsertUnicodePrefix(&table, &strings[n], &other));
            RtlRemoveUnicodePrefix(&table, &entries[n]);
        } else {
            assert_true(RtlInsertUnicodePrefix(&table, &strings[n], &entries[n]));
        }
        present[n] = !present[n];
        for (int i = 0; i < PATHS; i++) {
            unsigned length = present[i] ? model_prefix(&strings[i], &name, index) : 0;

            count += present[i];
            longest = length > longest ? length : longest;
        }
        entry = RtlFindUnicodePrefix(&table, &name, index);
        assert_int_equal(entry != NULL, longest != 0);
        if (entry != NULL) {
            assert_int_equal(entry->Prefix->Length, 2 * longest);
            assert_int_equal(model_prefix(entry->Prefix, &name, index), longest);
        }
        for (entry = RtlNextUnicodePrefix(&table, TRUE); entry != NULL; entry = RtlNextUnicodePrefix(&table, FALSE)) {
            assert_true(present[entry - entries]);
            seen++;
        }
        assert_int_equal(seen, count);
    }
}

/* An entry that was returned may be removed; the enumeration continues behind it. */
static void prefixes_removed_on_the_way(void **state)
{
    UNICODE_PREFIX_TABLE table;
    UNICODE_PREFIX_TABLE_ENTRY entries[PATHS], *entry;
    UNICODE_STRING strings[PATHS];
    unsigned seen = 0;

    (void)state;
    RtlInitializeUnicodePrefix(&table);
    for (int i = 0; i < PATHS; i++) {
        strings[i] = (UNICODE_STRING){(USHORT)(2 * wide_length(paths[i])), (USHORT)(2 * wide_length(paths[i])), (PWSTR)paths[i]};
        assert_true(RtlInsertUnicodePrefix(&table, &strings[i], &entries[i]));
    }
    for (entry = RtlNextUnicodePrefix(&table, TRUE); entry != NULL; entry = RtlNextUnicodePrefix(&table, FALSE)) {
        assert_false(seen & 1u << (entry - entries));
        seen |= 1u << (entry - entries);
        if ((entry - entries) % 3 != 2)
            RtlRemoveUnicodePrefix(&table, entry);
    }
    assert_int_equal(seen, (1u << PATHS) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generic_table),            cmocka_unit_test(without_memory), cmocka_unit_test(balanced_table),
        cmocka_unit_test(enumeration_with_changes), cmocka_unit_test(directory),      cmocka_unit_test(first_match),
        cmocka_unit_test(splay_links),              cmocka_unit_test(prefix_table),
        cmocka_unit_test(prefixes_removed_on_the_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
