/* timertable.c: the timing wheel. Theory in timertable.h. */
#include "timertable.h"

#define KI_WHEEL_TIMED_LEVELS ((1u << KI_WHEEL_LEVELS) - 1)

FORCEINLINE VOID KiMarkSlotEmpty(PKI_WHEEL Wheel, ULONG Number)
{
    ULONG Level = Number / KI_WHEEL_SLOTS;
    Wheel->Occupied[Level] &= ~(1ULL << (Number % KI_WHEEL_SLOTS));
    if (Wheel->Occupied[Level] == 0) {
        Wheel->OccupiedLevels &= ~(1u << Level);
    }
}

VOID KiMakeTimerDue(PKI_WHEEL Wheel, PKTIMER Timer)
{
    InsertHeadList(&KiOpenSlot(Wheel, KI_WHEEL_DUE)->List, &Timer->TimerListEntry);
}

VOID KiTakeOutTimer(PKI_WHEEL Wheel, PKTIMER Timer)
{
    PLIST_ENTRY Head = Timer->TimerListEntry.Flink;
    if (RemoveEntryList(&Timer->TimerListEntry)) {
        KiMarkSlotEmpty(Wheel, (ULONG)(CONTAINING_RECORD(Head, KI_WHEEL_SLOT, List) - Wheel->Slot));
    }
}

PKTIMER KiNextDueTimer(PKI_WHEEL Wheel, PKTIMER Previous)
{
    PLIST_ENTRY Head = &Wheel->Slot[KI_WHEEL_DUE].List;
    if (!KiIsSlotOccupied(Wheel, KI_WHEEL_DUE)) {
        return NULL;
    }
    PLIST_ENTRY Entry = Previous == NULL ? Head->Flink : Previous->TimerListEntry.Flink;
    return Entry == Head ? NULL : CONTAINING_RECORD(Entry, KTIMER, TimerListEntry);
}

static BOOLEAN KiFindFirstSlot(PKI_WHEEL Wheel, PULONG Number)
{
    ULONG Levels = Wheel->OccupiedLevels & KI_WHEEL_TIMED_LEVELS;
    if (Levels == 0) {
        return FALSE;
    }
    ULONG Level = (ULONG)__builtin_ctz(Levels);
    *Number = Level * KI_WHEEL_SLOTS + (ULONG)__builtin_ctzll(Wheel->Occupied[Level]);
    return TRUE;
}

ULONG64 KiNextWheelTime(PKI_WHEEL Wheel)
{
    ULONG Number;
    if (Wheel->OccupiedLevels & ~KI_WHEEL_TIMED_LEVELS) {
        return 0;
    }
    return KiFindFirstSlot(Wheel, &Number) ? Wheel->Slot[Number].Earliest : KI_TIME_NEVER;
}

/* The earliest time that belongs to a slot: the wheel's digits above, the slot's own, zeroes below. */
static ULONG64 KiBeginningOfSlot(PKI_WHEEL Wheel, ULONG Number)
{
    ULONG Shift = Number / KI_WHEEL_SLOTS * KI_WHEEL_DIGIT;
    ULONG64 Above = Wheel->Time >> Shift & ~(ULONG64)(KI_WHEEL_SLOTS - 1);
    return (Above | Number % KI_WHEEL_SLOTS) << Shift;
}

static VOID KiMoveSlot(PKI_WHEEL Wheel, ULONG From, ULONG To)
{
    PLIST_ENTRY Source = &Wheel->Slot[From].List;
    PLIST_ENTRY First = Source->Flink;
    PLIST_ENTRY Target = &KiOpenSlot(Wheel, To)->List;
    RemoveEntryList(Source);
    AppendTailList(Target, First);
    KiMarkSlotEmpty(Wheel, From);
}

/* Only the rest is linked to the head again: a timer's memory is not touched before its turn. */
static BOOLEAN KiFileCascade(PKI_WHEEL Wheel, PULONG Budget)
{
    PLIST_ENTRY Head = &Wheel->Slot[KI_WHEEL_CASCADE].List;
    PLIST_ENTRY Next;
    if (!KiIsSlotOccupied(Wheel, KI_WHEEL_CASCADE)) {
        return TRUE;
    }
    PLIST_ENTRY Entry = Head->Flink;
    for (; Entry != Head && *Budget != 0; Entry = Next) {
        Next = Entry->Flink;
        __builtin_prefetch(Next, 1);
        KiFileTimer(Wheel, CONTAINING_RECORD(Entry, KTIMER, TimerListEntry));
        *Budget -= 1;
    }
    if (Entry == Head) {
        KiMarkSlotEmpty(Wheel, KI_WHEEL_CASCADE);
        return TRUE;
    }
    Head->Flink = Entry;
    Entry->Blink = Head;
    return FALSE;
}

BOOLEAN KiTurnWheel(PKI_WHEEL Wheel, ULONG64 Time, ULONG Budget)
{
    ULONG Number;
    if (Time < Wheel->Time) {
        /* With an earlier time every timer may belong elsewhere. Those that were found due stay so. */
        while (KiFindFirstSlot(Wheel, &Number)) {
            KiMoveSlot(Wheel, Number, KI_WHEEL_CASCADE);
        }
        Wheel->Time = Time;
    }
    for (;;) {
        if (!KiFileCascade(Wheel, &Budget)) {
            return FALSE;
        }
        if (!KiFindFirstSlot(Wheel, &Number) || KiBeginningOfSlot(Wheel, Number) > Time) {
            break;
        }
        if (Wheel->Slot[Number].Latest <= Time) {
            KiMoveSlot(Wheel, Number, KI_WHEEL_DUE);
        } else {
            Wheel->Time = KiBeginningOfSlot(Wheel, Number);
            KiMoveSlot(Wheel, Number, KI_WHEEL_CASCADE);
        }
    }
    Wheel->Time = Time;
    return TRUE;
}
