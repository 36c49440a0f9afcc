/*
 * Where the documents put each member of the structures that drivers and debuggers know by name.
 *
 * The places are those of the published headers of 64-bit Windows 10 and, for the dispatcher header and the wait block,
 * of the debugger's output and table 8-29 in Windows Internals. They are repeated here on purpose: a list generated
 * from our headers would always agree with them.
 */
#include "waittest.h"

#include "ke/dispatch.h"
#include "ke/timer.h"

#include <interlock/ex.h>
#include <interlock/ps.h>

#include "ke/debugdata.h"

/* The bits of Structure that change when Member becomes all ones: found by writing it, so bit fields count too. */
#define PLACE(Structure, Member, Byte, Bit, Bits)                                                                      \
    do {                                                                                                               \
        Structure object;                                                                                              \
        memset(&object, 0, sizeof(object));                                                                            \
        object.Member -= 1;                                                                                            \
        check_bits(#Structure "." #Member, &object, sizeof(object), (Byte) * 8 + (Bit), (Bits));                       \
    } while (0)

/* A pointer or a structure: where it begins, and how long it is. */
#define WHOLE(Structure, Member, Byte, Size)                                                                           \
    do {                                                                                                               \
        assert_int_equal(FIELD_OFFSET(Structure, Member), Byte);                                                       \
        assert_int_equal(sizeof(((Structure *)0)->Member), Size);                                                      \
    } while (0)

static void check_bits(const char *name, const void *object, size_t size, size_t first, size_t count)
{
    for (size_t bit = 0; bit < size * 8; bit += 1) {
        BOOLEAN found = (((const UCHAR *)object)[bit / 8] >> (bit % 8)) & 1;
        BOOLEAN expected = bit >= first && bit < first + count;
        if (found != expected) {
            fail_msg("%s: bit %zu is %s", name, bit, expected ? "missing" : "not its own");
        }
    }
}

#define HEADER(Member, Byte, Bit, Bits) PLACE(DISPATCHER_HEADER, Member, Byte, Bit, Bits)

static void test_dispatcher_header(void **state)
{
    (void)state;
    assert_int_equal(sizeof(DISPATCHER_HEADER), 0x18);
    HEADER(Lock, 0, 0, 32);
    HEADER(LockNV, 0, 0, 32);
    HEADER(SignalState, 4, 0, 32);
    WHOLE(DISPATCHER_HEADER, WaitListHead, 8, 16);

    HEADER(Type, 0, 0, 8);
    HEADER(Signalling, 1, 0, 8);
    HEADER(Size, 2, 0, 8);
    HEADER(Reserved1, 3, 0, 8);

    HEADER(TimerType, 0, 0, 8);
    HEADER(TimerControlFlags, 1, 0, 8);
    HEADER(Absolute, 1, 0, 1);
    HEADER(Wake, 1, 1, 1);
    HEADER(EncodedTolerableDelay, 1, 2, 6);
    HEADER(Hand, 2, 0, 8);
    HEADER(TimerMiscFlags, 3, 0, 8);
    HEADER(Index, 3, 0, 6);
    HEADER(Inserted, 3, 6, 1);
    HEADER(Expired, 3, 7, 1);

    HEADER(Timer2Type, 0, 0, 8);
    HEADER(Timer2Flags, 1, 0, 8);
    HEADER(Timer2Inserted, 1, 0, 1);
    HEADER(Timer2Expiring, 1, 1, 1);
    HEADER(Timer2CancelPending, 1, 2, 1);
    HEADER(Timer2SetPending, 1, 3, 1);
    HEADER(Timer2Running, 1, 4, 1);
    HEADER(Timer2Disabled, 1, 5, 1);
    HEADER(Timer2ReservedFlags, 1, 6, 2);
    HEADER(Timer2ComponentId, 2, 0, 8);
    HEADER(Timer2RelativeId, 3, 0, 8);

    HEADER(QueueType, 0, 0, 8);
    HEADER(QueueControlFlags, 1, 0, 8);
    HEADER(Abandoned, 1, 0, 1);
    HEADER(DisableIncrement, 1, 1, 1);
    HEADER(QueueReservedControlFlags, 1, 2, 6);
    HEADER(QueueSize, 2, 0, 8);
    HEADER(QueueReserved, 3, 0, 8);

    HEADER(ThreadType, 0, 0, 8);
    HEADER(ThreadReserved, 1, 0, 8);
    HEADER(ThreadControlFlags, 2, 0, 8);
    HEADER(CycleProfiling, 2, 0, 1);
    HEADER(CounterProfiling, 2, 1, 1);
    HEADER(GroupScheduling, 2, 2, 1);
    HEADER(AffinitySet, 2, 3, 1);
    HEADER(Tagged, 2, 4, 1);
    HEADER(EnergyProfiling, 2, 5, 1);
    HEADER(SchedulerAssist, 2, 6, 1);
    HEADER(ThreadReservedControlFlags, 2, 7, 1);
    HEADER(DebugActive, 3, 0, 8);
    HEADER(ActiveDR7, 3, 0, 1);
    HEADER(Instrumented, 3, 1, 1);
    HEADER(Minimal, 3, 2, 1);
    HEADER(Reserved4, 3, 3, 2);
    HEADER(AltSyscall, 3, 5, 1);
    HEADER(UmsScheduled, 3, 6, 1);
    HEADER(UmsPrimary, 3, 7, 1);

    HEADER(MutantType, 0, 0, 8);
    HEADER(MutantSize, 1, 0, 8);
    HEADER(DpcActive, 2, 0, 8);
    HEADER(MutantReserved, 3, 0, 8);
}

static void test_wait_structures(void **state)
{
    (void)state;
    assert_int_equal(sizeof(KWAIT_BLOCK), 0x30);
    WHOLE(KWAIT_BLOCK, WaitListEntry, 0x00, 16);
    PLACE(KWAIT_BLOCK, WaitType, 0x10, 0, 8);
    PLACE(KWAIT_BLOCK, BlockState, 0x11, 0, 8);
    PLACE(KWAIT_BLOCK, WaitKey, 0x12, 0, 16);
    PLACE(KWAIT_BLOCK, SpareLong, 0x14, 0, 32);
    WHOLE(KWAIT_BLOCK, Thread, 0x18, 8);
    WHOLE(KWAIT_BLOCK, NotificationQueue, 0x18, 8);
    WHOLE(KWAIT_BLOCK, Dpc, 0x18, 8);
    WHOLE(KWAIT_BLOCK, Object, 0x20, 8);
    WHOLE(KWAIT_BLOCK, SparePtr, 0x28, 8);

    assert_int_equal(WaitBlockBypassStart, 0);
    assert_int_equal(WaitBlockBypassComplete, 1);
    assert_int_equal(WaitBlockSuspendBypassStart, 2);
    assert_int_equal(WaitBlockSuspendBypassComplete, 3);
    assert_int_equal(WaitBlockActive, 4);
    assert_int_equal(WaitBlockInactive, 5);
    assert_int_equal(WaitBlockSuspended, 6);
}

static void test_dispatcher_objects(void **state)
{
    (void)state;
    assert_int_equal(sizeof(KEVENT), 0x18);
    WHOLE(KEVENT, Header, 0, 0x18);
    assert_int_equal(sizeof(KGATE), 0x18);
    WHOLE(KGATE, Header, 0, 0x18);

    assert_int_equal(sizeof(KSEMAPHORE), 0x20);
    WHOLE(KSEMAPHORE, Header, 0, 0x18);
    PLACE(KSEMAPHORE, Limit, 0x18, 0, 32);

    assert_int_equal(sizeof(KMUTANT), 0x38);
    WHOLE(KMUTANT, Header, 0, 0x18);
    WHOLE(KMUTANT, MutantListEntry, 0x18, 16);
    WHOLE(KMUTANT, OwnerThread, 0x28, 8);
    PLACE(KMUTANT, Abandoned, 0x30, 0, 8);
    PLACE(KMUTANT, ApcDisable, 0x31, 0, 8);

    assert_int_equal(sizeof(KTIMER), 0x40);
    WHOLE(KTIMER, Header, 0, 0x18);
    PLACE(KTIMER, DueTime.QuadPart, 0x18, 0, 64);
    WHOLE(KTIMER, TimerListEntry, 0x20, 16);
    WHOLE(KTIMER, Dpc, 0x30, 8);
    PLACE(KTIMER, Processor, 0x38, 0, 32);
    PLACE(KTIMER, Period, 0x3c, 0, 32);

    assert_int_equal(sizeof(KQUEUE), 0x40);
    WHOLE(KQUEUE, Header, 0, 0x18);
    WHOLE(KQUEUE, EntryListHead, 0x18, 16);
    PLACE(KQUEUE, CurrentCount, 0x28, 0, 32);
    PLACE(KQUEUE, MaximumCount, 0x2c, 0, 32);
    WHOLE(KQUEUE, ThreadListHead, 0x30, 16);

    assert_int_equal(sizeof(KEVENT_PAIR), 0x38);
    PLACE(KEVENT_PAIR, Type, 0, 0, 16);
    PLACE(KEVENT_PAIR, Size, 2, 0, 16);
    WHOLE(KEVENT_PAIR, EventLow, 0x08, 0x18);
    WHOLE(KEVENT_PAIR, EventHigh, 0x20, 0x18);
}

static void test_calls(void **state)
{
    (void)state;
    assert_int_equal(sizeof(KDPC), 0x40);
    PLACE(KDPC, TargetInfoAsUlong, 0x00, 0, 32);
    PLACE(KDPC, Type, 0x00, 0, 8);
    PLACE(KDPC, Importance, 0x01, 0, 8);
    PLACE(KDPC, Number, 0x02, 0, 16);
    assert_int_equal(FIELD_OFFSET(KDPC, DpcListEntry), 0x08); /* with what follows it: docs/differences.md */
    WHOLE(KDPC, DeferredRoutine, 0x18, 8);
    WHOLE(KDPC, DeferredContext, 0x20, 8);
    WHOLE(KDPC, SystemArgument1, 0x28, 8);
    WHOLE(KDPC, SystemArgument2, 0x30, 8);
    WHOLE(KDPC, DpcData, 0x38, 8);

    assert_int_equal(sizeof(KAPC), 0x58);
    PLACE(KAPC, Type, 0x00, 0, 8);
    PLACE(KAPC, SpareByte0, 0x01, 0, 8);
    PLACE(KAPC, Size, 0x02, 0, 8);
    PLACE(KAPC, SpareByte1, 0x03, 0, 8);
    PLACE(KAPC, SpareLong0, 0x04, 0, 32);
    WHOLE(KAPC, Thread, 0x08, 8);
    WHOLE(KAPC, ApcListEntry, 0x10, 16);
    WHOLE(KAPC, KernelRoutine, 0x20, 8);
    WHOLE(KAPC, RundownRoutine, 0x28, 8);
    WHOLE(KAPC, NormalRoutine, 0x30, 8);
    WHOLE(KAPC, NormalContext, 0x38, 8);
    WHOLE(KAPC, SystemArgument1, 0x40, 8);
    WHOLE(KAPC, SystemArgument2, 0x48, 8);
    PLACE(KAPC, ApcStateIndex, 0x50, 0, 8);
    PLACE(KAPC, ApcMode, 0x51, 0, 8);
    PLACE(KAPC, Inserted, 0x52, 0, 8);
}

static void test_locks(void **state)
{
    (void)state;
    assert_int_equal(sizeof(KSPIN_LOCK), 8);
    assert_int_equal(sizeof(KSPIN_LOCK_QUEUE), 0x10);
    WHOLE(KSPIN_LOCK_QUEUE, Next, 0, 8);
    WHOLE(KSPIN_LOCK_QUEUE, Lock, 8, 8);
    assert_int_equal(sizeof(KLOCK_QUEUE_HANDLE), 0x18);
    WHOLE(KLOCK_QUEUE_HANDLE, LockQueue, 0, 0x10);
    PLACE(KLOCK_QUEUE_HANDLE, OldIrql, 0x10, 0, 8);

    assert_int_equal(sizeof(FAST_MUTEX), 0x38);
    PLACE(FAST_MUTEX, Count, 0x00, 0, 32);
    WHOLE(FAST_MUTEX, Owner, 0x08, 8);
    PLACE(FAST_MUTEX, Contention, 0x10, 0, 32);
    WHOLE(FAST_MUTEX, Event, 0x18, 0x18);
    PLACE(FAST_MUTEX, OldIrql, 0x30, 0, 32);

    assert_int_equal(sizeof(OWNER_ENTRY), 0x10);
    PLACE(OWNER_ENTRY, OwnerThread, 0, 0, 64);
    PLACE(OWNER_ENTRY, IoPriorityBoosted, 8, 0, 1);
    PLACE(OWNER_ENTRY, OwnerReferenced, 8, 1, 1);
    PLACE(OWNER_ENTRY, OwnerCount, 8, 2, 30);
    PLACE(OWNER_ENTRY, TableSize, 8, 0, 32);

    assert_int_equal(sizeof(ERESOURCE), 0x68);
    WHOLE(ERESOURCE, SystemResourcesList, 0x00, 16);
    WHOLE(ERESOURCE, OwnerTable, 0x10, 8);
    PLACE(ERESOURCE, ActiveCount, 0x18, 0, 16);
    PLACE(ERESOURCE, Flag, 0x1a, 0, 16);
    PLACE(ERESOURCE, ReservedLowFlags, 0x1a, 0, 8);
    PLACE(ERESOURCE, WaiterPriority, 0x1b, 0, 8);
    WHOLE(ERESOURCE, SharedWaiters, 0x20, 8);
    WHOLE(ERESOURCE, ExclusiveWaiters, 0x28, 8);
    WHOLE(ERESOURCE, OwnerEntry, 0x30, 16);
    PLACE(ERESOURCE, ActiveEntries, 0x40, 0, 32);
    PLACE(ERESOURCE, ContentionCount, 0x44, 0, 32);
    PLACE(ERESOURCE, NumberOfSharedWaiters, 0x48, 0, 32);
    PLACE(ERESOURCE, NumberOfExclusiveWaiters, 0x4c, 0, 32);
    WHOLE(ERESOURCE, Reserved2, 0x50, 8);
    WHOLE(ERESOURCE, Address, 0x58, 8);
    PLACE(ERESOURCE, CreatorBackTraceIndex, 0x58, 0, 64);
    PLACE(ERESOURCE, SpinLock, 0x60, 0, 64);

    assert_int_equal(sizeof(EX_PUSH_LOCK), 8);
    assert_int_equal(sizeof(EX_RUNDOWN_REF), 8);
    PLACE(EX_RUNDOWN_REF, Count, 0, 0, 64);
    WHOLE(EX_RUNDOWN_REF, Ptr, 0, 8);
    assert_int_equal(sizeof(EX_FAST_REF), 8);
    PLACE(EX_FAST_REF, RefCnt, 0, 0, 4);
    PLACE(EX_FAST_REF, Value, 0, 0, 64);
    assert_int_equal(sizeof(SLIST_HEADER), 0x10);
    PLACE(SLIST_HEADER, HeaderX64.Depth, 0, 0, 16);
    PLACE(SLIST_HEADER, HeaderX64.Sequence, 2, 0, 48);
    PLACE(SLIST_HEADER, HeaderX64.Reserved, 8, 0, 4);
    PLACE(SLIST_HEADER, HeaderX64.NextEntry, 8, 4, 60);
}

static void check_header(PDISPATCHER_HEADER header, UCHAR type, UCHAR byte1, UCHAR byte2, UCHAR byte3)
{
    const UCHAR *bytes = (const UCHAR *)header;
    assert_int_equal(bytes[0], type);
    assert_int_equal(bytes[1], byte1);
    assert_int_equal(bytes[2], byte2);
    assert_int_equal(bytes[3], byte3);
    assert_true(IsListEmpty(&header->WaitListHead));
}

/* A thread's byte 2 are its ThreadControlFlags: none of profiling, tags or throttling is in use. */
static void test_thread(void **state)
{
    PKTHREAD self = KeGetCurrentThread();
    (void)state;
    assert_int_equal(self->Header.ThreadType & KOBJECT_TYPE_MASK, ThreadObject);
    assert_int_equal(self->Header.ThreadReserved, 0);
    assert_int_equal(self->Header.ThreadControlFlags, 0);
    assert_int_equal(self->Header.DebugActive, 0);
    assert_int_equal(KiInitialProcess.Header.Type & KOBJECT_TYPE_MASK, ProcessObject);
    assert_int_equal(KiInitialProcess.Header.Size, sizeof(KPROCESS) / 4);
}

static void never(PEX_TIMER timer, PVOID context)
{
    (void)timer;
    (void)context;
}

/* Bytes 2 and 3 of an executive timer name its component: the wheel that it is filed in keeps out of them. */
static void test_executive_timer(void **state)
{
    static const LONGLONG minute = -600000000;
    (void)state;
    for (ULONG notification = 0; notification < 2; notification += 1) {
        PEX_TIMER timer = ExAllocateTimer(never, NULL, notification ? EX_TIMER_NOTIFICATION : 0);
        UCHAR type = notification ? TimerNotificationObject : TimerSynchronizationObject;
        PDISPATCHER_HEADER header = (PDISPATCHER_HEADER)timer;
        assert_non_null(timer);
        check_header(header, type, 0, 0, 0);
        assert_false(ExSetTimer(timer, minute, 0, NULL));
        check_header(header, type, 0x01, 0, 0);
        assert_true(ExSetTimer(timer, minute, 600000000, NULL));
        check_header(header, type, 0x01, 0, 0);
        assert_true(ExCancelTimer(timer, NULL));
        check_header(header, type, 0, 0, 0);
        /* at once, and then a period later */
        assert_false(ExSetTimer(timer, 1, 600000000, NULL));
        KeFlushQueuedDpcs();
        assert_int_equal(header->Timer2Inserted, 1);
        assert_int_equal(header->Timer2ComponentId, 0);
        assert_int_equal(header->Timer2RelativeId, 0);
        assert_true(ExDeleteTimer(timer, TRUE, TRUE, NULL));
    }
}

/* By which the debugger recognizes the layout of another build: FNV-1a of what it lists, so not that of nothing. */
static void test_layout_hash(void **state)
{
    (void)state;
    assert_true(KdDebuggerDataBlock.LayoutHash == KdpLayoutHash());
    assert_true(KdpLayoutHash() != 0xcbf29ce484222325ull);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dispatcher_header),
        cmocka_unit_test(test_wait_structures),
        cmocka_unit_test(test_dispatcher_objects),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_locks),
        cmocka_unit_test(test_thread),
        cmocka_unit_test(test_executive_timer),
        cmocka_unit_test(test_layout_hash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
