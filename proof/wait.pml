/*
 * wait.pml: the wait engine (docs/wait-engine.md, src/ke/register.c, dispatch.c, wait.c) in Promela.
 *
 * Two objects with a count and a lock each, whose lists of waiters are first in, first out. Two waiting threads with a wait
 * status register each. A step is what the code does by one atomic operation or under a lock that it holds. Not modelled: the
 * fast path without waiters, dormant blocks (a WaitAll is eligible at each of its objects), suspension.
 *
 *     -DKIND0=K -DKIND1=K   of the waits: ANY, ALL; with TIMED or ALERTABLE added
 *     -DRELEASES0=n -DRELEASES1=n   signals of each object; -DALERTS=n -DAPCS=n at the first thread
 *     -DBUG_...   a fault that spin must find: a property that cannot fail proves nothing
 *
 * Properties, from docs/wait-engine.md:
 *   1. A wait is ended exactly once, for one reason. Only the thread that clears Active consumes an object for the wait.
 *   2. No wake is lost: each thread ends (an invalid end state otherwise), and while an object's lock is held, no active wait
 *      that the object could satisfy is on its list.
 *   3. All or nothing: a WaitAll takes both objects with both locks held.
 *   4. No thread touches a wait after its function has returned: the ender's last access is the store to WakeWord.
 *   5. Every released count was taken by a wait that ended for this reason, or is still in the object.
 */
#define ANY       1
#define ALL       2
#define TIMED     4
#define ALERTABLE 8

#ifndef KIND0
#define KIND0 ANY
#endif
#ifndef KIND1
#define KIND1 ANY
#endif
#ifndef RELEASES0
#define RELEASES0 1
#endif
#ifndef RELEASES1
#define RELEASES1 1
#endif
#ifndef ALERTS
#define ALERTS 0
#endif
#ifndef APCS
#define APCS 0
#endif

#define NOBODY 2
#define KIND(w) (w == 0 -> KIND0 : KIND1)
#define IS_ALL(w) ((KIND(w) & ALL) != 0)
#define IS_TIMED(w) ((KIND(w) & TIMED) != 0)
#define IS_ALERTABLE(w) ((KIND(w) & ALERTABLE) != 0)

mtype = { InProgress, Committed, Aborted };
mtype = { Signaled, TimedOut, Alerted, KernelApc };

typedef object {
    bit locked;
    byte count;
    byte list[2]; /* the first, the second */
};

typedef thread {
    bit ongoing; /* the register: Active, */
    mtype state;
    bit alert, apc;
    bit wake;    /* WakeWord */
    mtype status;
    bit inside;  /* ghosts: in the wait function; how often this wait was ended */
    byte ends;
};

object o[2];
thread t[2];
byte released[2], taken[2], taken_by_all[2], granted;

#define LOCK(i)   atomic { !o[i].locked -> o[i].locked = 1 }
#define UNLOCK(i) o[i].locked = 0

/* A block on the list of a locked object. */
inline link(at, who)
{
    if
    :: o[at].list[0] == NOBODY -> o[at].list[0] = who
    :: else -> o[at].list[1] = who
    fi
}

inline unlink(from, gone)
{
    if
    :: o[from].list[0] == gone -> o[from].list[0] = o[from].list[1]; o[from].list[1] = NOBODY
    :: o[from].list[1] == gone -> o[from].list[1] = NOBODY
    :: else
    fi
}

inline consume(what, taker)
{
    assert(o[what].count > 0);
    o[what].count--;
    taken[what]++;
    if
    :: IS_ALL(taker) -> taken_by_all[what]++
    :: else
    fi
}

/* KiEndWait: one compare-exchange decides which thread has ended the wait. */
inline end_wait(whose, reason, success)
{
    if
    :: t[whose].ongoing ->
        if
        :: t[whose].state == InProgress -> t[whose].state = Aborted
        :: else
        fi;
        t[whose].ongoing = 0;
        t[whose].ends++;
        t[whose].status = reason;
        success = 1
    :: else -> success = 0
    fi
}

/* KiReadyThread: the last access to the wait. */
inline wake_up(sleeper)
{
    assert(t[sleeper].inside);
    t[sleeper].wake = 1
}

/* Releases waiters of object i, under all locks that the signal needs. (A formal must not occur in its own actual: spin would not end.) */
inline release_waiters()
{
    place = 0;
    do
    :: place == 2 || o[i].count == 0 || o[i].list[place] == NOBODY -> break
    :: else ->
        w = o[i].list[place];
        if
        :: IS_ALL(w) && o[1 - i].count == 0 -> place++
        :: else ->
#ifdef BUG_CONSUME_FIRST /* before the register is won */
            consume(i, w);
            end_wait(w, Signaled, won);
            if
            :: won && IS_ALL(w) -> consume(1 - i, w)
            :: else
            fi;
#else
            end_wait(w, Signaled, won);
            if
            :: won ->
                consume(i, w);
                if
                :: IS_ALL(w) -> consume(1 - i, w); unlink(1 - i, w)
                :: else
                fi
            :: else
            fi;
#endif
            if
            :: won -> unlink(i, w); woken[w] = 1
            :: else -> place++
            fi
        fi
    od
}

proctype Signaler(byte i)
{
    byte place, w;
    bit won, woken[2], both;

again:
    LOCK(i);
    both = (o[i].list[0] != NOBODY && IS_ALL(o[i].list[0])) || (o[i].list[1] != NOBODY && IS_ALL(o[i].list[1]));
#ifdef BUG_ALL_ONE_LOCK /* of a WaitAll only the signaled object is locked */
    both = 0;
#endif
    /* Blocks on the higher address, tries the lower one: it has changed nothing yet and starts over. */
    if
    :: both && i == 0 -> LOCK(1)
    :: both && i == 1 ->
        atomic {
            if
            :: !o[0].locked -> o[0].locked = 1
            :: else -> UNLOCK(1); goto again
            fi
        }
    :: else
    fi;
    o[i].count++;
    released[i]++;
#ifdef BUG_ALL_ONE_LOCK
    release_waiters();
#else
    d_step { release_waiters() } /* the locks of all objects that it touches are held */
#endif
    if
    :: both -> UNLOCK(1 - i)
    :: else
    fi;
    UNLOCK(i);
    w = 0;
    do
    :: w == 2 -> break
    :: else ->
        if
        :: woken[w] -> wake_up(w)
        :: else
        fi;
        w++
    od
}

/* KeAlertThread, KeInsertQueueApc: one compare-exchange sets the bit, or ends a committed wait. */
proctype Alerter(byte w)
{
    bit won;

    atomic {
        if
        :: t[w].ongoing && t[w].state == Committed && IS_ALERTABLE(w) -> end_wait(w, Alerted, won)
        :: else -> t[w].alert = 1
        fi
    }
    if
    :: won -> wake_up(w)
    :: else
    fi
}

proctype ApcSender(byte w)
{
    bit won;

    atomic {
        t[w].apc = 1;
        if
        :: t[w].ongoing && t[w].state == Committed -> end_wait(w, KernelApc, won)
        :: else
        fi
    }
    if
    :: won -> wake_up(w)
    :: else
    fi
}

proctype Waiter(byte me)
{
    byte i;
    bit won;

begin:
    atomic {
        t[me].inside = 1;
        t[me].ends = 0;
        t[me].wake = 0;
        if
        :: IS_ALERTABLE(me) && t[me].alert -> t[me].alert = 0; t[me].ends = 1; t[me].status = Alerted; goto leave
        :: else -> t[me].ongoing = 1; t[me].state = InProgress
        fi
    }
    /* link */
    if
    :: IS_ALL(me) ->
        LOCK(0);
        LOCK(1);
        if
        :: o[0].count > 0 && o[1].count > 0 ->
            atomic { end_wait(me, Signaled, won) }
            if
            :: won -> d_step { consume(0, me); consume(1, me) }
            :: else
            fi
        :: else -> d_step { link(0, me); link(1, me); won = 0 }
        fi;
        UNLOCK(1);
        UNLOCK(0);
        if
        :: won -> goto leave
        :: else
        fi
    :: else ->
        i = 0;
        do
        :: i == 2 -> break
        :: else ->
            LOCK(i);
            bit signaled = o[i].count > 0;
            if
            :: signaled ->
                atomic { end_wait(me, Signaled, won) }
                if
                :: won -> consume(i, me); UNLOCK(i); goto unlink_all
                :: else -> UNLOCK(i); goto ended
                fi
            :: else -> d_step { link(i, me) }; UNLOCK(i)
            fi;
            i++
        od
    fi;
    /* commit */
    atomic {
        if
        :: !t[me].ongoing -> goto ended
#ifndef BUG_COMMIT_BLIND /* pending alerts and APCs are checked only when the wait begins */
        :: t[me].ongoing && IS_ALERTABLE(me) && t[me].alert -> t[me].alert = 0; end_wait(me, Alerted, won); goto unlink_all
        :: t[me].ongoing && !(IS_ALERTABLE(me) && t[me].alert) && t[me].apc -> end_wait(me, KernelApc, won); goto unlink_all
        :: t[me].ongoing && !(IS_ALERTABLE(me) && t[me].alert) && !t[me].apc -> t[me].state = Committed
#else
        :: else -> t[me].state = Committed
#endif
        fi
    }
    /* park */
    if
    :: t[me].wake -> goto unlink_all
    :: IS_TIMED(me) ->
#ifdef BUG_TIMEOUT_WINS /* leaves without checking the register */
        t[me].ongoing = 0; t[me].ends++; t[me].status = TimedOut; goto unlink_all
#else
        atomic { end_wait(me, TimedOut, won) }
        if
        :: won -> goto unlink_all
        :: else
        fi
#endif
    fi;
ended:
#ifndef BUG_LEAVE_EARLY /* another thread has ended it, and may not have stored WakeWord yet */
    t[me].wake;
#endif
unlink_all:
    i = 0;
    do
    :: i == 2 -> break
    :: else -> LOCK(i); d_step { unlink(i, me) }; UNLOCK(i); i++
    od;
leave:
    assert(t[me].ends == 1 && !t[me].ongoing);
    atomic {
        t[me].inside = 0;
        if
        :: t[me].status == Signaled -> granted = granted + (IS_ALL(me) -> 2 : 1)
        :: else
        fi;
        if
        :: t[me].status == KernelApc -> t[me].apc = 0; goto begin
        :: else
        fi
    }
}

/* For any thread that holds both locks. */
proctype Observer()
{
    LOCK(0);
    LOCK(1);
    assert(taken_by_all[0] == taken_by_all[1]);
    byte i, p;
    for (i : 0 .. 1) {
        for (p : 0 .. 1) {
            if
            :: o[i].list[p] != NOBODY && t[o[i].list[p]].ongoing ->
                assert(o[i].count == 0 || (IS_ALL(o[i].list[p]) && o[1 - i].count == 0))
            :: else
            fi
        }
    }
    UNLOCK(1);
    UNLOCK(0)
}

#define START(Count, Process) i = 0; do :: i < Count -> run Process; i++ :: else -> break od

init {
    byte i;

    atomic {
        for (i : 0 .. 1) {
            o[i].list[0] = NOBODY;
            o[i].list[1] = NOBODY
        }
        run Waiter(0);
        run Waiter(1);
        START(RELEASES0, Signaler(0))
        START(RELEASES1, Signaler(1))
        START(ALERTS, Alerter(0))
        START(APCS, ApcSender(0))
        run Observer()
    }
    _nr_pr == 1;
    assert(released[0] == taken[0] + o[0].count && released[1] == taken[1] + o[1].count);
    assert(taken_by_all[0] == taken_by_all[1] && taken[0] + taken[1] == granted);
    assert(o[0].list[0] == NOBODY && o[1].list[0] == NOBODY)
}
