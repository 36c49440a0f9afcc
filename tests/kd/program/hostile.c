/*
 * hostile.c: a process that attacks its debugger. The argument is the forgery.
 *
 * A child has one of everything, then stops. Its parent, in whose copy of the program everything is at the same
 * addresses, writes impossible values into the child's memory. It prints the child's id, then "ready", and exits when
 * its standard input ends. A line "SEED" changes the child's memory at random, starting from the original contents.
 */
#include "program.h"

#include "ex/pushlock.h"
#include "ex/resource.h"
#include "ex/waiterhash.h"
#include "ke/debugdata.h"
#include "ke/timer.h"
#include "ke/wait.h"
#include "ob/obp.h"
#include "ps/psp.h"
#include "rtl/criticalsection.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define UNMAPPED 0x00005ead0000ull
#define NO_ADDRESS 0xfffffffffffff000ull
#define WAITERS 11 /* threads that wait when everything is in place */
#define TIED_SIZE 4096 /* of the two entries that tie_list makes */

static char arena[16 << 20] __attribute__((aligned(4096))); /* for forgeries */
static SRWLOCK srw = SRWLOCK_INIT;
static EX_PUSH_LOCK push_lock;
static HANDLE owned;
static void *trap;                                           /* a mapping that must not be touched */
static pid_t child;

/* The child. */

static DWORD WINAPI wait_srw(void *context)
{
    (void)context;
    AcquireSRWLockShared(&srw);
    return 0;
}

static DWORD WINAPI wait_push_lock(void *context)
{
    (void)context;
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&push_lock);
    return 0;
}

static int waiting_threads(void)
{
    int count = 0;

    for (ULONG i = 0; i < LOAD(KiThreadSlotsUsed); i++) {
        const KI_THREAD_SLOT *slot = &KiThreadChunk[0][i];

        count += LOAD(slot->Use) == KiSlotUsed && !slot->Tcb.IsIdleThread && LOAD(slot->Tcb.State) == Waiting &&
                 (LOAD(slot->Tcb.WaitRegister) & KI_WAIT_ACTIVE) != 0;
    }
    return count;
}

/* Every active code unit, in the names of threads and objects, and of the process itself. */
static void name_everything(void)
{
    WCHAR name[400];
    int length = 0;

    for (WCHAR c = 1; c < 0xa0; c++)
        if (c != '\\')
            name[length++] = c;
    for (WCHAR c = 0x2028; c < 0x2030; c++)
        name[length++] = c;
    for (WCHAR c = 0x2066; c < 0x206a; c++)
        name[length++] = c;
    name[length++] = 0xd800; /* alone */
    name[length++] = 'x';
    name[length++] = 0xdc00;
    name[length++] = 0xfeff;
    name[length++] = 0xffff;
    name[length++] = 0xd83d; /* a pair */
    name[length++] = 0xde00;
    name[length] = 0;
    CreateEventW(NULL, TRUE, FALSE, name);
    name[60] = 0;
    SetThreadDescription(GetCurrentThread(), name);
    prctl(PR_SET_NAME, "\033]0;a\a\x9b\n\xe2\x80\xae(");
}

/* Pages that the kernel itself has mapped, as a driver maps the registers of its device. */
static void *map_device(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    void *found = MAP_FAILED;
    char line[512];

    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL)
        if (strstr(line, "[vvar]") != NULL)
            found = (void *)(uintptr_t)strtoull(line, NULL, 16);
    if (maps != NULL)
        fclose(maps);
    return found;
}

static void *map_trap(const char *what)
{
    if (strcmp(what, "unreadable") == 0)
        return mmap(NULL, 1 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (strcmp(what, "cut-off") == 0) { /* a file that has become shorter: reading is a bus error */
        int file = memfd_create("cut", 0);

        if (ftruncate(file, 1 << 20) == 0) {
            void *map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

            return ftruncate(file, 0) == 0 ? map : NULL;
        }
    }
    if (strcmp(what, "device") == 0)
        return map_device();
    if (strcmp(what, "endless") == 0) { /* a reader waits for this process, which does not answer */
        int descriptor = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
        struct uffdio_api api = {.api = UFFD_API};
        void *map = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        struct uffdio_register range = {.range = {(uintptr_t)map, 1 << 20}, .mode = UFFDIO_REGISTER_MODE_MISSING};

        if (descriptor < 0 || ioctl(descriptor, UFFDIO_API, &api) != 0 ||
            ioctl(descriptor, UFFDIO_REGISTER, &range) != 0)
            return MAP_FAILED;
        return map;
    }
    return NULL;
}

/* A chunk of threads that is mapped 63 times at the cost of one. */
static void multiply_threads(void)
{
    size_t size = (sizeof(KI_THREAD_SLOT) * KI_THREAD_CHUNK + 4095) & ~(size_t)4095;
    int file = memfd_create("chunk", 0);
    KI_THREAD_SLOT *chunk;

    if (ftruncate(file, (off_t)size) != 0)
        exit(2);
    chunk = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (ULONG i = 0; i < KI_THREAD_CHUNK; i++) {
        memcpy(&chunk[i], &KiThreadChunk[0][1], sizeof(KI_THREAD_SLOT));
        chunk[i].Tcb.ThreadId = i + 1;
    }
    for (int i = 1; i < KI_THREAD_CHUNKS; i++)
        KiThreadChunk[i] = mmap(NULL, size, PROT_READ, MAP_SHARED, file, 0);
    KiThreadSlotsUsed = KI_THREAD_CHUNK * KI_THREAD_CHUNKS;
}

static void live(const char *scene)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prepare();
    name_everything();
    zoo();
    crossed_resources();
    owned = CreateMutexA(NULL, TRUE, "owned");
    AcquireSRWLockExclusive(&srw);
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&push_lock);
    make(wait_srw, "srw-waiter");
    make(wait_push_lock, "push-waiter");
    trap = map_trap(scene);
    if (trap == MAP_FAILED) {
        puts("impossible 1");
        trap = NULL;
    }
    while (waiting_threads() < WAITERS)
        Sleep(1);
    if (strcmp(scene, "many-threads") == 0)
        multiply_threads();
    raise(SIGSTOP);
    for (;;)
        pause();
}

/* Its memory. */

static void get(uint64_t address, void *buffer, size_t size)
{
    struct iovec local = {buffer, size}, remote = {(void *)(uintptr_t)address, size};

    if (process_vm_readv(child, &local, 1, &remote, 1, 0) != (ssize_t)size)
        memset(buffer, 0, size);
}

static void put(uint64_t address, const void *buffer, size_t size)
{
    struct iovec local = {(void *)(uintptr_t)buffer, size}, remote = {(void *)(uintptr_t)address, size};

    if (process_vm_writev(child, &local, 1, &remote, 1, 0) != (ssize_t)size) {
        fprintf(stderr, "0x%llx cannot be written: %s\n", (unsigned long long)address, strerror(errno));
        exit(2);
    }
}

static uint64_t word_at(uint64_t address)
{
    uint64_t value;

    get(address, &value, sizeof(value));
    return value;
}

static void put_word(uint64_t address, uint64_t value)
{
    put(address, &value, sizeof(value));
}

#define AT(pointer) ((uint64_t)(uintptr_t)(pointer))
#define ARENA(offset) (AT(arena) + (offset))

static uint64_t root(const char *name)
{
    for (const KD_ROOT *r = KdDebuggerDataBlock.FirstRoot; r < KdDebuggerDataBlock.EndOfRoots; r++)
        if (strcmp(r->Name, name) == 0)
            return AT(r->Address);
    exit(2);
}

/* An entry between head and the first one, with links that are right, and behind it one that leads back to itself. */
static void tie_list(uint64_t head, uint64_t entry)
{
    uint64_t second = entry + TIED_SIZE / 2;

    put_word(head, entry);
    put_word(entry + 8, head);
    put_word(entry, second);
    put_word(second + 8, entry);
    put_word(second, second);
}

static uint64_t thread_slot(int number)
{
    return word_at(root("KiThreadChunk")) + (uint64_t)number * sizeof(KI_THREAD_SLOT);
}

/* Calls function for every waiting thread. */
static void each_waiter(void (*function)(uint64_t thread))
{
    for (int i = 0; i < 40; i++) {
        KI_THREAD_SLOT slot;

        get(thread_slot(i), &slot, sizeof(slot));
        if (slot.Use == KiSlotUsed && slot.Tcb.State == Waiting)
            function(thread_slot(i) + offsetof(KI_THREAD_SLOT, Tcb));
    }
}

/* The forgeries. */

static void nothing(void)
{
}

static void slots_used(void)
{
    uint32_t most = UINT32_MAX;

    put(root("KiThreadSlotsUsed"), &most, sizeof(most));
}

static void same_chunk(void)
{
    slots_used();
    for (uint64_t i = 1; i < KI_THREAD_CHUNKS; i++)
        put_word(root("KiThreadChunk") + 8 * i, thread_slot(0));
}

static void wild_chunks(void)
{
    static const uint64_t wild[] = {1, UNMAPPED, NO_ADDRESS, 0x8000000000000000ull, 64};

    slots_used();
    for (uint64_t i = 1; i < KI_THREAD_CHUNKS; i++)
        put_word(root("KiThreadChunk") + 8 * i, wild[i % 5]);
}

static void wild_blocks_of(uint64_t thread)
{
    unsigned char most = 255;

    put(thread + offsetof(KTHREAD, WaitBlockCount), &most, 1);
    put_word(thread + offsetof(KTHREAD, WaitBlockList), NO_ADDRESS);
}

static void wild_blocks(void)
{
    each_waiter(wild_blocks_of);
}

/* As if the thread were the first one of the machine. */
static void be_first(uint64_t thread)
{
    uint32_t first = 1;

    put(thread + offsetof(KTHREAD, ThreadId), &first, sizeof(first));
}

static void thread_ids(void)
{
    each_waiter(be_first);
}

static void long_name_of(uint64_t thread)
{
    UNICODE_STRING name = {.Length = 65535, .MaximumLength = 1, .Buffer = (PWSTR)(arena + sizeof(arena) - 7)};

    put(thread + offsetof(ETHREAD, ThreadName), &name, sizeof(name));
}

static void long_names(void)
{
    each_waiter(long_name_of);
}

static void processors(void)
{
    uint32_t most = UINT32_MAX;

    put(root("KeNumberProcessors"), &most, sizeof(most));
}

static void wild_processors(void)
{
    uint64_t table = root("KiProcessorBlock");

    put_word(table, UNMAPPED);
    put_word(table + 8, word_at(table + 16) + 1);
    put_word(table + 16, table);
}

static void dpc_list(void)
{
    uint64_t prcb = word_at(root("KiProcessorBlock"));
    uint32_t deep = UINT32_MAX;

    for (uint64_t d = 0; d < 2; d++) {
        uint64_t data = prcb + offsetof(KPRCB, DpcData) + d * sizeof(KDPC_DATA);

        tie_list(data + offsetof(KDPC_DATA, DpcListHead), ARENA(d << 16) + 64);
        put(data + offsetof(KDPC_DATA, DpcQueueDepth), &deep, sizeof(deep));
        put_word(data + offsetof(KDPC_DATA, ActiveDpc), UNMAPPED);
    }
    put_word(prcb, AT(arena));
}

static void processor_waiters(void)
{
    tie_list(root("KiProcessorWaitList"), ARENA(64));
}

static void queued_lock_cycle(void)
{
    uint64_t first = word_at(root("KiProcessorBlock")) + offsetof(KPRCB, LockQueue);
    uint64_t lock = word_at(first + offsetof(KSPIN_LOCK_QUEUE, Lock));

    put_word(first + offsetof(KSPIN_LOCK_QUEUE, Lock), lock | LOCK_QUEUE_OWNER);
    put_word(first, first);
}

/* A table of timers with a forged list in the first slot of each wheel. */
static uint64_t forged_wheel(uint64_t table, uint64_t number)
{
    uint64_t wheel = table + offsetof(KTIMER_TABLE, Wheel) + number * sizeof(KI_WHEEL);

    put_word(wheel + offsetof(KI_WHEEL, Occupied), word_at(wheel + offsetof(KI_WHEEL, Occupied)) | 1);
    return wheel + offsetof(KI_WHEEL, Slot);
}

static void timer_lists(void)
{
    uint64_t table = word_at(root("KiTimerTables"));

    tie_list(forged_wheel(table, 0), ARENA(1 << 16) + 256);
    put_word(forged_wheel(table, 1), NO_ADDRESS);
}

static void timer_tables(void)
{
    uint64_t table = word_at(root("KiTimerTables"));

    put_word(table + offsetof(KTIMER_TABLE, Next), table);
}

static void same_leaf(void)
{
    uint64_t branch = word_at(root("ObpRoot")), leaf = word_at(branch);

    for (uint64_t i = 0; i < OBP_BRANCH; i++)
        put_word(branch + 8 * i, leaf);
    for (uint64_t i = 0; i < OBP_ROOT; i++)
        put_word(root("ObpRoot") + 8 * i, branch);
}

static void wild_leaves(void)
{
    for (uint64_t i = 1; i < OBP_ROOT; i++)
        put_word(root("ObpRoot") + 8 * i, i % 2 ? NO_ADDRESS : UNMAPPED + 4096 * i);
    for (uint64_t i = 1; i < OBP_BRANCH; i++)
        put_word(word_at(root("ObpRoot")) + 8 * i, AT(arena) + sizeof(arena) - 8);
}

/* The last branch is in the arena, with leaves there: handles of wild objects, of objects with wild types and names. */
static void wild_objects(void)
{
    uint64_t branch = ARENA(1 << 20), leaf = ARENA(2 << 20), object = ARENA(3 << 20), type = ARENA(4 << 20);
    uint64_t info = ARENA(5 << 20);
    OBJECT_HEADER_NAME_INFO name = {.Directory = (struct _OBJECT_DIRECTORY *)(uintptr_t)object, .Length = 65535};

    put_word(root("ObpRoot") + 8 * (OBP_ROOT - 1), branch);
    put_word(branch, leaf);
    put_word(leaf, UNMAPPED);
    put_word(leaf + 16, NO_ADDRESS);
    put_word(leaf + 32, object); /* it is in itself */
    put_word(object - sizeof(OBJECT_HEADER) + offsetof(OBJECT_HEADER, Type), type);
    put_word(object - sizeof(OBJECT_HEADER) + offsetof(OBJECT_HEADER, NameInfo), info);
    put(info, &name, sizeof(name));
    for (uint64_t i = 0; i < 64; i++)
        put(info + offsetof(OBJECT_HEADER_NAME_INFO, Name) + 2 * i, u"\x1b", 2);
    put_word(type + offsetof(OBJECT_TYPE, Name), type + 1024);
    for (uint64_t i = 0; i < 4096; i++)
        put(type + 1024 + i, &(char){(char)(1 + i % 255)}, 1);
    put_word(leaf + 48, object + 4096);
    put_word(object + 4096 - sizeof(OBJECT_HEADER) + offsetof(OBJECT_HEADER, Type), NO_ADDRESS);
}

static void resource_list(void)
{
    tie_list(root("ExpSystemResourcesList"), ARENA(64));
}

/* Owners and waiters in circles. */
static void resource_owners(void)
{
    uint64_t resource = word_at(root("ExpSystemResourcesList")) - offsetof(ERESOURCE, SystemResourcesList);
    uint64_t owner = ARENA(0), waiter = ARENA(4096);

    for (uint64_t i = 0; i < 16; i++) {
        put_word(owner + i * 128 + offsetof(EXP_OWNER, Next), owner + (i + 1) % 16 * 128);
        put_word(owner + i * 128, thread_slot((int)i) + offsetof(KI_THREAD_SLOT, Tcb));
        put_word(waiter + i * 256 + offsetof(EXP_RESOURCE_WAIT, Next), waiter + (i + 1) % 16 * 256);
        put_word(waiter + i * 256 + offsetof(EXP_RESOURCE_WAIT, Thread),
                 thread_slot((int)i) + offsetof(KI_THREAD_SLOT, Tcb));
    }
    put_word(resource + offsetof(ERESOURCE, OwnerTable), owner);
    put_word(resource + offsetof(ERESOURCE, SharedWaiters), waiter);
    put_word(resource + offsetof(ERESOURCE, ExclusiveWaiters), NO_ADDRESS);
}

static void section_list(void)
{
    tie_list(root("RtlCriticalSectionList"), ARENA(64));
}

static void wild_mutants_of(uint64_t thread)
{
    tie_list(thread + offsetof(KTHREAD, MutantListHead), ARENA(1 << 16));
}

static void mutant_lists(void)
{
    each_waiter(wild_mutants_of);
}

static void push_lock_chain(void)
{
    uint64_t block = ARENA(0);

    put_word(AT(&push_lock), block | EX_PUSH_LOCK_WAITING | EX_PUSH_LOCK_LOCK);
    put_word(AT(&srw), block | EX_PUSH_LOCK_WAITING | EX_PUSH_LOCK_LOCK);
    put_word(block + offsetof(EXP_WAIT_BLOCK, Next), block + 256);
    put_word(block + 256 + offsetof(EXP_WAIT_BLOCK, Next), block);
}

static void waiter_table(void)
{
    EXP_WAITER_BUCKET bucket;
    uint32_t process = (uint32_t)child, count = UINT32_MAX;

    C_ASSERT(EXP_WAITER_BUCKETS * TIED_SIZE <= sizeof(arena));
    for (uint64_t i = 0; i < EXP_WAITER_BUCKETS; i++) {
        uint64_t at = root("ExpWaiterTable") + i * sizeof(bucket);

        put(at + offsetof(EXP_WAITER_BUCKET, ProcessId), &process, sizeof(process));
        put(at + offsetof(EXP_WAITER_BUCKET, Count), &count, sizeof(count));
        tie_list(at + offsetof(EXP_WAITER_BUCKET, WaiterList), ARENA(i * TIED_SIZE));
    }
}

static void tie_waited(uint64_t thread)
{
    KWAIT_BLOCK block;

    get(word_at(thread + offsetof(KTHREAD, WaitBlockList)), &block, sizeof(block));
    if (block.WaitType != KI_HINT_BLOCK)
        tie_list(AT(block.Object) + offsetof(DISPATCHER_HEADER, WaitListHead), ARENA(1 << 16));
}

static void wait_lists(void)
{
    each_waiter(tie_waited);
}

/* Every number, with an extreme value. */
static void be_absurd(uint64_t thread)
{
    static const size_t members[] = {offsetof(KTHREAD, WaitTime), offsetof(KTHREAD, ContextSwitches),
                                     offsetof(KTHREAD, WaitProcessor)};
    unsigned char bytes[8];

    memset(bytes, 0xff, sizeof(bytes));
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        put(thread + members[i], bytes, 4);
    put(thread + offsetof(KTHREAD, WaitReason), bytes, 1);
    put(thread + offsetof(KTHREAD, WaitMode), bytes, 1);
    put(thread + offsetof(KTHREAD, WaitIrql), bytes, 1);
    put(thread + offsetof(KTHREAD, Priority), bytes, 1);
    put(thread + offsetof(KTHREAD, WaitDeadline), bytes, 8);
    put(thread + offsetof(KTHREAD, LockOwned), bytes, 8);
}

static void absurd_numbers(void)
{
    LONG lowest = INT32_MIN;

    each_waiter(be_absurd);
    for (int i = 0; i < 40; i++) {
        KI_THREAD_SLOT slot;

        get(thread_slot(i), &slot, sizeof(slot));
        for (uint64_t at = AT(slot.Tcb.MutantListHead.Flink);
             slot.Use == KiSlotUsed && at != 0 && at != thread_slot(i) + offsetof(KI_THREAD_SLOT, Tcb.MutantListHead);
             at = word_at(at))
            put(at - offsetof(KMUTANT, MutantListEntry) + offsetof(DISPATCHER_HEADER, SignalState), &lowest,
                sizeof(lowest));
    }
}

/* Roots at other addresses. */
static void move_roots(uint64_t address, uint64_t size)
{
    uint64_t copy = ARENA(0), count = 0;

    for (const KD_ROOT *r = KdDebuggerDataBlock.FirstRoot; r < KdDebuggerDataBlock.EndOfRoots; r++, count++) {
        KD_ROOT forged = *r;

        if (strstr(r->Name, "Layout") == NULL && strcmp(r->Name, "KiInitialProcessSlot") != 0 &&
            strcmp(r->Name, "KeNumberProcessors") != 0 && strcmp(r->Name, "KiVerifierEnabled") != 0 &&
            strcmp(r->Name, "KiThreadChunk") != 0 && strcmp(r->Name, "KiThreadSlotsUsed") != 0) {
            forged.Address = (void *)(uintptr_t)address;
            forged.Size = (ULONG)size;
        }
        put(copy + count * sizeof(KD_ROOT), &forged, sizeof(forged));
    }
    put_word(AT(&KdDebuggerDataBlock.FirstRoot), copy);
    put_word(AT(&KdDebuggerDataBlock.EndOfRoots), copy + count * sizeof(KD_ROOT));
}

static void wild_roots(void)
{
    move_roots(UNMAPPED, UINT32_MAX);
}

static void roots_in_trap(void)
{
    uint64_t map = word_at(AT(&trap));

    if (map != 0)
        move_roots(map, 1 << 20);
}

static void backward_roots(void)
{
    put_word(AT(&KdDebuggerDataBlock.EndOfRoots), AT(KdDebuggerDataBlock.FirstRoot) - 8);
}

static void version(void)
{
    char text[sizeof(KdDebuggerDataBlock.Version)];

    memset(text, 'x', sizeof(text)); /* without an end */
    memcpy(text, "9\033[31m\x9b\xe2\x80\xae\a", 12);
    put(AT(KdDebuggerDataBlock.Version), text, sizeof(text));
}

static pthread_t mover;

/* Lists that change at every read. */
static void *move(void *context)
{
    uint64_t lists[] = {root("ExpSystemResourcesList"), root("RtlCriticalSectionList"), root("KiProcessorWaitList")};

    (void)context;
    for (uint64_t turn = 0;; turn++)
        for (size_t i = 0; i < 3; i++) {
            uint64_t entry = ARENA(i << 16) + turn % 8 * 512;

            put_word(entry, turn % 5 == 0 ? lists[i] : ARENA(i << 16) + (turn + 3) % 8 * 512);
            put_word(entry + 8, ARENA(i << 16) + turn % 7 * 512);
            put_word(lists[i], entry);
        }
    return NULL;
}

static void moving(void)
{
    pthread_create(&mover, NULL, move, NULL);
}

/* Consistent, long lists of forged timers and resources. */
static void long_lists(void)
{
    enum { COUNT = 60000, SIZE = 128 };
    uint64_t table = word_at(root("KiTimerTables")), head = forged_wheel(table, 0);
    uint64_t resources = root("ExpSystemResourcesList"), more = ARENA(8 << 20);
    static char timers[COUNT * SIZE], forged[COUNT * SIZE];

    for (uint64_t i = 0; i < COUNT; i++) {
        KTIMER *timer = (KTIMER *)(void *)&timers[i * SIZE];
        ERESOURCE *resource = (ERESOURCE *)(void *)&forged[i * SIZE];
        uint64_t link = offsetof(KTIMER, TimerListEntry);

        timer->Header.Type = TimerNotificationObject;
        timer->TimerListEntry.Flink = (LIST_ENTRY *)(uintptr_t)(i + 1 < COUNT ? ARENA((i + 1) * SIZE) + link : head);
        timer->TimerListEntry.Blink = (LIST_ENTRY *)(uintptr_t)(i > 0 ? ARENA((i - 1) * SIZE) + link : head);
        resource->SystemResourcesList.Flink =
            (LIST_ENTRY *)(uintptr_t)(i + 1 < COUNT ? more + (i + 1) * SIZE : resources);
        resource->SystemResourcesList.Blink = (LIST_ENTRY *)(uintptr_t)(i > 0 ? more + (i - 1) * SIZE : resources);
    }
    put(ARENA(0), timers, sizeof(timers));
    put(more, forged, sizeof(forged));
    put_word(head, ARENA(offsetof(KTIMER, TimerListEntry)));
    put_word(resources, more);
}

static const struct {
    const char *name;
    void (*forge)(void);
} scenes[] = {
    {"nothing", nothing},
    {"slots-used", slots_used},
    {"same-chunk", same_chunk},
    {"wild-chunks", wild_chunks},
    {"many-threads", nothing},
    {"wild-blocks", wild_blocks},
    {"thread-ids", thread_ids},
    {"long-names", long_names},
    {"processors", processors},
    {"wild-processors", wild_processors},
    {"dpc-list", dpc_list},
    {"processor-waiters", processor_waiters},
    {"queued-lock-cycle", queued_lock_cycle},
    {"timer-lists", timer_lists},
    {"timer-tables", timer_tables},
    {"same-leaf", same_leaf},
    {"wild-leaves", wild_leaves},
    {"wild-objects", wild_objects},
    {"resource-list", resource_list},
    {"resource-owners", resource_owners},
    {"section-list", section_list},
    {"mutant-lists", mutant_lists},
    {"push-lock-chain", push_lock_chain},
    {"waiter-table", waiter_table},
    {"wait-lists", wait_lists},
    {"absurd-numbers", absurd_numbers},
    {"wild-roots", wild_roots},
    {"backward-roots", backward_roots},
    {"unreadable", roots_in_trap},
    {"cut-off", roots_in_trap},
    {"device", roots_in_trap},
    {"endless", roots_in_trap},
    {"version", version},
    {"moving", moving},
    {"long-lists", long_lists},
};

/* Random changes. Each change is undone before the next one. */

typedef struct change {
    uint64_t address, before;
} change;

static change changes[64];
static size_t change_count;
static uint64_t state;

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Somewhere that a debugger reads: at a root, or up to four pointers away. */
static uint64_t random_place(void)
{
    size_t count = (size_t)(KdDebuggerDataBlock.EndOfRoots - KdDebuggerDataBlock.FirstRoot);
    const KD_ROOT *r = &KdDebuggerDataBlock.FirstRoot[next_random() % count];
    uint64_t at = AT(r->Address), size = r->Size;

    if (strstr(r->Name, "Layout") != NULL)
        return 0;
    for (uint64_t steps = next_random() % 5;; steps--) {
        uint64_t place = at + (size > 8 ? next_random() % (size / 8) * 8 : 0), to = word_at(place);
        char byte;
        struct iovec local = {&byte, 1}, remote = {(void *)(uintptr_t)to, 1};

        if (steps == 0 || to % 8 != 0 || process_vm_readv(child, &local, 1, &remote, 1, 0) != 1)
            return place;
        at = to;
        size = next_random() % 4 == 0 ? sizeof(KI_THREAD_SLOT) : 128;
    }
}

static uint64_t random_value(uint64_t before)
{
    switch (next_random() % 8) {
    case 0:
        return next_random();
    case 1:
        return before ^ 1ull << next_random() % 64;
    case 2:
        return random_place();
    case 3:
        return word_at(random_place() + 8);
    case 4:
        return UINT64_MAX >> next_random() % 64;
    case 5:
        return ARENA(next_random() % sizeof(arena)) & ~7ull;
    case 6:
        return before + next_random() % 256 - 128;
    default:
        return 0;
    }
}

static void change_at_random(uint64_t seed)
{
    while (change_count > 0) {
        change_count--;
        put_word(changes[change_count].address, changes[change_count].before);
    }
    state = seed * 0x9e3779b97f4a7c15ull + 1;
    for (size_t count = 1 + next_random() % 32; count > 0; count--) {
        uint64_t place = random_place(), value, before = word_at(place);
        struct iovec local = {&value, sizeof(value)}, remote = {(void *)(uintptr_t)place, sizeof(value)};

        value = random_value(before);
        if (place != 0 && process_vm_writev(child, &local, 1, &remote, 1, 0) == (ssize_t)sizeof(value))
            changes[change_count++] = (change){place, before};
    }
}

int main(int argc, char **argv)
{
    void (*forge)(void) = NULL;
    char line[64];
    int status;

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; argc == 2 && i < sizeof(scenes) / sizeof(scenes[0]); i++)
        if (strcmp(argv[1], scenes[i].name) == 0)
            forge = scenes[i].forge;
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        for (size_t i = 0; i < sizeof(scenes) / sizeof(scenes[0]); i++)
            puts(scenes[i].name);
        return 0;
    }
    if (forge == NULL)
        return 2;
    child = fork();
    if (child == 0)
        live(argv[1]);
    if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status))
        return 2;
    forge();
    printf("child %d\nready\n", (int)child);
    while (fgets(line, sizeof(line), stdin) != NULL) {
        change_at_random(strtoull(line, NULL, 0));
        puts("changed");
    }
    kill(child, SIGKILL);
    return 0;
}
