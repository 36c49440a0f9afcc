/*
 * world.pml: the shared world of processes (src/wo/wo.h, lock.c, object.c, wait.c, process.c) in Promela.
 *
 * Three processes share a mutant. Two of them (ACTORS) acquire it and release it; each has a guard that cleans up after dead
 * processes. A process may be killed before each of its stores: what it stored stays. A step is one store, one compare-exchange, or one edit of a list.
 * The journal has one entry for the mutant's word and one for its list; memory is sequentially consistent.
 *
 *     -DACTORS=n    processes that use the mutant
 *     -DKILLS=n     processes that may be killed
 *     -DTIMED=n     the processes 0 to n - 1 may give up waiting
 *     -DBUG_...     a fault that spin must find: a property that cannot fail proves nothing
 *
 * Properties, from src/wo/wo.h and docs/wait-engine.md:
 *   1. Exclusion: the process in the critical section is the owner, and alone there, whichever process died at whatever step.
 *   2. Whole or not at all: the owner of the lock, once it has repaired, finds the journal idle, and a free mutant without a
 *      waiter that could have it.
 *   3. Abandonment is reported once: to the next owner after a killed one, and to no other.
 *   4. No wake is lost: each process that lives ends (an invalid end state otherwise), and what the dead had is cleaned up.
 *   5. A wait is ended by one side: a wait that gave up is not granted.
 */
#ifndef KILLS
#define KILLS 1
#endif
#ifndef ACTORS
#define ACTORS 2
#endif
#ifndef TIMED
#define TIMED 0
#endif

#define N 3
#define NOBODY N
#define ALIVE(p) (p != NOBODY && alive[p])

mtype = { Idle, Waiting, Claimed, Granted, Local }; /* of a waiter */
mtype = { Nothing, Editing, Finishing };            /* of the journal */

bit alive[N + 1];

/* The world: what is in the file. */
byte holder = NOBODY; /* of the lock */
byte owner = NOBODY;  /* the mutant's word: with the next two */
bit abandoned, frozen;
byte list[N];         /* its waiters, first in, first out */
mtype state[N] = Idle;
byte number[N];       /* of the wait: part of the state */
bit recheck[N], wake[N], status[N]; /* status: abandoned */
bit owned[N], pending[N], cleaned[N];
mtype phase = Nothing;
bit word_saved, list_saved, posts;
byte old_owner, old_list[N], post, post_number;
bit old_abandoned;

#ifdef BUG_EDIT_FIRST
byte kept_owner;
bit kept_abandoned;
#endif

/* Ghosts. */
byte real_owner = NOBODY; /* by the stores that decide */
bit untold;               /* an owner has died, or was dead when it became the owner, and no owner has learned of it since */
bit should_tell[N];
byte inside = NOBODY;
bit done[N];
byte kills;

#define TAKE(p, told) \
    told = abandoned; owner = p; abandoned = 0; \
    should_tell[p] = untold; untold = 0; real_owner = p

/* The journal. */

inline begin()
{
    word_saved = 0;
    list_saved = 0;
    posts = 0;
    phase = Editing
}

inline edit_word(new_owner, new_abandoned)
{
#ifdef BUG_EDIT_FIRST /* the word changes before the journal has its old value */
    d_step { kept_owner = owner; kept_abandoned = abandoned; owner = new_owner; abandoned = new_abandoned }
    d_step { if :: !word_saved -> old_owner = kept_owner; old_abandoned = kept_abandoned :: else fi }
    word_saved = 1
#else
    d_step { if :: !word_saved -> old_owner = owner; old_abandoned = abandoned :: else fi }
    word_saved = 1;
    d_step { owner = new_owner; abandoned = new_abandoned }
#endif
}

inline save_list()
{
    d_step {
        if
        :: !list_saved -> at = 0; do :: at < N -> old_list[at] = list[at]; at++ :: else -> break od; at = 0
        :: else
        fi
    }
    list_saved = 1
}

inline append(p)
{
    save_list();
    d_step { at = 0; do :: list[at] != NOBODY -> at++ :: else -> break od; list[at] = p; at = 0 }
}

inline remove(p)
{
    save_list();
    d_step {
        at = 0;
        do
        :: at < N && list[at] != p -> at++
        :: else -> break
        od;
        do
        :: at < N - 1 -> list[at] = list[at + 1]; at++
        :: at == N - 1 -> list[at] = NOBODY; break
        :: at == N -> break
        od;
        at = 0
    }
}

/* Claimed -> Granted, or back to Waiting. */
inline settle(granted)
{
    if
    :: posts ->
        if
        :: !granted -> recheck[post] = 1
        :: else
        fi;
        d_step {
            if
            :: state[post] == Claimed && number[post] == post_number -> state[post] = (granted -> Granted : Waiting)
            :: else
            fi
        }
        wake[post] = 1
    :: else
    fi
}

inline commit()
{
    if
    :: posts ->
#ifdef BUG_GRANT_FIRST /* the waiter is granted before the change is final */
        settle(1);
        d_step { phase = Finishing; real_owner = owner; should_tell[post] = untold; untold = !alive[post] }
#else
        d_step { phase = Finishing; real_owner = owner; should_tell[post] = untold; untold = !alive[post] }
        settle(1);
#endif
        phase = Nothing
    :: else -> d_step { phase = Nothing; real_owner = owner }
    fi
}

/* Run by the process that has taken the lock over; it may die here, too. */
inline repair()
{
    if
    :: phase == Editing ->
        d_step {
            if
            :: list_saved -> at = 0; do :: at < N -> list[at] = old_list[at]; at++ :: else -> break od; at = 0
            :: else
            fi
        }
        d_step { if :: word_saved -> owner = old_owner; abandoned = old_abandoned :: else fi }
        settle(0)
    :: phase == Finishing ->
#ifndef BUG_NO_REDO /* a final change may still lack its wake */
        settle(1)
#else
        skip
#endif
    :: else
    fi;
    phase = Nothing
}

inline lock()
{
    if
    :: atomic { holder == NOBODY -> holder = me }
    :: atomic { holder != NOBODY && !ALIVE(holder) -> holder = me }
#ifndef BUG_NO_REPAIR
        repair()
#endif
    fi;
    assert(phase == Nothing);
    assert(owner != NOBODY || list[0] == NOBODY || state[list[0]] != Waiting)
}

inline unlock()
{
    assert(holder == me);
    holder = NOBODY
}

inline thaw()
{
    d_step { if :: list[0] == NOBODY -> frozen = 0 :: else fi }
}

/* With the lock held: the mutant becomes free, and its first waiter that still waits the owner. */
inline hand_off(dead)
{
    frozen = 1;
    begin();
    edit_word(NOBODY, abandoned || dead);
    do
    :: list[0] == NOBODY -> break
    :: else ->
        who = list[0];
        d_step { post = who; post_number = number[who] }
        posts = 1;
        d_step {
            if
#ifdef BUG_GRANT_ENDED /* a wait that its process has ended is claimed, too */
            :: state[who] == Waiting || state[who] == Local -> state[who] = Claimed; won = 1
#else
            :: state[who] == Waiting -> state[who] = Claimed; won = 1
#endif
            :: else -> won = 0
            fi
        }
        if
        :: won ->
            status[who] = abandoned;
#ifdef BUG_TOLD_TWICE /* the mutant stays abandoned */
            edit_word(who, abandoned);
#else
            edit_word(who, 0);
#endif
            remove(who);
            break
        :: else -> posts = 0; remove(who)
        fi
    od;
    commit();
    thaw();
    who = 0
}

/* Abandons what a dead process owned, with the lock held. */
inline abandon(dead)
{
    if
    :: owner == dead -> hand_off(1)
    :: else
    fi
}

proctype Guard(byte me)
{
    byte at, who, gone;
    bit won;

    {
        skip;
end:    do
        :: atomic { !alive[0] && !cleaned[0] && me != 0 -> gone = 0 } goto clean
        :: atomic { !alive[1] && !cleaned[1] && me != 1 -> gone = 1 } goto clean
        :: atomic { !alive[2] && !cleaned[2] && me != 2 -> gone = 2 } goto clean
        od;
clean:
        lock();
        if
        :: cleaned[gone] -> skip /* by another guard */
        :: else ->
            if
            :: state[gone] != Idle -> begin(); remove(gone); commit()
            :: else
            fi;
            if
            :: owned[gone] -> abandon(gone); owned[gone] = 0
            :: else
            fi;
#ifndef BUG_PENDING_FORGOTTEN /* taken, and not yet in the list of what it owns */
            if
            :: pending[gone] -> abandon(gone); pending[gone] = 0
            :: else
            fi;
#endif
            if
            :: state[gone] != Idle -> abandon(gone); state[gone] = Idle
            :: else
            fi;
            cleaned[gone] = 1
        fi;
        unlock();
        gone = 0;
        goto end
    } unless { !alive[me] }
}

proctype Process(byte me)
{
    byte at, who;
    bit won, told;

    {
        skip;
acquire:
        pending[me] = 1;
        atomic {
            if
            :: !frozen && owner == NOBODY -> TAKE(me, told); won = 1
            :: else -> won = 0
            fi
        }
        if
        :: won -> owned[me] = 1; pending[me] = 0; goto critical
        :: else -> pending[me] = 0
        fi;
        lock();
        frozen = 1;
        if
        :: owner == NOBODY ->
            pending[me] = 1;
            d_step { TAKE(me, told) }
            owned[me] = 1;
            pending[me] = 0;
            thaw();
            unlock();
            goto critical
        :: else
        fi;
        recheck[me] = 0;
        d_step { state[me] = Waiting; number[me] = (number[me] + 1) % 4 }
        begin();
        append(me);
        commit();
        unlock();
        /* sleep */
        do
        :: wake[me] ->
            wake[me] = 0;
            if
            :: state[me] == Granted ->
                told = status[me];
                owned[me] = 1;
                state[me] = Idle;
                goto critical
            :: state[me] == Waiting && recheck[me] -> goto again
            :: else
            fi
        :: me < TIMED -> goto give_up
        od;
give_up:
        skip;
        d_step {
            if
            :: state[me] == Waiting -> state[me] = Local; won = 1
            :: else -> won = 0
            fi
        }
        if
        :: won -> lock(); begin(); remove(me); commit(); thaw(); assert(owner != me); state[me] = Idle; unlock(); goto finished
        :: else
        fi;
        lock(); /* granted or given back once the lock was ours */
        unlock();
        if
        :: state[me] == Granted -> told = status[me]; owned[me] = 1; state[me] = Idle; goto critical
        :: else -> goto give_up
        fi;
again:
        skip;
        d_step {
            if
            :: state[me] == Waiting -> state[me] = Local; won = 1
            :: else -> won = 0
            fi
        }
        if
        :: won -> lock(); begin(); remove(me); commit(); thaw(); state[me] = Idle; unlock(); goto acquire
        :: else
        fi;
        lock();
        unlock();
        if
        :: state[me] == Granted -> told = status[me]; owned[me] = 1; state[me] = Idle; goto critical
        :: else -> goto again
        fi;
critical:
        assert(told == should_tell[me]);
        assert(real_owner == me);
        atomic { assert(inside == NOBODY); inside = me }
        inside = NOBODY;
        /* release */
        pending[me] = 1;
        owned[me] = 0;
        atomic {
            if
            :: !frozen -> owner = NOBODY; real_owner = NOBODY; won = 1
            :: else -> won = 0
            fi
        }
        if
        :: won
        :: else -> lock(); hand_off(0); unlock()
        fi;
        pending[me] = 0;
finished:
        done[me] = 1
    } unless { !alive[me] }
}

/* A process stops with its guard; what it held stays. */
proctype Killer()
{
    byte victim;

end:
    do
    :: kills < KILLS ->
        atomic {
            if
            :: victim = 0
            :: victim = 1
            :: victim = 2
            fi;
            if
            :: alive[victim] ->
                alive[victim] = 0;
                kills++;
                untold = untold || real_owner == victim;
                inside = (inside == victim -> NOBODY : inside)
            :: else
            fi;
            victim = 0
        }
    :: kills == KILLS -> break
    :: break /* fewer */
    od
}

#define IS_SETTLED(p) (alive[p] -> done[p] : cleaned[p])

init {
    byte p;

    atomic {
        for (p : 0 .. N - 1) {
            alive[p] = 1;
            list[p] = NOBODY
        }
        for (p : 0 .. N - 1) {
            if
            :: p < ACTORS -> run Process(p)
            :: else -> done[p] = 1
            fi;
            run Guard(p)
        }
        p = 0;
        run Killer()
    }
    timeout; /* nothing moves any more */
    if
    :: kills == N /* nobody is left to clean up */
    :: else ->
        assert(IS_SETTLED(0) && IS_SETTLED(1) && IS_SETTLED(2));
        assert(holder == NOBODY && owner == NOBODY && list[0] == NOBODY && phase == Nothing);
        assert(abandoned == untold)
    fi
}
