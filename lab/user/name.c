/* Names: creating, opening and closing at the same time. There is one object of a name, or none. */
#include <interlock/lab.h>

#include <ntifs.h>

#include <interlock/nt.h>

static WCHAR text[] = u"\\BaseNamedObjects\\lab";
static UNICODE_STRING name = {.Length = sizeof(text) - sizeof(WCHAR), .MaximumLength = sizeof(text), .Buffer = text};
static int created, existed, absent;
static HANDLE held;

static NTSTATUS create(PHANDLE handle, ULONG attributes)
{
    OBJECT_ATTRIBUTES object = {.Length = sizeof(object), .ObjectName = &name, .Attributes = attributes};
    return NtCreateEvent(handle, EVENT_ALL_ACCESS, &object, NotificationEvent, FALSE);
}

static NTSTATUS open(PHANDLE handle)
{
    OBJECT_ATTRIBUTES object = {.Length = sizeof(object), .ObjectName = &name, .Attributes = OBJ_CASE_INSENSITIVE};
    return NtOpenEvent(handle, EVENT_ALL_ACCESS, &object);
}

static void count(int *what)
{
    __atomic_fetch_add(what, 1, __ATOMIC_RELAXED);
}

/* The directory and a handle table are allocated for the first handle and stay. */
static void setup(void)
{
    HANDLE handle;
    LabAssert(create(&handle, 0) == STATUS_SUCCESS);
    NtClose(handle);
}

/* None closes: one has created it, the others have opened it. */
static void creator(void)
{
    HANDLE handle, again;
    NTSTATUS status = create(&handle, OBJ_OPENIF);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_OBJECT_NAME_EXISTS);
    count(status == STATUS_SUCCESS ? &created : &existed);
    LabAssert(open(&again) == STATUS_SUCCESS);
}

static void sole_creator(void)
{
    HANDLE handle;
    NTSTATUS status = create(&handle, 0);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_OBJECT_NAME_COLLISION);
    count(status == STATUS_SUCCESS ? &created : &existed);
}

static void opener(void)
{
    HANDLE handle;
    NTSTATUS status = open(&handle);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_OBJECT_NAME_NOT_FOUND);
    if (status == STATUS_SUCCESS)
        LabAssert(NtClose(handle) == STATUS_SUCCESS);
    else
        count(&absent);
}

static void one_of_two(void)
{
    LabAssert(created == 1 && existed == 1);
}

static void created_once(void)
{
    LabAssert(created == 1);
}
LAB_SCENARIO(name_two_creators, .Setup = setup, .Threads = {creator, creator}, .Finish = one_of_two);
LAB_SCENARIO(name_collision, .Setup = setup, .Threads = {creator, sole_creator}, .Finish = created_once);
LAB_SCENARIO(name_create_open, .Setup = setup, .Threads = {creator, opener}, .Finish = created_once);

/* The last handle is closed while another thread opens or creates by name: it gets the old object or creates a new one.
   */
static void close_held(void)
{
    LabAssert(NtClose(held) == STATUS_SUCCESS);
}

static void create_and_close(void)
{
    HANDLE handle, again;
    NTSTATUS status = create(&handle, OBJ_OPENIF);
    LabAssert(status == STATUS_SUCCESS || status == STATUS_OBJECT_NAME_EXISTS);
    LabAssert(open(&again) == STATUS_SUCCESS); /* the name stays while a handle is open */
    LabAssert(NtClose(handle) == STATUS_SUCCESS);
    LabAssert(NtClose(again) == STATUS_SUCCESS);
}

static void setup_held(void)
{
    LabAssert(create(&held, 0) == STATUS_SUCCESS);
}

static void name_is_gone(void)
{
    HANDLE handle;
    LabAssert(open(&handle) == STATUS_OBJECT_NAME_NOT_FOUND);
}
LAB_SCENARIO(name_close_open, .Setup = setup_held, .Threads = {close_held, opener}, .Finish = name_is_gone);
LAB_SCENARIO(name_close_create, .Setup = setup_held, .Threads = {close_held, create_and_close}, .Finish = name_is_gone);
LAB_SCENARIO(name_close_create_open, .Setup = setup_held, .Threads = {close_held, create_and_close, opener},
             .Finish = name_is_gone);

static void create_and_close_spawned(void *unused)
{
    UNREFERENCED_PARAMETER(unused);
    create_and_close();
}

/* All in this schedule, so leaks are reported. */
static void creators(void)
{
    unsigned first = LabSpawn(create_and_close_spawned, NULL);
    unsigned second = LabSpawn(create_and_close_spawned, NULL);
    LabJoin(first);
    LabJoin(second);
}
LAB_SCENARIO(name_leaves_nothing, .Setup = setup, .Threads = {creators}, .Finish = name_is_gone,
             .Flags = LAB_CHECK_LEAKS);
