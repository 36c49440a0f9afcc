/* timertable.c: the timing wheel. Theory in timertable.h. */
#include "timertable.h"

#define KI_WHEEL_TIMED_LEVELS ((1u << KI_WHEEL_LEVELS) - 1)

FORCEINLINE BOOLEAN KiIsSlotOccupied(PKI_WHEEL Wheel, ULONG Number)
{
    return (Wheel->Occupied[Number / KI_WHEEL_SLOTS] >> (Number % KI_WHEEL_SLOTS)) & 1;
}

FORCEINLINE VOID KiMarkSlotOccupied(PKI_WHEEL Wheel, ULONG Number)
{
    Wheel->Occupied[Number / KI_WHEEL_SLOTS] |= 1ULL << (Number % KI_WHEEL_SLOTS);
    Wheel->OccupiedLevels |= 1u << (Number / KI_WHEEL_SLOTS);
}

FORCEINLINE VOID KiMarkSlotEmpty(PKI_WHEEL Wheel, ULONG Number)
{
    ULONG Level = Number / KI_WHEEL_SLOTS;
    Wheel->Occupied[Level] &= ~(1ULL << (Number % KI_WHEEL_SLOTS));
    if (Wheel->Occupied[Level] == 0) {
        Wheel->OccupiedLevels &= ~(1u << Level);
    }
}

/* The list head of a slot, made valid if the slot was empty; from now on it is occupied. */
FORCEINLINE PKI_WHEEL_SLOT KiOpenSlot(PKI_WHEEL Wheel, ULONG Number)
{
    PKI_WHEEL_SLOT Slot = &Wheel->Slot[Number];
    if (!KiIsSlotOccupied(Wheel, Number)) {
        InitializeListHead(&Slot->List);
        Slot->Earliest = KI_TIME_NEVER;
        KiMarkSlotOccupied(Wheel, Number);
    }
    return Slot;
}

FORCEINLINE ULONG KiSlotForTime(PKI_WHEEL Wheel, ULONG64 Time)
{
    if (Time <= Wheel->Time) {
        return KI_WHEEL_DUE;
    }
    ULONG Level = (63 - (ULONG)__builtin_clzll(Time ^ Wheel->Time)) / KI_WHEEL_DIGIT;
    ULONG Digit = (ULONG)(Time >> (Level * KI_WHEEL_DIGIT)) % KI_WHEEL_SLOTS;
    return Level * KI_WHEEL_SLOTS + Digit;
}

ULONG KiFileTimer(PKI_WHEEL Wheel, PKTIMER Timer)
{
    ULONG64 Key = KiTimerKey(Timer);
    ULONG Number = KiSlotForTime(Wheel, Key);
    PKI_WHEEL_SLOT Slot = KiOpenSlot(Wheel, Number);
    if (Key < Slot->Earliest) {
        Slot->Earliest = Key;
    }
    InsertTailList(&Slot->List, &Timer->TimerListEntry);
    return Number;
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

static BOOLEAN KiFileCascade(PKI_WHEEL Wheel, PULONG Budget)
{
    while (KiIsSlotOccupied(Wheel, KI_WHEEL_CASCADE)) {
        PLIST_ENTRY Entry = Wheel->Slot[KI_WHEEL_CASCADE].List.Flink;
        PKTIMER Timer = CONTAINING_RECORD(Entry, KTIMER, TimerListEntry);
        if (*Budget == 0) {
            return FALSE;
        }
        *Budget -= 1;
        KiTakeOutTimer(Wheel, Timer);
        KiFileTimer(Wheel, Timer);
    }
    return TRUE;
}

/* With an earlier time every timer may belong elsewhere. Those that were found due stay so. */
static VOID KiSetWheelBack(PKI_WHEEL Wheel, ULONG64 Time)
{
    ULONG Number;
    while (KiFindFirstSlot(Wheel, &Number)) {
        KiMoveSlot(Wheel, Number, KI_WHEEL_CASCADE);
    }
    Wheel->Time = Time;
}

BOOLEAN KiTurnWheel(PKI_WHEEL Wheel, ULONG64 Time, ULONG Budget)
{
    ULONG Number;
    if (Time < Wheel->Time) {
        KiSetWheelBack(Wheel, Time);
    }
    for (;;) {
        if (!KiFileCascade(Wheel, &Budget)) {
            return FALSE;
        }
        if (!KiFindFirstSlot(Wheel, &Number) || KiBeginningOfSlot(Wheel, Number) > Time) {
            break;
        }
        Wheel->Time = KiBeginningOfSlot(Wheel, Number);
        KiMoveSlot(Wheel, Number, Number < KI_WHEEL_SLOTS ? KI_WHEEL_DUE : KI_WHEEL_CASCADE);
    }
    Wheel->Time = Time;
    return TRUE;
}
