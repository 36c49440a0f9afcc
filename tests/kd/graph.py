#!/usr/bin/env python3
"""`interlock graph`: the wait graph of programs that wait in known ways, as JSON, as text, for graphviz; and what
the debugger says about fast resources, condition variables, forked children and other builds.

usage: graph.py CHECKS INTERLOCK STATIC SHARED [sanitized]"""

import json
import shutil
import subprocess

from kdtest import SANITIZED, Program, Tap, differences, interlock, number, until, view


def edges(graph, *kinds):
    return {(e["from"], e["to"]) for e in graph["edges"] if e["kind"] in kinds}


def red(graph):
    """The edges of the first cycle, in order, starting at each thread."""
    return {(e["kind"], e["from"], e["to"]) for e in graph["edges"] if e["cycle"] == 0}


def blocks_of(graph, thread):
    return [b for b in graph["blocks"] if b["thread"] == f"t{thread}"]


def node(graph, what, address):
    return next(o for o in graph["objects"] if o["id"] == f"o{address:x}_{what}")


def take(program, is_so):
    return until(lambda: view("graph", program.id), is_so)


def is_whole(graph):
    """Every end of an edge is a node, and every id is unique."""
    ids = [n["id"] for kind in ("processors", "threads", "blocks", "objects") for n in graph[kind]]
    problems = differences("ids", len(ids), len(set(ids)))
    return problems + [e for e in graph["edges"] if e["from"] not in ids or e["to"] not in ids]


def service(tap):
    with Program("service") as p:
        graph = take(p, lambda g: g["deadlocks"] and len(g["blocks"]) == 15 and
                     len([t for t in g["threads"] if t["deadlocked"]]) == 3 and
                     node(g, "resource", p.table)["object"]["waiters"])
        journal = next(o for o in graph["objects"] if o["object"]["name"] == "\\BaseNamedObjects\\journal")
        cache = node(graph, "critical_section", p.cache)
        writer, checkpoint = blocks_of(graph, p.writer)[0], blocks_of(graph, p.checkpoint)[0]
        expected = {("block", f"t{p.writer}", writer["id"]), ("waits", writer["id"], journal["id"]),
                    ("owner", journal["id"], f"t{p.checkpoint}"), ("block", f"t{p.checkpoint}", checkpoint["id"]),
                    ("waits", checkpoint["id"], cache["id"]), ("owner", cache["id"], f"t{p.writer}")}
        problems = differences("red", red(graph), expected) + is_whole(graph)
        problems += differences("threads in it", {t["thread"] for t in graph["threads"] if t["cycle"] == 0},
                                {p.writer, p.checkpoint})
        problems += differences("objects in it", {o["id"] for o in graph["objects"] if o["cycle"] == 0},
                                {journal["id"], cache["id"]})
        problems += differences("behind it", {t["thread"] for t in graph["threads"] if t["deadlocked"]},
                                {p.writer, p.checkpoint, p.flusher})
        tap.case("graph: the cycle through threads, blocks, objects and owners", problems)
        monitor = blocks_of(graph, p.monitor)
        started = next(o for o in graph["objects"] if o["object"]["name"] == "\\BaseNamedObjects\\started")
        problems = differences("monitor", [(b["wait_type"], b["block_state"], b["wait_key"]) for b in monitor],
                               [("WaitAll", "WaitBlockActive", 0), ("WaitAll", "WaitBlockActive", 1)])
        listener = blocks_of(graph, p.listener)[0]
        problems += differences("waiters of started", sorted(started["wait_list"]),
                                sorted([monitor[0]["id"], listener["id"]]))
        problems += differences("list", edges(graph, "list_head", "list_next") & {
            (started["id"], started["wait_list"][0]), tuple(started["wait_list"])},
            {(started["id"], started["wait_list"][0]), tuple(started["wait_list"])})
        problems += differences("positions", [next(b["position"] for b in graph["blocks"] if b["id"] == i)
                                              for i in started["wait_list"]], [0, 1])
        tap.case("graph: a WaitAll, and the list of waiters through the blocks", problems)
        table = node(graph, "resource", p.table)
        problems = differences("owners", {to for start, to in edges(graph, "owner") if start == table["id"]},
                               {f"t{p.facts['reader-1']}", f"t{p.facts['reader-2']}"})
        problems += differences("waiter", [b["thread"] for b in graph["blocks"] if b["object"] == table["id"]],
                                [f"t{p.indexer}"])
        queue = next(o for o in graph["objects"] if o["object"]["kind"] == "queue")
        problems += differences("queue", len(queue["wait_list"]), 6)
        tap.case("graph: a shared resource and a queue", problems)
        listed = edges(graph, "wait_list")
        waiting = {t["id"] for t in graph["threads"] if t["waiting"]}
        tap.case("graph: processors have waiting threads on their lists",
                 differences("processors", len(graph["processors"]), 4) +
                 ([] if listed and {to for _, to in listed} <= waiting else [listed]))
        text = interlock("graph", p.id).stdout
        tap.case("graph: as text", [part for part in (
            f"thread {p.writer} (writer)", f"<- thread {p.checkpoint} (checkpoint)  ***", "[WaitAll] -> event",
            f"thread {p.flusher} (flusher)") if part not in text])
        dot(tap, p, graph)


def dot(tap, p, graph):
    text = interlock("graph", "--dot", p.id).stdout
    problems = [e for e in edges(graph, "waits", "owner") if f'"{e[0]}" -> "{e[1]}"' not in text]
    problems += [] if text.startswith("digraph interlock {") and "color=red" in text else [text]
    if shutil.which("dot"):
        drawn = subprocess.run(["dot", "-Tplain"], input=text, capture_output=True, text=True, check=False, timeout=60)
        problems += differences("dot", (drawn.returncode, drawn.stdout.count("\nedge ")), (0, len(graph["edges"])))
    tap.case("graph: for graphviz", problems)


def other_cycles(tap):
    with Program("orphan") as p:
        graph = take(p, lambda g: g["deadlocks"])
        dead = next((t for t in graph["threads"] if t["ended"]), {})
        problems = differences("ended", dead.get("thread"), p.dead) + is_whole(graph)
        problems += differences("red", {kind for kind, _, _ in red(graph)}, {"block", "waits", "owner"})
        tap.case("graph: an owner that has ended is a node", problems)
    with Program("srw") as p:
        graph = take(p, lambda g: edges(g, "may_own"))
        tap.case("graph: who may hold a lock that does not say",
                 differences("edge", edges(graph, "may_own"), {(f"o{p.srw:x}_srw_lock", f"t{p.alice}")}))
    with Program("dpc") as p:
        graph = take(p, lambda g: edges(g, "runs"))
        processor = graph["processors"][1]
        problems = differences("edge", {a for a, _ in edges(graph, "runs")}, {"p1"})
        members = ("irql", "dpc_depth", "dpc_routine_active", "idle")
        problems += differences("processor", [processor[name] for name in members], [2, 1, True, False])
        problems += [] if processor["active_dpc"].endswith("!spin") else [processor]
        tap.case("graph: a processor that runs a DPC", problems)


def chain(found):
    return [{(link["thread"]["id"], link["waits_for"]["kind"], number(link["waits_for"]["address"]), link["held_by"])
             for link in d["chain"]} for d in found["deadlocks"]]


def gaps(tap):
    with Program("fast-resources") as p:
        found = until(lambda: view("deadlocks", p.id), lambda d: d["deadlocks"])
        tap.case("deadlocks: two fast resources, crossed", differences("chain", chain(found), [{
            (p.alice, "fast_resource", p.second, p.bob), (p.bob, "fast_resource", p.first, p.alice)}]))
        locks = {number(lock["address"]): lock for lock in view("locks", p.id)["locks"]}
        tap.case("locks: a fast resource", differences(
            "lock", [(locks[a]["held"], [o["id"] for o in locks[a]["owners"]], locks[a]["waiters"]) for a in
                     (p.first, p.second)],
            [("exclusive", [p.alice], [{"id": p.bob, "process_id": None, "exclusive": False}]),
             ("exclusive", [p.bob], [{"id": p.alice, "process_id": None, "exclusive": False}])]))
    with Program("condition-cycle") as p:
        found = until(lambda: view("deadlocks", p.id), lambda d: d["deadlocks"])
        tap.case("deadlocks: the way back from a condition variable", differences("chain", chain(found), [{
            (p.alice, "critical_section", p.inner, p.bob), (p.bob, "critical_section", p.outer, p.alice)}]))
    with Program("condition-chain") as p:
        graph = take(p, lambda g: len(edges(g, "waits")) == 2 and edges(g, "owner"))
        problems = differences("deadlocks", (graph["deadlocks"], graph["possible_deadlocks"]), ([], []))
        problems += differences("waits", {(blocks_of(graph, t)[0]["object"]) for t in (p.alice, p.bob)},
                                {f"o{p.condition:x}_condition_variable", f"o{p.outer:x}_critical_section"})
        problems += differences("owner", edges(graph, "owner"), {(f"o{p.outer:x}_critical_section", f"t{p.alice}")})
        tap.case("deadlocks: a condition variable may be woken by anybody", problems)


def forked(tap):
    with Program("fork", TSAN_OPTIONS="die_after_fork=0") as p:
        parent = until(lambda: view("threads", p.id), lambda t: sum(bool(x["wait"]) for x in t["threads"]) == 2)
        child = until(lambda: view("threads", p.child), lambda t: sum(bool(x["wait"]) for x in t["threads"]) == 1)
        problems = differences("parent", {t["id"] for t in parent["threads"]}, {p.id, p.alice, p.bob})
        problems += differences("child", {t["id"] for t in child["threads"]}, {p.child, p.carol})
        problems += differences("process", child["process_id"], p.child)
        tap.case("a forked child has its own threads only", problems)
        waiters = [o["object"]["waiters"] for o in view("graph", p.child)["objects"]
                   if o["object"]["kind"] == "semaphore"]
        tap.case("graph: of a forked child", differences("waiters", waiters, [[{"id": p.carol, "process_id": None,
                                                                                "exclusive": True}]]))
        listed = {q["process_id"]: q["threads"] for q in view("ps")["processes"]}
        tap.case("ps: both", differences("threads", (listed.get(p.id), listed.get(p.child)), (3, 2)))


def crowd(tap):
    if SANITIZED:
        return
    with Program("crowd") as p:
        graph = take(p, lambda g: sum(t["waiting"] for t in g["threads"]) == 1000)
        sizes = [len(o["wait_list"]) for o in graph["objects"] if len(o["wait_list"]) > 1]
        problems = differences("threads", len(graph["threads"]), 1001) + differences("crowds", sorted(sizes), [400, 500])
        size = len(interlock("threads", "--json", p.id).stdout)
        problems += [] if size < 4000 * 1001 else [f"{size} bytes: does every thread repeat all the others?"]
        tap.case("a thousand threads", problems + is_whole(graph))


def refusals(tap):
    with Program("other-ex-layout") as p:
        result = interlock("graph", p.id)
        tap.case("other structures of the executive are another build",
                 [] if result.returncode == 1 and "another build" in result.stderr else [result])
    with Program("zoo") as p:
        result = interlock("threads", p.id, "1")
        tap.case("no such thread",
                 [] if result.returncode == 1 and "there is no thread 1" in result.stderr else [result])
        one = view("threads", p.id, p.facts["queue-waiter"])["threads"]
        tap.case("threads: one", differences("ids", [t["id"] for t in one], [p.facts["queue-waiter"]]))
        result = interlock("threads", "--dot", p.id)
        tap.case("only a graph is for graphviz", differences("status", result.returncode, 2))


def main():
    tap = Tap()
    for cases in (service, other_cycles, gaps, forked, crowd, refusals):
        try:
            cases(tap)
        except (AssertionError, KeyError, StopIteration, IndexError, TypeError, OSError, json.JSONDecodeError,
                subprocess.SubprocessError) as problem:
            tap.case(cases.__name__, [repr(problem)])
    tap.done()


main()
