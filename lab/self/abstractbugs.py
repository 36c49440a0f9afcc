#!/usr/bin/env python3
"""Bugs planted in code that waits are found although its waits are single steps (--abstract), bugs planted in the wait engine although its
locks and sleeps are (--abstract-locks), and bugs planted in locks and sleeps by their own rows. Each is a change of one line of the
library. usage: abstractbugs.py BUILD"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "lab" / "mutation"))
sys.dont_write_bytecode = True

import explorer  # noqa: E402

SCHEDULES = 20000
BUGS = (  # what is wrong, file, text, replacement, row of the grid, model
    ("a release never wakes", "src/ex/fastmutex.c", "if (New != EXP_FREE && !(Word & EXP_WOKEN)) {", "if (New == EXP_FREE) {",
     "fast_mutex_2x3", "sc"),
    ("the woken waiter stays woken when it loses", "src/ex/fastmutex.c", "(Word & ~EXP_WOKEN) + NewlyStarving", "Word + NewlyStarving",
     "fast_mutex_2x3", "sc"),
    ("nothing is acquired", "src/ex/fastmutex.c", "Word, New, FALSE, __ATOMIC_ACQ_REL", "Word, New, FALSE, __ATOMIC_RELEASE",
     "fast_mutex_2x3", "c11"),
    ("a sleeper is not woken", "src/ex/pushlock.c", "__ATOMIC_RELEASE) == ExpSleeping", "__ATOMIC_RELEASE) == ExpAwake",
     "pushlock_2x3", "sc"),
    ("a waiter sleeps after it was woken", "src/ex/pushlock.c", "if (ExpFallAsleep(Block)) {", "if (ExpFallAsleep(Block) || TRUE) {",
     "pushlock_2x3", "sc"),
    ("a release with waiters does not hand off", "src/ex/pushlock.c", "    if (!(Found & WAKING)) {\n        ExpPassOnPushLock",
     "    if (Found & WAKING) {\n        ExpPassOnPushLock", "pushlock_2x3", "sc"),
    ("the second granted sharer is not counted", "src/ex/pushlock.c", "        Youngest = Youngest->Previous;\n        Count += 1;",
     "        Youngest = Youngest->Previous;\n        Count += Count == 0;", "pushlock_4x1", "sc"),
    ("the waker's work is not seen", "src/rtl/srwlock.c", "&Block->Woken, TRUE, __ATOMIC_RELEASE", "&Block->Woken, FALSE, __ATOMIC_RELEASE",
     "srw_lock_2x3", "sc"),
    ("no alert", "src/rtl/srwlock.c", "    KeAlertThreadById(Thread);", "    (void)Thread;", "srw_lock_2x3", "sc"),
    ("admitted sharers are not woken", "src/ex/resource.c", "KeReleaseSemaphore(&Block->Semaphore, IO_NO_INCREMENT, 1, FALSE);", "(void)Block;",
     "resource_2x3", "sc"),
    ("waiters of a rundown are not woken", "src/ex/rundown.c", "        KeSetEvent(&Block->WakeEvent, IO_NO_INCREMENT, FALSE);", "",
     "rundown_3x2", "sc"),
    ("both sides of a keyed event wait", "src/ex/waiterhash.c", "    if (Found == NULL) {\n        ExpInsertWaiter(Bucket, &Self.Waiter);",
     "    if (Found == NULL && Timeout == NULL) {\n        ExpInsertWaiter(Bucket, &Self.Waiter);", "keyed_event_2x3", "sc"),
    ("a waiter is asleep and is not alerted", "src/rtl/addresswait.c", "__ATOMIC_ACQ_REL) == RtlpAsleep", "__ATOMIC_ACQ_REL) == RtlpAwake",
     "address_wait_2x3", "sc"),
    ("a waiter does not compare", "src/rtl/addresswait.c", "    if (ExpIsSameValue(Address, CompareAddress, AddressSize)) {\n        if (!Spins",
     "    if (CompareAddress != NULL) {\n        if (!Spins", "address_wait_2x3", "sc"),
    ("the last thread of a round wakes nobody", "src/rtl/barrier.c", "        RtlWakeAddressAll((PVOID)&Barrier->Round);", "", "barrier_2x3", "sc"),
)
BUGS_OF_ENGINE = (
    ("no signal ends a committed wait", "src/ke/register.c", "        case WaitCommitted:\n            break;",
     "        case WaitCommitted:\n            return KI_NOT_ENDED;", "synchronization_event_2x3", "sc"),
    ("a timeout leaves its block on the list", "src/ke/wait.c", "__ATOMIC_ACQUIRE) != WaitBlockActive) {\n            continue;",
     "__ATOMIC_ACQUIRE) == WaitBlockActive) {\n            continue;", "synchronization_event_2x3", "sc"),
    ("the thread that is woken does not see why", "src/ke/dispatch.c", "KI_WOKEN, __ATOMIC_ACQ_REL", "KI_WOKEN, __ATOMIC_RELAXED",
     "queue_2x3", "c11"),
    ("a waiting thread gets no entry", "src/ke/queue.c", "if (__builtin_expect(IsListEmpty(&Queue->Header.WaitListHead), TRUE)) {",
     "if (__builtin_expect(Queue != NULL, TRUE)) {", "queue_2x3", "sc"),
)
BUGS_OF_LOCKS = (
    ("a waiter takes a lock that is held", "src/ke/spinlock.c", "return __atomic_load_n((PKI_LOCK)Lock, __ATOMIC_RELAXED) == 0 && KiTryAcquireLock(Lock);",
     "return __atomic_load_n((PKI_LOCK)Lock, __ATOMIC_RELAXED) == 0 || KiTryAcquireLock(Lock);", "kernel_lock_2x3", "sc"),
    ("a waiter takes an object that is locked", "src/ke/dispatch.c", "while (!KiTryLockObject(Header, &Word)) {",
     "while (Word = KiReadHeader(Header) | KI_LOCKED, FALSE) {", "object_lock_2x3", "sc"),
    ("a sleeper is not woken", "src/ke/dispatch.c", "KI_WOKEN, __ATOMIC_ACQ_REL) == KI_SLEEPING", "KI_WOKEN, __ATOMIC_ACQ_REL) == KI_AWAKE",
     "sleep_2x3", "sc"),
    ("a sleeper does not see the waker's work", "src/ke/dispatch.c", "KI_WOKEN, __ATOMIC_ACQ_REL", "KI_WOKEN, __ATOMIC_ACQUIRE", "sleep_2x3", "c11"),
)


def main():
    directory = Path(sys.argv[1])
    build = explorer.Build(ROOT, directory, programs={"grid": "lab/lab-grid"})
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        shop = explorer.Workshop(build, Path(folder) / "workshop")
        planted = [(bug, options) for bugs, options in ((BUGS, ["--abstract"]), (BUGS_OF_ENGINE, ["--abstract-locks"]), (BUGS_OF_LOCKS, []))
                   for bug in bugs]
        for number, ((name, path, text, replacement, row, model), options) in enumerate(planted, 1):
            source = (ROOT / path).read_text()
            verdict = f"the text is {source.count(text)} times in {path}"
            if source.count(text) == 1:
                objects = shop.objects({path: source.replace(text, replacement)}, build.users_of(path, ""))
                program = shop.program("grid", objects)
                verdict = explorer.run(program, ["--brief", *options, "--strategy", "states"], [f"grid_{row}"], model, SCHEDULES)[0][1]
            found = verdict is not None and not verdict.startswith(("the text", "unsupported", "the explorer", "the program"))
            print(f"{'ok' if found else 'not ok'} {number} - {Path(path).stem}: {name}: {verdict or 'not found'}", flush=True)
    print(f"1..{len(planted)}")


main()
