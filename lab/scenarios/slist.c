/* SLISTs: no entry is lost or popped twice, ABA, histories, entries that are freed, headers with arbitrary contents. */
#include <interlock/lab.h>

#include <ntifs.h>

#define ENTRIES 3

typedef struct item {
    SLIST_ENTRY entry;
    int content;
} DECLSPEC_ALIGN(16) item;

static SLIST_HEADER list DECLSPEC_ALIGN(16);
static item items[ENTRIES];
static int taken[ENTRIES];

static void not_zero(void)
{
    list.Alignment = 0x7777000700000007ull;
    list.Region = 0x1000;
    InitializeSListHead(&list);
}

static void take(PSLIST_ENTRY entry)
{
    item *found = CONTAINING_RECORD(entry, item, entry);

    if (entry != NULL) {
        LabAssert(found->content == (int)(found - items) + 1);
        taken[found - items] += 1;
    }
}

static void push(int index)
{
    items[index].content = index + 1;
    InterlockedPushEntrySList(&list, &items[index].entry);
}

static void push_first(void)
{
    push(0);
}

static void push_second(void)
{
    push(1);
}

static void push_third(void)
{
    push(2);
}

static void pop(void)
{
    take(InterlockedPopEntrySList(&list));
}

static void flush(void)
{
    PSLIST_ENTRY entry = InterlockedFlushSList(&list);

    while (entry != NULL) {
        PSLIST_ENTRY next = entry->Next;
        take(entry);
        entry = next;
    }
}

/* At the end each of the first entries was in the list once. */
static void is_complete(int count)
{
    LabAssert(QueryDepthSList(&list) + taken[0] + taken[1] + taken[2] == count);
    flush();
    for (int i = 0; i < count; i++)
        LabAssert(taken[i] == 1);
    LabAssert(QueryDepthSList(&list) == 0 && RtlFirstEntrySList(&list) == NULL);
}

static void both_are_there(void)
{
    is_complete(2);
}

static void all_are_there(void)
{
    is_complete(3);
}

static void one_of_each(void)
{
    not_zero();
    push(2);
}
LAB_SCENARIO(slist_two_pushers, .Setup = not_zero, .Threads = {push_first, push_second}, .Finish = both_are_there);
LAB_SCENARIO(slist_three_pushers, .Setup = not_zero, .Threads = {push_first, push_second, push_third},
             .Finish = all_are_there);
LAB_SCENARIO(slist_push_pop_flush, .Setup = one_of_each, .Threads = {push_first, push_second, pop, flush},
             .Finish = all_are_there);
LAB_SCENARIO(slist_push_flush, .Setup = one_of_each, .Threads = {push_first, push_second, flush},
             .Finish = all_are_there);

/* A thread that reads the first entry without popping it sees what was written into it before the push. */
static void look(void)
{
    PSLIST_ENTRY entry = RtlFirstEntrySList(&list);

    if (entry != NULL)
        LabAssert(CONTAINING_RECORD(entry, item, entry)->content == 1);
}
LAB_SCENARIO(slist_look, .Setup = not_zero, .Threads = {push_first, look});

/* An entry may be freed as soon as it was popped, while another pop may still be reading its link. */
static void allocated(void)
{
    not_zero();
    for (int i = 0; i < 2; i++)
        InterlockedPushEntrySList(&list, LabAllocate(sizeof(SLIST_ENTRY)));
}

static void pop_and_free(void)
{
    PSLIST_ENTRY entry = InterlockedPopEntrySList(&list);

    if (entry != NULL)
        LabFree(entry);
}

static void is_empty(void)
{
    LabAssert(QueryDepthSList(&list) == 0 && RtlFirstEntrySList(&list) == NULL);
}

static void allocated_one(void)
{
    not_zero();
    InterlockedPushEntrySList(&list, LabAllocate(sizeof(SLIST_ENTRY)));
}
LAB_SCENARIO(slist_pop_and_free_last, .Setup = allocated_one, .Threads = {pop_and_free, pop_and_free},
             .Finish = is_empty);
LAB_SCENARIO(slist_pop_and_free, .Setup = allocated, .Threads = {pop_and_free, pop_and_free}, .Finish = is_empty);

/* But freeing an entry that is in the list is a fault of the program, and is reported as one. */
static void free_listed(void)
{
    LabFree(RtlFirstEntrySList(&list));
    pop_and_free();
}
LAB_SCENARIO(slist_freed_entry, .Setup = allocated, .Threads = {free_listed}, .Expect = "freed memory");

/* A popped entry has one owner. */
static SLIST_ENTRY entries[3] DECLSPEC_ALIGN(16);

static void two_entries(void)
{
    InitializeSListHead(&list);
    for (int i = 0; i < 2; i++)
        InterlockedPushEntrySList(&list, &entries[i]);
}

static int owned[3];

static void own(PSLIST_ENTRY entry)
{
    if (entry != NULL)
        LabAssert(__atomic_fetch_add(&owned[entry - entries], 1, __ATOMIC_RELAXED) == 0);
}

static void owner(void)
{
    own(InterlockedPopEntrySList(&list));
}

/* What breaks a stack without a sequence number. */
static void juggler(void)
{
    PSLIST_ENTRY first = InterlockedPopEntrySList(&list);
    own(InterlockedPopEntrySList(&list));
    if (first != NULL)
        InterlockedPushEntrySList(&list, first);
}
LAB_SCENARIO(slist_pop_against_juggler, .Setup = two_entries, .Threads = {owner, juggler});
LAB_SCENARIO(slist_two_poppers, .Setup = two_entries, .Threads = {owner, owner, owner});

static void empty(void)
{
    InitializeSListHead(&list);
}

enum { PUSH, POP };

static void recorded_pusher(void)
{
    for (int i = 0; i < 2; i++) {
        unsigned operation = LabBegin(PUSH, (intptr_t)&entries[i]);
        InterlockedPushEntrySList(&list, &entries[i]);
        LabEnd(operation, 0);
    }
}

static void recorded_popper(void)
{
    for (int i = 0; i < 2; i++) {
        unsigned operation = LabBegin(POP, 0);
        LabEnd(operation, (intptr_t)InterlockedPopEntrySList(&list));
    }
}

static void is_a_stack(void)
{
    LabCheckLinearizable(&LabModelStack);
}
LAB_SCENARIO(slist_history, .Setup = empty, .Threads = {recorded_pusher, recorded_popper}, .Finish = is_a_stack);
