/* Fast references: none is lost or gained, and an object stays while a reference to it is held. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>

#include "ob/obp.h"

enum { ACQUIRE, RELEASE, SWAP, COMPARE_SWAP };

/* The word alone, against the model. Object 1 is the first. */
static char objects[3][16] DECLSPEC_ALIGN(16);
static EX_FAST_REF reference;

static void point_to_first(void)
{
    ExInitializeFastReference(&reference, objects[1]);
}

static intptr_t value_of(EX_FAST_REF found)
{
    char *object = ExGetObjectFastReference(found);
    intptr_t number = object != NULL ? (object - objects[0]) / 16 : 0;
    return number * 16 + (intptr_t)ExGetCountFastReference(found);
}

static intptr_t record_acquire(void)
{
    unsigned operation = LabBegin(ACQUIRE, 0);
    intptr_t value = value_of(ExAcquireFastReference(&reference));
    LabEnd(operation, value);
    return value;
}

static void record_release(intptr_t object)
{
    unsigned operation = LabBegin(RELEASE, object);
    LabEnd(operation, ExReleaseFastReference(&reference, objects[object]));
}

static void recorded_user(void)
{
    intptr_t value = record_acquire();
    if (value % 16 != 0)
        record_release(value / 16);
}

static void recorded_swapper(void)
{
    unsigned operation = LabBegin(SWAP, 2);
    LabEnd(operation, value_of(ExSwapFastReference(&reference, objects[2])));
}

static void recorded_comparer(void)
{
    unsigned operation = LabBegin(COMPARE_SWAP, 2 * 16 + 1);
    LabEnd(operation, value_of(ExCompareSwapFastReference(&reference, objects[1], objects[2])));
    operation = LabBegin(COMPARE_SWAP, 1 * 16 + 0);
    LabEnd(operation, value_of(ExCompareSwapFastReference(&reference, NULL, objects[1])));
}

static void is_a_reference(void)
{
    LabCheckLinearizable(&LabModelFastReference);
}
LAB_SCENARIO(fast_reference_history, .Setup = point_to_first,
             .Threads = {recorded_user, recorded_swapper, recorded_user}, .Finish = is_a_reference);
LAB_SCENARIO(fast_reference_compare, .Setup = point_to_first,
             .Threads = {recorded_user, recorded_swapper, recorded_comparer}, .Finish = is_a_reference);

/* An object that is freed with its last reference. Few are cached in the word, so the thread that takes the next one
   adds more. */
static EX_PUSH_LOCK lock;
static PKEVENT first, second;
static int prepared;
static ULONG before;

static PKEVENT create_event(void)
{
    HANDLE handle;
    PVOID event;
    LabAssert(NtCreateEvent(&handle, EVENT_ALL_ACCESS, NULL, NotificationEvent, FALSE) == STATUS_SUCCESS);
    LabAssert(ObReferenceObjectByHandle(handle, 0, *ExEventObjectType, KernelMode, &event, NULL) == STATUS_SUCCESS);
    NtClose(handle);
    return event;
}

static void point_to_event(void)
{
    first = create_event();
    second = create_event();
    before = (*ExEventObjectType)->TotalNumberOfObjects;
    ExInitializePushLock(&lock);
    ObInitializeFastReference(&reference, first);
    for (int i = 0; i < 11; i++) {
        ExAcquireFastReference(&reference);
        ObDereferenceObject(first);
    }
}

static PKEVENT take(void)
{
    PKEVENT event = ObFastReferenceObject(&reference);
    if (event == NULL) {
        KeEnterCriticalRegion();
        ExAcquirePushLockShared(&lock);
        event = ObFastReferenceObjectLocked(&reference);
        ExReleasePushLockShared(&lock);
        KeLeaveCriticalRegion();
    }
    return event;
}

static void object_user(void)
{
    PKEVENT event = take();
    LabAssert(event == first || (event == second && prepared == 1));
    KeSetEvent(event, IO_NO_INCREMENT, FALSE);
    ObFastDereferenceObject(&reference, event);
}

static void replacer(void)
{
    prepared = 1;
    PKEVENT old = ObFastReplaceObject(&reference, second);
    LabAssert(old == first);
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&lock);
    ExReleasePushLockExclusive(&lock);
    KeLeaveCriticalRegion();
    ObDereferenceObject(old);
}

/* The first was freed; the second has the cached references and that of the word itself. */
static void adds_up(void)
{
    EX_FAST_REF now = {.Value = reference.Value};
    LabAssert(ExGetObjectFastReference(now) == second);
    LabAssert(ObpHeaderOf(second)->PointerCount == (LONG_PTR)ExGetCountFastReference(now) + 1);
    LabAssert((*ExEventObjectType)->TotalNumberOfObjects == before - 1);
}
LAB_SCENARIO(fast_reference_replace, .Setup = point_to_event, .Threads = {object_user, replacer}, .Finish = adds_up);
LAB_SCENARIO(fast_reference_replace_c11, .Setup = point_to_event, .Threads = {object_user, replacer}, .Finish = adds_up,
             .Model = "c11", .StaleReads = 2);
LAB_SCENARIO(fast_reference_refill, .Setup = point_to_event, .Threads = {object_user, object_user, replacer},
             .Finish = adds_up);

/* A thread that gets an object sees what was written into it before it was published. */
typedef struct object {
    int content;
} DECLSPEC_ALIGN(16) object;

static object left, right;

static void point_to_left(void)
{
    left.content = 1;
    ExInitializeFastReference(&reference, &left);
}

static void replace(void)
{
    right.content = 2;
    ExSwapFastReference(&reference, &right);
}

static void replace_if(void)
{
    right.content = 2;
    ExCompareSwapFastReference(&reference, &right, &left);
}

static void content_user(void)
{
    object *found = ExGetObjectFastReference(ExAcquireFastReference(&reference));

    if (found != NULL)
        LabAssert(found->content == (found == &left ? 1 : 2));
}
LAB_SCENARIO(fast_reference_initialized, .Threads = {point_to_left, content_user});
LAB_SCENARIO(fast_reference_replaced, .Setup = point_to_left, .Threads = {replace, content_user});
LAB_SCENARIO(fast_reference_compared, .Setup = point_to_left, .Threads = {replace_if, content_user, content_user});
