#include "surface.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "everything.h"

enum { ROOM = 2048 };

/* Memory that no later call of the same process gets: an object may still be in a list. */
static struct room {
    struct room *next;
    _Alignas(64) unsigned char bytes[ROOM + 64];
} * rooms;

static unsigned char *new_room(void)
{
    struct room *room = aligned_alloc(64, (sizeof(*room) + 63) / 64 * 64);

    if (room == NULL)
        abort();
    memset(room, 0, sizeof(*room));
    room->next = rooms;
    rooms = room;
    return room->bytes;
}

/* Routines. One serves for all: its result means false, success or "stop here". */

static uint64_t any_routine(void)
{
    return 0;
}

/* KeGenericCallDpc returns when all processors have said that they are done. */
static void called_dpc(PKDPC dpc, PVOID context, PVOID argument1, PVOID argument2)
{
    (void)dpc;
    (void)context;
    (void)argument2;
    KeSignalCallDpcDone(argument1);
}

/* Handles, created on first use. */

enum { EVENT, SEMAPHORE, MUTANT, TIMER, THREAD, PROCESS, PORT, KEYED, PAIR, DIRECTORY, LINK, PACKET, HANDLE_KINDS };

static const char *const handle_names[HANDLE_KINDS] = {"event",     "semaphore", "mutant", "timer",
                                                       "thread",    "process",   "port",   "keyedevent",
                                                       "eventpair", "directory", "link",   "packet"};
static HANDLE handles[HANDLE_KINDS];
static HANDLE closed;
static DWORD thread_id;

static DWORD sleeper(LPVOID argument)
{
    (void)argument;
    return 0;
}

static HANDLE make_link(void)
{
    static WCHAR text[] = u"\\BaseNamedObjects";
    UNICODE_STRING target = {sizeof(text) - sizeof(WCHAR), sizeof(text), text};
    OBJECT_ATTRIBUTES attributes;
    HANDLE handle = NULL;

    InitializeObjectAttributes(&attributes, NULL, 0, NULL, NULL);
    NtCreateSymbolicLinkObject(&handle, SYMBOLIC_LINK_ALL_ACCESS, &attributes, &target);
    return handle;
}

static HANDLE make_handle(unsigned kind)
{
    HANDLE handle = NULL;

    switch (kind) {
    case EVENT:
        return CreateEventW(NULL, TRUE, TRUE, NULL);
    case SEMAPHORE:
        return CreateSemaphoreW(NULL, 1000, 100000, NULL);
    case MUTANT:
        return CreateMutexW(NULL, TRUE, NULL);
    case TIMER:
        return CreateWaitableTimerW(NULL, TRUE, NULL);
    case THREAD:
        return CreateThread(NULL, 0, sleeper, NULL, CREATE_SUSPENDED, &thread_id);
    case PROCESS:
        return OpenProcess(PROCESS_ALL_ACCESS, FALSE, GetCurrentProcessId());
    case PORT:
        return CreateIoCompletionPort(INVALID_HANDLE_VALUE, NULL, 0, 1);
    case KEYED:
        NtCreateKeyedEvent(&handle, KEYEDEVENT_ALL_ACCESS, NULL, 0);
        return handle;
    case PAIR:
        NtCreateEventPair(&handle, EVENT_PAIR_ALL_ACCESS, NULL);
        return handle;
    case DIRECTORY:
        NtCreateDirectoryObject(&handle, DIRECTORY_ALL_ACCESS, NULL);
        return handle;
    case LINK:
        return make_link();
    default:
        NtCreateWaitCompletionPacket(&handle, MAXIMUM_ALLOWED, NULL);
        return handle;
    }
}

static bool is_semaphore(HANDLE handle)
{
    SEMAPHORE_BASIC_INFORMATION basic;

    return NT_SUCCESS(NtQuerySemaphore(handle, SemaphoreBasicInformation, &basic, sizeof(basic), NULL));
}

/* The call before may have taken what the object had. */
static void refresh(unsigned kind)
{
    if (kind == PORT) {
        PostQueuedCompletionStatus(handles[kind], 0, 0, NULL);
    } else if (kind == PAIR) {
        NtSetLowEventPair(handles[kind]);
        NtSetHighEventPair(handles[kind]);
    } else if ((kind == EVENT && !SetEvent(handles[kind])) || (kind == SEMAPHORE && !is_semaphore(handles[kind]))) {
        handles[kind] = make_handle(kind); /* something has closed it */
    }
}

static uint64_t handle_of(unsigned kind)
{
    if (handles[kind] == NULL)
        handles[kind] = make_handle(kind);
    if (handles[kind] == NULL) {
        fprintf(stderr, "no handle of a %s\n", handle_names[kind]);
        _Exit(3);
    }
    refresh(kind);
    return (uint64_t)(uintptr_t)handles[kind];
}

static unsigned handle_kind(const char *kind)
{
    for (unsigned i = 0; kind[6] == ':' && i < HANDLE_KINDS; i++) {
        if (strcmp(kind + 7, handle_names[i]) == 0)
            return i;
    }
    return EVENT;
}

void prepare_values(void)
{
    closed = CreateEventW(NULL, FALSE, FALSE, NULL);
    CloseHandle(closed);
}

/* Objects in memory, by the name of their structure. */

static void make_event(void *place)
{
    KeInitializeEvent(place, NotificationEvent, TRUE);
}

static void make_semaphore(void *place)
{
    KeInitializeSemaphore(place, 10, 100);
}

static void make_mutex(void *place)
{
    KeInitializeMutant(place, FALSE);
}

static void make_timer(void *place)
{
    KeInitializeTimer(place);
}

static void make_queue(void *place)
{
    KeInitializeQueue(place, 0);
}

static void make_gate(void *place)
{
    KeInitializeGate(place);
    KeSignalGate(place);
}

static void make_event_pair(void *place)
{
    KeInitializeEventPair(place);
    KeSetLowEventPair(place, 0, FALSE);
    KeSetHighEventPair(place, 0, FALSE);
}

static void make_dpc(void *place)
{
    KeInitializeDpc(place, (PKDEFERRED_ROUTINE)(void (*)(void))any_routine, NULL);
}

static void make_apc(void *place)
{
    KeInitializeApc(place, KeGetCurrentThread(), OriginalApcEnvironment, (PKKERNEL_ROUTINE)(void (*)(void))any_routine,
                    NULL, NULL, KernelMode, NULL);
}

static void make_fast_mutex(void *place)
{
    ExInitializeFastMutex((PFAST_MUTEX)place);
}

/* One node, which is the whole tree. */
static void make_splay(void *place)
{
    RtlInitializeSplayLinks((PRTL_SPLAY_LINKS)place);
}

/* Tables that cannot allocate. */
static PVOID allocate_nothing(void)
{
    return NULL;
}

static RTL_GENERIC_COMPARE_RESULTS compare_equal(void)
{
    return GenericEqual;
}

#define TABLE_ROUTINE(type, routine) ((type)(void (*)(void))routine)

static void make_generic_table(void *place)
{
    RtlInitializeGenericTable((PRTL_GENERIC_TABLE)place, TABLE_ROUTINE(PRTL_GENERIC_COMPARE_ROUTINE, compare_equal),
                              TABLE_ROUTINE(PRTL_GENERIC_ALLOCATE_ROUTINE, allocate_nothing),
                              TABLE_ROUTINE(PRTL_GENERIC_FREE_ROUTINE, allocate_nothing), NULL);
}

static void make_avl_table(void *place)
{
    RtlInitializeGenericTableAvl((PRTL_AVL_TABLE)place, TABLE_ROUTINE(PRTL_AVL_COMPARE_ROUTINE, compare_equal),
                                 TABLE_ROUTINE(PRTL_AVL_ALLOCATE_ROUTINE, allocate_nothing),
                                 TABLE_ROUTINE(PRTL_AVL_FREE_ROUTINE, allocate_nothing), NULL);
}

/* The only entry of its table. */
static void make_prefix_entry(void *place)
{
    static UNICODE_STRING root = RTL_CONSTANT_STRING(u"\\");
    UNICODE_PREFIX_TABLE table;

    RtlInitializeUnicodePrefix(&table);
    RtlInsertUnicodePrefix(&table, &root, (PUNICODE_PREFIX_TABLE_ENTRY)place);
}

static void make_resource(void *place)
{
    ExInitializeResourceLite(place);
}

static void make_fast_resource(void *place)
{
    ExInitializeFastResource(place, 0);
}

static void make_owner_entry(void *place)
{
    ExInitializeFastOwnerEntry(place);
}

static void make_section(void *place)
{
    RtlInitializeCriticalSection(place);
}

static void make_rtl_resource(void *place)
{
    RtlInitializeResource(place);
}

static void make_barrier(void *place)
{
    RtlInitBarrier(place, 1, 0);
}

static void make_list(void *place)
{
    LIST_ENTRY list = {place, place};

    memcpy(place, &list, sizeof(list));
}

static void make_attributes(void *place)
{
    OBJECT_ATTRIBUTES attributes;

    InitializeObjectAttributes(&attributes, NULL, 0, NULL, NULL);
    memcpy(place, &attributes, sizeof(attributes));
}

static void make_string(void *place)
{
    static WCHAR text[] = u"name";
    const UNICODE_STRING string = {8, 10, text};

    memcpy(place, &string, sizeof(string));
}

static void make_security(void *place)
{
    const SECURITY_ATTRIBUTES attributes = {sizeof(attributes), NULL, FALSE};

    memcpy(place, &attributes, sizeof(attributes));
}

static void make_work_item(void *place)
{
    ExInitializeWorkItem((PWORK_QUEUE_ITEM)place, (PWORKER_THREAD_ROUTINE)(void (*)(void))any_routine, NULL);
}

static void make_io_work_item(void *place)
{
    IoInitializeWorkItem(place, place);
}

static void make_device_queue(void *place)
{
    KeInitializeDeviceQueue(place);
}

static void make_remove_lock(void *place)
{
    IoInitializeRemoveLockEx(place, 0, 0, 0, sizeof(IO_REMOVE_LOCK_COMMON_BLOCK));
}

static void make_pushlock_block(void *place)
{
    memset(place, 0, sizeof(EX_PUSH_LOCK_WAIT_BLOCK));
}

static void make_environment(void *place)
{
    TpInitializeCallbackEnviron((PTP_CALLBACK_ENVIRON)place);
}

static void make_lock_queue(void *place)
{
    static KSPIN_LOCK lock;
    KSPIN_LOCK_QUEUE queue = {NULL, &lock};

    memcpy(place, &queue, sizeof(queue));
}

static void make_exception(void *place)
{
    EXCEPTION_RECORD record = {.ExceptionCode = STATUS_UNSUCCESSFUL};

    memcpy(place, &record, sizeof(record));
}

static void make_text(void *place)
{
    memcpy(place, "text", 5);
}

static void make_wide(void *place)
{
    memcpy(place, u"text", 10);
}

static const struct maker {
    const char *kind;
    void (*make)(void *place);
} makers[] = {
    {"KEVENT*", make_event},
    {"KSEMAPHORE*", make_semaphore},
    {"KMUTANT*", make_mutex},
    {"KTIMER*", make_timer},
    {"KQUEUE*", make_queue},
    {"KGATE*", make_gate},
    {"KEVENT_PAIR*", make_event_pair},
    {"KDPC*", make_dpc},
    {"KAPC*", make_apc},
    {"FAST_MUTEX*", make_fast_mutex},
    {"ERESOURCE*", make_resource},
    {"FAST_ERESOURCE*", make_fast_resource},
    {"FAST_OWNER_ENTRY*", make_owner_entry},
    {"RTL_CRITICAL_SECTION*", make_section},
    {"RTL_RESOURCE*", make_rtl_resource},
    {"RTL_BARRIER*", make_barrier},
    {"LIST_ENTRY*", make_list},
    {"RTL_SPLAY_LINKS*", make_splay},
    {"RTL_GENERIC_TABLE*", make_generic_table},
    {"RTL_AVL_TABLE*", make_avl_table},
    {"UNICODE_PREFIX_TABLE_ENTRY*", make_prefix_entry},
    {"OBJECT_ATTRIBUTES*", make_attributes},
    {"UNICODE_STRING*", make_string},
    {"SECURITY_ATTRIBUTES*", make_security},
    {"WORK_QUEUE_ITEM*", make_work_item},
    {"IO_WORKITEM*", make_io_work_item},
    {"KDEVICE_QUEUE*", make_device_queue},
    {"IO_REMOVE_LOCK*", make_remove_lock},
    {"EX_PUSH_LOCK_WAIT_BLOCK*", make_pushlock_block},
    {"TP_CALLBACK_ENVIRON_V3*", make_environment},
    {"KSPIN_LOCK_QUEUE*", make_lock_queue},
    {"EXCEPTION_RECORD*", make_exception},
    {"text*", make_text},
    {"wide*", make_wide},
};

/* Objects that only the library creates. */

static uint64_t number_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

static void *object_of(unsigned kind)
{
    PVOID object = NULL;

    ObReferenceObjectByHandle((HANDLE)(uintptr_t)handle_of(kind), 0, NULL, KernelMode, &object, NULL);
    return object;
}

#define ROUTINE(type) ((type)(void (*)(void))any_routine)

static PKINTERRUPT make_interrupt(void)
{
    PKINTERRUPT interrupt = NULL;

    IoConnectInterrupt(&interrupt, ROUTINE(PKSERVICE_ROUTINE), NULL, NULL, 40, 5, 5, Latched, TRUE, 1, FALSE);
    return interrupt;
}

static uint64_t make_made(const char *kind)
{
    if (strcmp(kind, "KTHREAD*") == 0 || strcmp(kind, "ETHREAD*") == 0)
        return number_of(object_of(THREAD));
    if (strcmp(kind, "EPROCESS*") == 0)
        return number_of(object_of(PROCESS));
    if (strcmp(kind, "OBJECT_TYPE*") == 0)
        return number_of(*ExEventObjectType);
    if (strcmp(kind, "EX_TIMER*") == 0)
        return number_of(ExAllocateTimer(ROUTINE(PEXT_CALLBACK), NULL, 0));
    if (strcmp(kind, "EX_RUNDOWN_REF_CACHE_AWARE*") == 0)
        return number_of(ExAllocateCacheAwareRundownProtection(NonPagedPool, 0x66727553));
    if (strcmp(kind, "EX_CACHE_AWARE_PUSH_LOCK*") == 0)
        return number_of(ExAllocateCacheAwarePushLock());
    if (strcmp(kind, "EX_PUSH_LOCK_AUTO_EXPAND*") == 0)
        return number_of(ExAllocateAutoExpandPushLock(0));
    if (strcmp(kind, "KINTERRUPT*") == 0)
        return number_of(make_interrupt());
    if (strcmp(kind, "TP_POOL*") == 0)
        return number_of(CreateThreadpool(NULL));
    if (strcmp(kind, "TP_CLEANUP_GROUP*") == 0)
        return number_of(CreateThreadpoolCleanupGroup());
    if (strcmp(kind, "TP_WORK*") == 0)
        return number_of(CreateThreadpoolWork(ROUTINE(PTP_WORK_CALLBACK), NULL, NULL));
    if (strcmp(kind, "TP_TIMER*") == 0)
        return number_of(CreateThreadpoolTimer(ROUTINE(PTP_TIMER_CALLBACK), NULL, NULL));
    if (strcmp(kind, "TP_WAIT*") == 0)
        return number_of(CreateThreadpoolWait(ROUTINE(PTP_WAIT_CALLBACK), NULL, NULL));
    if (strcmp(kind, "hmodule") == 0)
        return number_of(GetModuleHandleA("kernel32"));
    if (strcmp(kind, "hwct") == 0)
        return number_of(OpenThreadWaitChainSession(0, NULL));
    if (strcmp(kind, "heap") == 0)
        return number_of(GetProcessHeap());
    if (strcmp(kind, "block") == 0)
        return number_of(LocalAlloc(0, 100));
    if (strcmp(kind, "timerqueue") == 0)
        return number_of(CreateTimerQueue());
    return 0;
}

static const char *const made_kinds[] = {"KTHREAD*",
                                         "ETHREAD*",
                                         "EPROCESS*",
                                         "OBJECT_TYPE*",
                                         "EX_TIMER*",
                                         "EX_RUNDOWN_REF_CACHE_AWARE*",
                                         "EX_CACHE_AWARE_PUSH_LOCK*",
                                         "EX_PUSH_LOCK_AUTO_EXPAND*",
                                         "KINTERRUPT*",
                                         "TP_POOL*",
                                         "TP_CLEANUP_GROUP*",
                                         "TP_WORK*",
                                         "TP_TIMER*",
                                         "TP_WAIT*",
                                         "hmodule",
                                         "hwct",
                                         "heap",
                                         "block",
                                         "timerqueue"};

/* Available only inside a callback, or to a program with a driver: tests/io calls the functions that take them. */
static const char *const lacking_kinds[] = {"TP_IO*",       "TP_CALLBACK_INSTANCE*", "pooltimer",      "poolwait",
                                            "IO_FILE*",     "_va_list_tag*",         "__va_list_tag*", "DEVICE_OBJECT*",
                                            "ACCESS_STATE*", "DRIVER_OBJECT*",       "FILE_OBJECT*",   "IRP*",
                                            "MDL*",          "IO_CSQ*",              "IO_CSQ_IRP_CONTEXT*",
                                            "IO_TEST_REQUEST*"};

static bool is_among(const char *kind, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i], kind) == 0)
            return true;
    }
    return false;
}

bool is_lacking(const char *kind)
{
    return is_among(kind, lacking_kinds, sizeof(lacking_kinds) / sizeof(lacking_kinds[0]));
}

static bool is_made(const char *kind)
{
    return is_lacking(kind) || is_among(kind, made_kinds, sizeof(made_kinds) / sizeof(made_kinds[0]));
}

/* The kinds. */

static bool begins(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

static bool is_pointer(const char *kind)
{
    return kind[strlen(kind) - 1] == '*';
}

static bool is_text(const char *kind)
{
    return strcmp(kind, "text*") == 0 || strcmp(kind, "wide*") == 0;
}

static bool is_object_pointer(const struct function *function, const char *kind)
{
    return strcmp(kind, "void*") == 0 && (begins(function->name, "Ob") || begins(function->name, "ExFreePool"));
}

static void fill(const struct function *function, const char *kind, unsigned char *place)
{
    uint64_t several = 0;

    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        if (strcmp(makers[i].kind, kind) == 0) {
            makers[i].make(place);
            return;
        }
    }
    if (strcmp(kind, "void*") == 0 && function->layer == LAYER_kernel) {
        make_event(place);
    } else if (strcmp(kind, "pointer*") == 0 && strstr(function->name, "Multiple") != NULL) {
        if (begins(function->name, "Ke")) {
            make_event(place + 512);
            several = number_of(place + 512);
        } else {
            several = handle_of(EVENT);
        }
        for (unsigned i = 0; i < 60; i++)
            memcpy(place + i * sizeof(several), &several, sizeof(several));
    }
}

static uint64_t ordinary(const struct function *function, const char *kind)
{
    unsigned char *place;

    if (begins(kind, "handle"))
        return handle_of(handle_kind(kind));
    if (strcmp(kind, "id") == 0)
        return GetCurrentThreadId();
    if (strcmp(kind, "routine") == 0)
        return strcmp(function->name, "KeGenericCallDpc") == 0 ? (uint64_t)(uintptr_t)called_dpc
                                                               : (uint64_t)(uintptr_t)any_routine;
    if (is_made(kind))
        return make_made(kind);
    if (is_object_pointer(function, kind))
        return begins(function->name, "Ob") ? number_of(object_of(EVENT))
                                            : number_of(ExAllocatePoolWithTag(NonPagedPool, 64, 1));
    if (is_pointer(kind)) {
        place = new_room();
        fill(function, kind, place);
        return number_of(place);
    }
    return strcmp(kind, "milliseconds") == 0 || strcmp(kind, "time") == 0 || strcmp(kind, "bits8") == 0 ||
                   strcmp(kind, "signed8") == 0
               ? 0
               : 1;
}

/* What is wrong, by kind; the choice is a number that counts up to the end of the list. */

struct bad {
    enum fault_kind fault;
    uint64_t value;
    const char *description;
};

static const struct bad bad_handles[] = {
    {FAULT_HANDLE, 0, "NULL"},
    {FAULT_HANDLE, 1, "closed"},
    {FAULT_HANDLE, 0x00ABCDE0, "never given out"},
    {FAULT_HANDLE, 0x7FFFFFFFFFFFFFFC, "out of range"},
    {FAULT_PSEUDO, UINT64_MAX, "-1"},
    {FAULT_PSEUDO, UINT64_MAX - 1, "-2"},
    {FAULT_PSEUDO, UINT64_MAX - 4, "-5"},
    {FAULT_TYPE, SEMAPHORE, "a semaphore"},
    {FAULT_TYPE, THREAD, "a thread"},
    {FAULT_TYPE, DIRECTORY, "a directory"},
};

static const struct bad bad_numbers[] = {
    {FAULT_EXTREME, 0, "0"},
    {FAULT_EXTREME, 2, "2"},
    {FAULT_EXTREME, 64, "64"},
    {FAULT_EXTREME, UINT64_MAX, "-1"},
    {FAULT_EXTREME, 0x7FFFFFFF, "0x7FFFFFFF"},
    {FAULT_EXTREME, 0x80000000, "0x80000000"},
    {FAULT_EXTREME, INT64_MAX, "INT64_MAX"},
    {FAULT_EXTREME, (uint64_t)INT64_MIN, "INT64_MIN"},
};

static const struct bad bad_times[] = {
    {FAULT_EXTREME, 1, "1"},
    {FAULT_EXTREME, UINT64_MAX, "-1"},
    {FAULT_FOREVER, INT64_MAX, "INT64_MAX"},
    {FAULT_FOREVER, (uint64_t)INT64_MIN, "INT64_MIN"},
};

static const struct bad bad_milliseconds[] = {
    {FAULT_EXTREME, 1, "1"},
    {FAULT_FOREVER, 0xFFFFFFFE, "0xFFFFFFFE"},
    {FAULT_FOREVER, 0xFFFFFFFF, "INFINITE"},
};

static const struct bad bad_pointers[] = {
    {FAULT_NULL, 0, "NULL"},
    {FAULT_MISALIGNED, 1, "misaligned"},
};

static const struct bad bad_time_pointers[] = {
    {FAULT_FOREVER, 0, "NULL"},         {FAULT_MISALIGNED, 1, "misaligned"}, {FAULT_EXTREME, 0, "to -1"},
    {FAULT_FOREVER, 0, "to INT64_MAX"}, {FAULT_FOREVER, 0, "to INT64_MIN"},
};

static const struct bad bad_attributes[] = {
    {FAULT_NULL, 0, "NULL"},
    {FAULT_MISALIGNED, 1, "misaligned"},
    {FAULT_EXTREME, 0, "of length 0"},
    {FAULT_EXTREME, 0, "of length -1"},
    {FAULT_EXTREME, 0, "of all bits"},
    {FAULT_EXTREME, 0, "in a closed root"},
    {FAULT_EXTREME, 0, "in a root of another type"},
    {FAULT_EXTREME, 0, "of odd length"},
    {FAULT_EXTREME, 0, "without buffer"},
    {FAULT_EXTREME, 0, "of an empty name"},
};

static const struct bad bad_strings[] = {
    {FAULT_NULL, 0, "NULL"},
    {FAULT_MISALIGNED, 1, "misaligned"},
    {FAULT_EXTREME, 0, "of odd length"},
    {FAULT_EXTREME, 0, "without buffer"},
    {FAULT_EXTREME, 0, "longer than its buffer"},
};

static const struct bad bad_texts[] = {
    {FAULT_NULL, 0, "NULL"},           {FAULT_MISALIGNED, 1, "misaligned"},     {FAULT_EXTREME, 0, "empty"},
    {FAULT_EXTREME, 0, "a backslash"}, {FAULT_EXTREME, 0, "of 500 characters"}, {FAULT_EXTREME, 0, "of surrogates"},
};

static const struct bad bad_routines[] = {{FAULT_ROUTINE, 0, "NULL"}};
static const struct bad bad_made[] = {{FAULT_NULL, 0, "NULL"}};

#define LIST(list) (*count = sizeof(list) / sizeof((list)[0]), (list))

static const struct bad *bad_values(const struct function *function, const char *kind, unsigned *count)
{
    if (begins(kind, "handle") || strcmp(kind, "id") == 0)
        return LIST(bad_handles);
    if (strcmp(kind, "routine") == 0)
        return LIST(bad_routines);
    if (is_made(kind) || is_object_pointer(function, kind))
        return LIST(bad_made);
    if (strcmp(kind, "LARGE_INTEGER*") == 0 || strcmp(kind, "FILETIME*") == 0)
        return LIST(bad_time_pointers);
    if (strcmp(kind, "OBJECT_ATTRIBUTES*") == 0)
        return LIST(bad_attributes);
    if (strcmp(kind, "UNICODE_STRING*") == 0)
        return LIST(bad_strings);
    if (is_text(kind))
        return LIST(bad_texts);
    if (is_pointer(kind))
        return LIST(bad_pointers);
    if (strcmp(kind, "time") == 0)
        return LIST(bad_times);
    if (strcmp(kind, "milliseconds") == 0)
        return LIST(bad_milliseconds);
    return LIST(bad_numbers);
}

/* The names do not tell which type is wrong, or this type is right. */
static bool is_right_type(const char *kind, unsigned type)
{
    return kind[6] != ':' || handle_kind(kind) == type;
}

bool plan_call(const struct function *function, unsigned number, struct plan *plan)
{
    unsigned whole = function->parameters > 1 ? 2 : 1; /* calls that are wrong in no parameter, or in all */
    const struct bad *bad;
    unsigned count;

    *plan = (struct plan){.fault = number == 0 ? FAULT_NONE : FAULT_ALL_ZERO,
                          .parameter = MAXIMUM_PARAMETERS,
                          .description = number == 0 ? "ordinary" : "zero"};
    if (number < whole)
        return true;
    number -= whole;
    for (unsigned i = 0; i < function->parameters; i++) {
        bad = bad_values(function, function->kind[i], &count);
        if (number < count) {
            *plan = (struct plan){bad[number].fault, i, number, bad[number].description};
            if (plan->fault == FAULT_TYPE && is_right_type(function->kind[i], (unsigned)bad[number].value))
                plan->fault = FAULT_PSEUDO;
            return true;
        }
        number -= count;
    }
    return false;
}

/* The argument that is wrong. */

static uint64_t bad_attribute(unsigned choice)
{
    static WCHAR text[] = u"name";
    unsigned char *place = new_room();
    OBJECT_ATTRIBUTES *attributes = (OBJECT_ATTRIBUTES *)(void *)place;
    UNICODE_STRING *name = (UNICODE_STRING *)(void *)(place + 512);

    InitializeObjectAttributes(attributes, NULL, 0, NULL, NULL);
    *name = (UNICODE_STRING){8, 10, text};
    switch (choice) {
    case 2:
        attributes->Length = 0;
        break;
    case 3:
        attributes->Length = UINT32_MAX;
        break;
    case 4:
        attributes->Attributes = UINT32_MAX;
        break;
    case 5:
        attributes->RootDirectory = closed;
        attributes->ObjectName = name;
        break;
    case 6:
        attributes->RootDirectory = (HANDLE)(uintptr_t)handle_of(EVENT);
        attributes->ObjectName = name;
        break;
    case 7:
        attributes->ObjectName = name;
        name->Length = 7;
        break;
    case 8:
        attributes->ObjectName = name;
        name->Buffer = NULL;
        break;
    default:
        attributes->ObjectName = name;
        name->Length = 0;
        break;
    }
    return number_of(place);
}

static uint64_t misaligned(const struct function *function, const char *kind)
{
    unsigned char *place = new_room() + 1;

    fill(function, kind, place);
    return number_of(place);
}

static uint64_t bad_time(unsigned choice)
{
    static const int64_t times[] = {0, 0, -1, INT64_MAX, INT64_MIN};
    unsigned char *place = new_room();

    memcpy(place, &times[choice], sizeof(times[choice]));
    return number_of(place);
}

static uint64_t bad_string(unsigned choice)
{
    static WCHAR text[] = u"name";
    const UNICODE_STRING strings[] = {{7, 10, text}, {8, 10, NULL}, {8, 4, text}};
    unsigned char *place = new_room();

    memcpy(place, &strings[choice - 2], sizeof(strings[0]));
    return number_of(place);
}

static void put_character(unsigned char *place, bool wide, unsigned index, uint16_t character)
{
    if (wide)
        memcpy(place + 2 * index, &character, sizeof(character));
    else
        place[index] = (unsigned char)character;
}

static uint64_t bad_text(bool wide, unsigned choice)
{
    static const uint16_t characters[] = {0, 0, 0, '\\', 'x', 0xD800};
    static const unsigned lengths[] = {0, 0, 0, 1, 500, 3};
    unsigned char *place = new_room();

    for (unsigned i = 0; i < lengths[choice]; i++)
        put_character(place, wide, i, wide ? characters[choice] : characters[choice] > 255 ? 0xED : characters[choice]);
    return number_of(place);
}

static uint64_t bad_value(const struct function *function, const struct plan *plan)
{
    const char *kind = function->kind[plan->parameter];
    unsigned count;
    const struct bad *bad = &bad_values(function, kind, &count)[plan->choice];

    if (bad->fault == FAULT_MISALIGNED)
        return misaligned(function, kind);
    if (strcmp(kind, "OBJECT_ATTRIBUTES*") == 0 && bad->fault == FAULT_EXTREME)
        return bad_attribute(plan->choice);
    if (strcmp(kind, "UNICODE_STRING*") == 0 && bad->fault == FAULT_EXTREME)
        return bad_string(plan->choice);
    if (is_text(kind) && bad->fault == FAULT_EXTREME)
        return bad_text(kind[0] == 'w', plan->choice);
    if ((strcmp(kind, "LARGE_INTEGER*") == 0 || strcmp(kind, "FILETIME*") == 0) && plan->choice > 1)
        return bad_time(plan->choice);
    if (bad->fault == FAULT_HANDLE && bad->value == 1)
        return number_of(closed);
    if (bad->fault == FAULT_TYPE)
        return handle_of((unsigned)bad->value);
    return bad->value;
}

/* As the host's compilers pass numbers: a small one is extended by the caller. */
static uint64_t narrowed(const char *kind, uint64_t value)
{
    if (strcmp(kind, "bits8") == 0)
        return (uint8_t)value;
    if (strcmp(kind, "bits16") == 0)
        return (uint16_t)value;
    if (strcmp(kind, "signed8") == 0)
        return (uint64_t)(int8_t)value;
    if (strcmp(kind, "signed16") == 0)
        return (uint64_t)(int16_t)value;
    return value;
}

void make_arguments(const struct function *function, const struct plan *plan,
                    uint64_t arguments[MAXIMUM_PARAMETERS + 1])
{
    memset(arguments, 0, (MAXIMUM_PARAMETERS + 1) * sizeof(arguments[0]));
    for (unsigned i = 0; plan->fault != FAULT_ALL_ZERO && i < function->parameters; i++)
        arguments[i] = narrowed(function->kind[i], i == plan->parameter ? bad_value(function, plan)
                                                                        : ordinary(function, function->kind[i]));
}

void split_kinds(struct function *function)
{
    const char *at = function->kinds;

    while (*at != '\0') {
        size_t length = strcspn(at, " ");

        if (function->parameters == MAXIMUM_PARAMETERS || length >= sizeof(function->kind[0]))
            abort();
        memcpy(function->kind[function->parameters++], at, length);
        at += length + (at[length] == ' ');
    }
}

bool has_failed(const struct function *function, uint64_t result)
{
    switch (function->result) {
    case RESULT_status:
        return (int32_t)result < 0;
    case RESULT_boolean:
        return (uint32_t)result == 0;
    case RESULT_handle:
        return result == 0 || result == UINT64_MAX;
    default:
        return false;
    }
}
