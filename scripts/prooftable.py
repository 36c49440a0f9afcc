"""The primitives, how far each was explored, and docs/proof.md from docs/proof.json."""

import fnmatch
import json
import re
from pathlib import Path

MODELS = {"sc": "sc", "tso": "tso", "c11": "RC11"}
SHAPES = ("2x3", "3x2", "4x1", "4x2", "upset")
PREEMPTIONS = 3  # the bound that four threads must reach

# title: sections of docs/api.md (header, title), rows of the grid (lab/grid), other scenarios
PRIMITIVES = {
    "Spinlocks": ([("ke.h", "Spinlocks")], ["spin_lock"], ["spin_lock_*", "crowd_*_spinlock", "freed_*_spinlock"]),
    "Queued spinlocks": ([("ke.h", "Queued spinlocks")], ["queued_spin_lock"],
                         ["queued_spin_lock_*", "*_queued_spinlock", "*_numbered_spinlock"]),
    "Reader/writer spinlocks": ([("ex.h", "Reader/writer spinlocks")], ["rw_spin_lock"], ["rw_spin_lock*", "*_rw_spinlock"]),
    "Interlocked operations under a spinlock": ([("ex.h", "Interlocked operations under a spinlock")], ["interlocked_list"], ["interlocked_list*"]),
    "Locks and sleeps of the kernel": ([], ["kernel_lock", "object_lock", "sleep"], []),
    "Deferred procedure calls": ([("ke.h", "Deferred procedure calls and interprocessor interrupts")], ["dpc"],
                                 ["dpc_*", "ipi_*", "crowd_dpcs*", "crowd_timer_dpcs"]),
    "Alerts, APCs, suspension, end of a thread": ([("ke.h", "Asynchronous procedure calls"), ("ke.h", "Threads"),
                                                   ("nt.h", "Threads"), ("nt.h", "User APCs"), ("ps.h", "Threads")], [],
                                                  ["alert_*", "test_alert*", "apc_*", "suspend_*", "terminate_*", "thread_*",
                                                   "crowd_alerts", "stop_*"]),
    "Waiting for one, any, all": ([("ke.h", "Waiting"), ("nt.h", "Waiting by handle"), ("win32.h", "Waiting and sleeping")],
                                  ["wait_multiple"],
                                  ["wait_*", "many_*", "dormant_*", "signal_and_wait*",
                                   "crowd_any_and_all", "crowd_wait_*", "crowd_mixture", "freed_wait*"]),
    "Events": ([("ke.h", "Events"), ("nt.h", "Events"), ("win32.h", "Events")],
               ["synchronization_event", "notification_event"],
               ["event_*", "crowd_*_event", "crowd_history_*_event", "*_notification", "crowd_event*",
                "crowd_pulse*"]),
    "Event pairs": ([("ke.h", "Event pairs"), ("nt.h", "Event pairs")], ["event_pair"], ["event_pair*", "*_pair"]),
    "Gates": ([("ke.h", "Gates")], ["gate"], ["gate_*", "*_gate"]),
    "Mutants": ([("ke.h", "Mutants and mutexes"), ("nt.h", "Mutants"), ("win32.h", "Mutexes")],
                ["mutant", "mutant_abandoned"], ["mutant_*", "mutex_*", "*_mutant", "crowd_*_mutex", "freed_last_mutex"]),
    "Semaphores": ([("ke.h", "Semaphores"), ("nt.h", "Semaphores"), ("win32.h", "Semaphores")], ["semaphore"],
                   ["semaphore_*", "*_semaphore"]),
    "Timers": ([("ke.h", "Timers"), ("nt.h", "Timers"), ("win32.h", "Waitable timers")], ["timer"],
               ["timer_*", "*_timer", "crowd_timer*"]),
    "Executive timers": ([("ex.h", "Executive timers")], ["executive_timer"], ["executive_timer_*"]),
    "Queues": ([("ke.h", "Queues")], ["queue", "queue_timed"], ["queue_*", "crowd_queue*", "crowd_history_queue"]),
    "Waiting without a thread": ([("ke.h", "Waiting without a thread")], [], ["notification_*"]),
    "Keyed events": ([("nt.h", "Keyed events")], ["keyed_event"], ["keyed_event_*", "*_keyed_event", "crowd_history_keyed_event"]),
    "Fast and guarded mutexes": ([("ex.h", "Fast mutexes and guarded mutexes")], ["fast_mutex", "guarded_mutex"],
                                 ["fast_mutex_*", "guarded_mutex_*", "*_fast_mutex", "*_guarded_mutex"]),
    "Pushlocks": ([("ex.h", "Pushlocks")], ["pushlock"], ["pushlock_*", "*_pushlock"]),
    "Cache-aware pushlocks": ([("ex.h", "Cache-aware pushlocks")], ["cache_aware_pushlock"], ["cache_aware_*", "*_cache_aware"]),
    "Auto-expand pushlocks": ([("ex.h", "Auto-expand pushlocks")], ["auto_expand_pushlock"], ["auto_expand_*", "*_auto_expand"]),
    "Address-based pushlocks": ([("ex.h", "Address-based pushlocks")], ["address_pushlock"],
                                ["crowd_*_address", "crowd_*_address_steps", "address_pushlock_*", "pushlock_address*"]),
    "Executive resources": ([("ex.h", "Executive resources")], ["resource"], ["resource_*", "*_resource"]),
    "Fast resources": ([("ex.h", "Fast resources")], ["fast_resource"], ["fast_resource*", "*_fast_resource"]),
    "Rundown protection": ([("ex.h", "Rundown protection")], ["rundown"], ["rundown_*", "*_rundown"]),
    "Cache-aware rundown protection": ([("ex.h", "Cache-aware rundown protection")], ["cache_aware_rundown"],
                                       ["rundown_*aware*", "rundown_*slot*"]),
    "Fast references": ([("ex.h", "Fast references"), ("ob.h", "Fast references to objects")], ["fast_reference"],
                        ["fast_reference_*", "*_fast_reference"]),
    "SLISTs": ([("interlocked.h", "Interlocked singly linked lists"), ("ex.h", "Interlocked singly linked lists")], ["slist"],
               ["slist_*", "*_slist"]),
    "Work queues": ([("ex.h", "Work queues"), ("io.h", "Work items")], [], ["work_item*", "crowd_work_items"]),
    "Requests": ([("io.h", "Request packets"), ("io.h", "Cancelling"), ("io.h", "Cancel-safe queues"),
                  ("io.h", "Remove locks"), ("io.h", "StartIo: one request at a time")], [],
                 ["irp_*", "csq_*", "startio_*", "remove_lock_*"]),
    "Address waits": ([("rtl.h", "Address waits"), ("win32.h", "Address waits")], ["address_wait", "address_wait_timed"], ["address_*"]),
    "Alerts by thread id": ([("nt.h", "Alerts by thread id")], ["alert_by_id"], ["alert_by_id*", "*_alert_by_id"]),
    "Slim reader/writer locks": ([("rtl.h", "Slim reader/writer locks"), ("win32.h", "Slim reader/writer locks")],
                                 ["srw_lock"], ["srw_*", "*_srw"]),
    "Critical sections": ([("rtl.h", "Critical sections"), ("win32.h", "Critical sections")], ["critical_section"],
                          ["section_*"]),
    "Condition variables": ([("rtl.h", "Condition variables"), ("win32.h", "Condition variables")],
                            ["condition_variable", "condition_variable_timed"], ["condition_*"]),
    "Run-once": ([("rtl.h", "Run-once"), ("win32.h", "Run-once")], ["run_once"], ["run_once_*"]),
    "Barriers": ([("rtl.h", "Barriers"), ("win32.h", "Barriers")], ["barrier"], ["barrier_*"]),
    "User-mode resources": ([("rtl.h", "User-mode resources")], ["rtl_resource"], ["rtl_resource_*"]),
    "Completion ports": ([("nt.h", "Completion ports"), ("win32.h", "Completion ports")], ["completion_port", "completion_port_timed"],
                         ["port_*"]),
    "Wait completion packets": ([("nt.h", "Wait completion packets")], [], ["wait_packet_*"]),
    "Thread pool": ([("rtl.h", "Pools"), ("rtl.h", "Work objects"), ("rtl.h", "Timer objects"),
                     ("rtl.h", "Wait objects"), ("rtl.h", "Cleanup groups"),
                     ("rtl.h", "The older interface")], ["pool_work"], ["pool_*", "pool_4x2_*"]),
    "Handles, names, services": ([("nt.h", "Handles"), ("ob.h", "Handles"), ("ob.h", "References")], [],
                                 ["handle_*", "name_*", "service_*"]),
    "Objects that processes share": ([("nt.h", "Processes")], [], ["wo_*", "world_*"]),
    "Memory that is freed at once": ([("ex.h", "Pool")], [], ["freed_*"]),
    "Debug output": ([("dbg.h", "Debug output")], [], ["debug_*"]),
}


# Rows of the grid whose waits may be single steps (--abstract), and where that is a proof: they wait by the engine, and are not a row
# of it. Rows of the engine may have locks and sleeps that are single steps (--abstract-locks). What was made single steps is proven by
# the rows of PROVEN_BY.
OVER_WAITS = ("keyed_event", "fast_mutex", "guarded_mutex", "pushlock", "cache_aware_pushlock", "auto_expand_pushlock",
              "address_pushlock", "resource", "fast_resource", "rundown", "cache_aware_rundown", "address_wait",
              "address_wait_timed", "srw_lock", "critical_section", "condition_variable", "condition_variable_timed", "run_once",
              "barrier", "rtl_resource")
OVER_LOCKS = ("wait_multiple", "synchronization_event", "notification_event", "event_pair", "gate", "mutant", "mutant_abandoned",
              "semaphore", "timer", "executive_timer", "queue", "queue_timed", "alert_by_id", "completion_port",
              "completion_port_timed", "pool_work")
PROVEN_BY = {"events": ("synchronization_event", "notification_event"), "semaphores": ("semaphore",), "alerts": ("alert_by_id",),
             "locks": ("spin_lock", "kernel_lock", "object_lock"), "sleeps": ("sleep",)}
LOCKS = {"locks", "sleeps"}
WAITS = set(PROVEN_BY) - LOCKS


def abstraction_for(scenario):
    """The options that make proven code of other rows single steps. APCs, alerts and suspension interrupt waits: there the engine has to
    run."""
    match = re.fullmatch(r"grid_(\w+)_(?:%s)" % "|".join(SHAPES), scenario)
    if match is None or match.group(1) not in (*OVER_WAITS, *OVER_LOCKS):
        return ()
    over_waits = match.group(1) in OVER_WAITS and not scenario.endswith("_upset")
    return ("--abstract", "--abstract-locks") if over_waits else ("--abstract-locks",)


def kinds_of(row):
    """What was made single steps."""
    return {kind for kind in row.get("abstract", "").split(", ") if kind}


def abstraction_of(row):
    """The options with which it was explored."""
    kinds = kinds_of(row)
    return (("--abstract",) if kinds & WAITS else ()) + (("--abstract-locks",) if kinds & LOCKS else ())


def sections_of(page):
    """{(header, title)} of docs/api.md"""
    found, header = set(), None
    for line in page.splitlines():
        if match := re.match(r"## `interlock/(.*)`", line):
            header = match.group(1)
        elif line.startswith("### "):
            found.add((header, line[4:].strip()))
    return found


def primitive_of(scenario):
    """The primitive whose longest pattern fits; None: none does."""
    if match := re.fullmatch(r"grid_(\w+)_(?:%s)" % "|".join(SHAPES), scenario):
        return next((title for title, (_, rows, _) in PRIMITIVES.items() if match.group(1) in rows), None)
    best = (0, None)
    for title, (_, _, patterns) in PRIMITIVES.items():
        for pattern in patterns:
            if fnmatch.fnmatchcase(scenario, pattern):
                best = max(best, (len(pattern), title), key=lambda pair: pair[0])
    return best[1]


def extent(row):
    """How much was explored, in words."""
    text = {"dpor": "every schedule", "states": "every state", "part": "a part, at random",
            "bounded": f"up to {row['preemptions']} preemptions",
            "bounded-states": f"every state up to {row['preemptions']} preemptions"}[row["search"]]
    if row.get("abstract"):
        text += f" over proven {row['abstract']}{over(row)}"
    return text + row["limits"].replace(" with ", ", ", 1).replace(" and ", ", ")


def strategy(row):
    return {"part": "pct, random"}.get(row["search"], row["search"])


def shape_of(row):
    match = re.search(r"(\d)x(\d)(_|$)", row["scenario"])
    if match:
        return f"{match.group(1)} × {match.group(2)}"
    return "2 × 1, upset by a third" if row["scenario"].startswith("grid_") else f"{row['threads']} ×"


def is_whole(row):
    return row["search"] in ("dpor", "states")


def reach(row):
    """How far the search got, to compare two of the same scenario. Over proven waits or locks is less than the same without."""
    full = {"dpor": 1001, "states": 1000}.get(row["search"], row["preemptions"])
    return full - {"": 0, OVER_LOCKS_MARK: 0.25, OVER_WAITS_MARK: 0.5}[over(row)]


def is_old(row):
    """scripts/proof stores in each row how many rounds it took. A row without that number is from before a change and was not run
    again; one marked `old` was, and did not get as far."""
    return "rounds" not in row or row.get("old", False)


OLD = "†"
OVER_WAITS_MARK = "‡"
OVER_LOCKS_MARK = "§"


def over(row):
    """Its mark; waits rest on locks."""
    kinds = kinds_of(row)
    return OVER_WAITS_MARK if kinds & WAITS else OVER_LOCKS_MARK if kinds else ""


GOALS = {"2 × 3": ("2x3",), "3 × 2": ("3x2",), "4 threads": ("4x1", "4x2"), "upset": ("upset",)}


def reaches_goal(row, goal):
    """Two and three threads: everything. Four: a bound is enough."""
    return row is not None and (is_whole(row) or (goal == "4 threads" and row["preemptions"] >= PREEMPTIONS))


def marks(rows):
    """The marks of a goal that is reached by any of these runs."""
    old = all(is_old(row) for row in rows)
    least = min((over(row) for row in rows), key=["", OVER_LOCKS_MARK, OVER_WAITS_MARK].index)
    return (OLD if old else "") + least


def foundation(rows):
    """How far the rows were explored on which those over proven waits and locks rest."""
    cells = {(row["scenario"], row["model"]): row for row in rows}
    kinds = {kind for row in rows for kind in kinds_of(row)}
    lines = []
    for kind in sorted(kinds):
        for name in PROVEN_BY[kind]:
            found = [f"{shape} {MODELS[model]}: {extent(row)}" for shape in SHAPES for model in ("sc", "c11")
                     if (row := cells.get((f"grid_{name}_{shape}", model))) is not None]
            lines.append(f"- {kind}: {name.replace('_', ' ')}: {'; '.join(found)}")
    if not lines:
        return []
    return ["## What the rows over proven waits and locks rest on", "",
            "Waits: the rows of the wait engine, which run with all of its code but proven locks and sleeps, and the histories that are compared",
            "with the models of these objects (`crowd_history_*`, in their sections). Locks and sleeps: their rows, which run with all code.", "",
            *lines, ""]


def goal_summary(rows):
    """A line per primitive: which goals are reached under which models, and which are not."""
    cells = {(row["scenario"], row["model"]): row for row in rows}
    lines = ["| primitive | reached | missing |", "|---|---|---|"]
    counts = {f"{goal} {MODELS[model]}": [0, 0] for goal in GOALS for model in ("sc", "c11")}
    before = over_waits = over_locks = 0
    for title, (_, names, _) in PRIMITIVES.items():
        for name in names:
            reached, missing = [], []
            for goal, shapes in GOALS.items():
                for model in ("sc", "c11"):
                    found = [cells[key] for shape in shapes if (key := (f"grid_{name}_{shape}", model)) in cells]
                    if found:
                        reaching = [row for row in found if reaches_goal(row, goal)]
                        good = bool(reaching)
                        (reached if good else missing).append(f"{goal} {MODELS[model]}" + (marks(reaching) if good else ""))
                        before += good and OLD in marks(reaching)
                        over_waits += good and OVER_WAITS_MARK in marks(reaching)
                        over_locks += good and OVER_LOCKS_MARK in marks(reaching)
                        counts[f"{goal} {MODELS[model]}"][0] += good
                        counts[f"{goal} {MODELS[model]}"][1] += 1
            lines.append(f"| {title}: {name.replace('_', ' ')} | {', '.join(reached)} | {', '.join(missing)} |")
        if not names:
            lines.append(f"| {title} | | not in the grid |")
    reached_count, all_count = (sum(count[i] for count in counts.values()) for i in (0, 1))
    each = "; ".join(f"{name}: {reached} of {number}" for name, (reached, number) in counts.items())
    return [f"{reached_count} of {all_count} are reached: {reached_count - over_waits - over_locks} with all of the library's code, {over_locks} over"
            f" proven locks ({OVER_LOCKS_MARK}, below), {over_waits} over proven waits ({OVER_WAITS_MARK}, below);"
            f" {before} of them by runs from before the last changes ({OLD}). {each}.", "", *lines]


def repeat_notice(rows):
    old = sum(map(is_old, rows))
    return [f"{old} of the runs are from before the last changes ({OLD}): `scripts/proof --keep` makes them again.", ""] if old else []


def grid_summary(rows):
    """A line per row of the grid, a column per shape and model."""
    cells = {(row["scenario"], row["model"]): row for row in rows}
    columns = [(shape, model) for shape in SHAPES for model in ("sc", "c11")]
    lines = ["| | " + " | ".join(f"{shape} {MODELS[model]}" for shape, model in columns) + " |",
             "|---" * (len(columns) + 1) + "|"]
    for _, (_, names, _) in PRIMITIVES.items():
        for name in names:
            line = []
            for shape, model in columns:
                row = cells.get((f"grid_{name}_{shape}", model))
                if row is None:
                    line.append("")
                    continue
                names_of = {"dpor": "all", "states": "states", "part": "part"}
                line.append(names_of.get(row["search"], f"≤ {row['preemptions']}") + marks([row]))
            lines.append(f"| {name.replace('_', ' ')} | " + " | ".join(line) + " |")
    return lines


def render(data):
    rows = data["rows"]
    grid = [row for row in rows if row["scenario"].startswith("grid_")]
    whole = sum(map(is_whole, rows))
    over_waits, over_locks = (sum(is_whole(row) and over(row) == mark for row in rows) for mark in (OVER_WAITS_MARK, OVER_LOCKS_MARK))
    bounded = sum(row["search"] in ("bounded", "bounded-states") for row in rows)
    out = [
        "# What was explored", "",
        "<!-- Made by scripts/proof from proof.json: do not edit. -->", "",
        "How far the explorer ([lab.md](lab.md)) has run each primitive of [api.md](api.md). `make proof` generates this page, and",
        "checks the models of [proof/README.md](../proof/README.md). No run failed; `make proof` does not write failures here.", "",
        "- **model**: sc, sequential consistency; RC11, all that the memory orders permit except load buffering.",
        "- **every schedule** (strategy `dpor`): each one that can make a difference, with a check for races in each.",
        "- **every state** (strategy `states`): each reachable state; assertions, bugchecks, deadlocks and lost wakeups are",
        "  complete, races are checked in the schedules that were run, livelocks are not ([more](lab.md#how-it-works)).",
        "- **up to N preemptions** (strategy `bounded`): each schedule in which a thread that could run was preempted N times or less.",
        "  **every state up to N preemptions** (`bounded-states`): each state that these reach.",
        f"- **over proven waits** ({OVER_WAITS_MARK}): each call of the wait engine on an event or a semaphore, or for an alert by thread id, was a single",
        "  step ([more](lab.md#proven-waits)). The row shows nothing about the inside of such a call, and rests on the rows of the engine itself,",
        "  as far as those were explored ([below](#what-the-rows-over-proven-waits-and-locks-rest-on)).",
        f"- **over proven locks** ({OVER_LOCKS_MARK}): the acquisition of a spinlock or of a lock of the kernel was a single step, and the sleep of a",
        "  waiting thread too ([more](lab.md#proven-locks)). The row rests on the rows of these.",
        "- **a part**: random schedules only. Each limit that cut a search off is named.", "",
        f"{len(rows)} runs: {whole} complete ({over_waits} of them over proven waits, {over_locks} over proven locks), {bounded} with bounded preemptions, {len(rows) - whole - bounded} partial;"
        f" {sum(row['schedules'] for row in rows):,} schedules in {sum(row['seconds'] for row in rows) / 60:.0f} minutes of processor"
        f" time. {data['machine']}.", "",
        *repeat_notice(rows),
        "## What is exhaustive", "",
        "The goal for each primitive: two threads with three operations each, and three with two, completely; four threads completely or",
        f"up to {PREEMPTIONS} preemptions; and alerts, APCs and suspension (*upset*) completely, where they apply. Under both models, sequential",
        "consistency (sc) and RC11. The sections below have the scenarios of each primitive and how far each was explored.", "",
        *goal_summary(grid), "",
        *foundation(grid),
        "## The grid", "",
        "Each primitive in the same shapes, threads × operations of each (`lab/grid`). *upset*: two threads, while a third one alerts one",
        "of them, queues a special, normal or user APC to it, or suspends and resumes it. Timeouts happen at any moment, at most two",
        "per schedule, where an operation has one. Priority boosts are disabled, and the machine has a processor for each thread.",
        "*all*: every schedule; *states*: every state; *≤ N*: up to N preemptions.", "",
        *grid_summary(grid), "",
    ]
    by_primitive = {title: [] for title in PRIMITIVES}
    for row in rows:
        by_primitive[primitive_of(row["scenario"])].append(row)
    for title, (sections, _, _) in PRIMITIVES.items():
        listed = ["In api.md: " + ", ".join(f"{name} (`{header}`)" for header, name in sections) + ".", ""] if sections else []
        out += [f"## {title}", "", *listed,
                "| scenario | threads × operations | model | strategy | explored | schedules | seconds |",
                "|---|---|---|---|---|---|---|"]
        for row in sorted(by_primitive[title], key=lambda r: (not r["scenario"].startswith("grid_"), r["scenario"], r["model"])):
            out.append(f"| `{row['scenario']}` | {shape_of(row)} | {MODELS[row['model']]} | {strategy(row)} | {extent(row)}{OLD if is_old(row) else ''} |"
                       f" {row['schedules']:,} | {row['seconds']:.1f} |")
        out.append("")
    return "\n".join(out)


def load(root):
    path = Path(root) / "docs" / "proof.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"rows": []}


def replace(path, text):
    """All of it or nothing: an interrupted run continues from the file."""
    new = path.with_suffix(path.suffix + ".new")
    new.write_text(text, encoding="utf-8")
    new.rename(path)


def store(root, data):
    docs = Path(root) / "docs"
    head = json.dumps({key: value for key, value in data.items() if key != "rows"})[:-1]
    lines = ",\n".join(json.dumps(row) for row in data["rows"])
    replace(docs / "proof.json", f'{head}, "rows": [\n{lines}\n]}}\n')
    replace(docs / "proof.md", render(data))
