#!/usr/bin/env python3
"""`interlock view`: which requests are allowed, and that the answers are those of the views and correct.

usage: web.py CHECKS INTERLOCK STATIC SHARED [sanitized]"""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from kdtest import INTERLOCK, PATIENCE, SANITIZED, SHARED, Program, Tap, View, differences, interlock, number, until, view

PROTECTION = {
    "Content-Security-Policy": "default-src 'self'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def listening(process):
    """(address, port) of the sockets that the process listens on, according to the host's tables."""
    inodes = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(descriptor))
        if found:
            inodes.add(found.group(1))
    places = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text(encoding="utf-8").splitlines()[1:]:
            words = line.split()
            if words[9] in inodes and (words[3] == "0A" or table.startswith("udp")):
                address, port = words[1].split(":")
                places.append((table, address, int(port, 16)))
    return places


def still(graph):
    """A graph without what changes while all threads wait."""
    for thread in graph["threads"]:
        for name in ("seconds", "timeout_in", "context_switches", "priority"):
            thread.pop(name, None)
    return graph


def same(name, one, other):
    """Two results in succession, repeated until nothing has changed in between."""
    return differences(name, *until(lambda: (one(), other()), lambda both: both[0] == both[1]))


def access(tap, p):
    with View(p.id) as v, View(p.id) as other:
        tap.case("the address has 128 bits of token, and the next one others",
                 [] if re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/", v.address) and v.token != other.token
                 else [v.address, other.address])
        tap.case("it listens on the loopback address only",
                 differences("sockets", listening(v.process.pid), [("tcp", "0100007F", v.port)]))
        wrong = "0" * 32
        paths = ["/", "/index.html", "/api/graph", f"/{wrong}/", f"/{wrong}/api/graph", f"/{v.token[:-1]}/",
                 f"/{v.token}0/", f"//{v.token}/", f"/x/{v.token}/", f"/{other.token}/", "/favicon.ico",
                 f"/{v.token.upper()}/" if v.token.upper() != v.token else "/X/", f"/?{v.token}"]
        answers = {path: v.ask(path) for path in paths}
        tap.case("without the token there is no access",
                 [(path, a) for path, a in answers.items() if a[0] != 403 or v.token.encode() in a[2]])
        hosts = ["example.org", f"example.org:{v.port}", "127.0.0.1", f"127.0.0.1:{v.port + 1}",
                 f"127.0.0.1.x:{v.port}", f"[::1]:{v.port}"]
        answers = {host: v.ask(f"/{v.token}/api/graph", host=host)[0] for host in hosts}
        tap.case("a request for another host is refused", [a for a in answers.items() if a[1] != 403])
        tap.case("localhost is this host",
                 differences("status", v.ask(f"/{v.token}/", host=f"localhost:{v.port}")[0], 200))
        with socket.create_connection(("127.0.0.1", v.port), timeout=PATIENCE) as raw:
            raw.sendall(f"GET /{v.token}/ HTTP/1.0\r\n\r\n".encode())
            tap.case("a request without a host is refused", differences("status", raw.recv(12)[9:12], b"403"))
        methods = {m: v.ask(f"/{v.token}/api/graph", m, body=b"x" if m in ("POST", "PUT") else None)
                   for m in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH")}
        tap.case("nothing but GET and HEAD", [(m, a) for m, a in methods.items()
                                              if a[0] != 405 or a[1].get("Allow") != "GET, HEAD"])
        head = v.ask(f"/{v.token}/", "HEAD")
        tap.case("HEAD", differences("answer", (head[0], head[2]), (200, b"")) +
                 ([] if int(head[1]["Content-Length"]) > 1000 else [head[1]]))
        everything = [v.get(""), v.get("api/graph"), v.get("nothing"), v.get("api/nothing"), v.ask("/"),
                      methods["POST"]]
        tap.case("every answer is protected", [(a[0], name) for a in everything for name, value in PROTECTION.items()
                                               if not a[1].get(name, "").startswith(value)])
        tap.case("what is not there is a 404", differences(
            "status", [v.get(path)[0] for path in (
                "nothing", "../", "web/main.js", "api/", "api/nothing", "api/object?of=nothing", "api/threads/1/stack",
                "api/threads/", "api/threads/x/stack", f"api/threads/{'9' * 26}/stack")], [404] * 10))
        v.process.send_signal(signal.SIGINT)
        tap.case("it ends when it is interrupted", differences("status", v.process.wait(PATIENCE), 0))


def strangers(tap, p):
    """Connections without a token, idle or busy, do not block the user."""
    with View(p.id) as v:
        idle = [socket.create_connection(("127.0.0.1", v.port), timeout=PATIENCE) for _ in range(200)]
        slow = [socket.create_connection(("127.0.0.1", v.port), timeout=PATIENCE) for _ in range(200)]
        for connection in slow:
            connection.sendall(b"GET / HTTP/1.1\r\nHost")
        problems = []
        for _ in range(5):
            problems += differences("status", v.get("api/graph")[0], 200)
        tap.case("four hundred idle connections without a token do not keep the user out", problems)
        # A connection with the token stays open beside them.
        own = http.client.HTTPConnection("127.0.0.1", v.port, timeout=PATIENCE)
        statuses = []
        for _ in range(2):
            own.request("GET", f"/{v.token}/api/handles", headers={"Host": f"127.0.0.1:{v.port}"})
            statuses.append(own.getresponse())
            statuses[-1].read()
            more = [socket.create_connection(("127.0.0.1", v.port), timeout=PATIENCE) for _ in range(100)]
            idle += more
        tap.case("a connection with the token outlives strangers that come later",
                 differences("statuses", [(a.status, a.will_close) for a in statuses], [(200, False)] * 2))
        # The server closes them by itself, even those that continue to send.
        ended = 0
        for connection in slow[-30:]:
            try:
                while connection.recv(4096) if ended >= 0 else b"":
                    pass
                ended += 1
            except ConnectionError:
                ended += 1
        tap.case("strangers are turned out", differences("ended", ended, 30))
        for connection in [*idle, *slow]:
            connection.close()
        own.close()


def assets(tap, p):
    with View(p.id) as v:
        page = v.get("")[2].decode()
        names = re.findall(r'(?:src|href)="([^"#]+)"', page)
        problems = []
        for name in names:
            status, headers, body = v.get(name)
            problems += differences(name, status, 200)
            names += [n for n in re.findall(r"from '\./([^']+)'", body.decode()) if n not in names]
            for found in re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s'\"]*", body.decode()):
                if "www.w3.org" not in found:
                    problems.append(f"{name}: {found}")
            expected = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}[Path(name).suffix]
            problems += differences(name, headers["Content-Type"].split(";")[0], expected)
        problems += [] if len(names) >= 9 else [names]
        problems += differences("scripts in the page", re.findall(r"<script(?![^>]*src=)|\son\w+=|style=", page), [])
        tap.case("the page has all it needs inside, and nothing from elsewhere", problems)


def data(tap, p):
    with View(p.id) as v:
        graph = until(lambda: v.api("graph"), lambda g: len([t for t in g["threads"] if t["deadlocked"]]) == 3)
        tap.case("graph: as `interlock graph --json`",
                 same("graph", lambda: still(v.api("graph")), lambda: still(view("graph", p.id))))
        for name in ("handles", "qlocks", "dpcs", "deadlocks", "locks"):
            tap.case(f"{name}: as `interlock {name} --json`",
                     same(name, lambda view_name=name: v.api(view_name), lambda view_name=name: view(view_name, p.id)))
        ids = {t["id"] for t in v.api("threads")["threads"]}
        tap.case("threads", differences("ids", ids, {t["id"] for t in view("threads", p.id)["threads"]}))
        tap.case("timers", differences("complete", v.api("timers")["complete"], True))
        one = v.api(f"threads/{p.writer}/stack")["threads"]
        symbols = [f["symbol"] for f in one[0]["stack"]]
        problems = differences("id", [t["id"] for t in one], [p.writer])
        problems += [] if any(s.split("!")[1].split("+")[0] == "writer" for s in symbols) else [symbols]
        if not any(f["file"] == "service.c" and f["line"] > 0 for f in one[0]["stack"]):
            problems.append(one[0]["stack"])
        problems += differences("owns", [o["name"].split("!")[1] for o in one[0]["owns"]], ["cache"])
        tap.case("a thread's stack, with symbols and lines", problems)
        journal = v.api("object?of=journal")
        tap.case("an object, decoded", differences("object", journal, view("object", p.id, "journal")) +
                 differences("owner", number(journal["members"]["OwnerThread"]),
                             number(next(t["address"] for t in graph["threads"] if t["thread"] == p.checkpoint))))
        error = v.get("api/object?of=nothing")
        tap.case("what is wrong is said in a sentence",
                 [] if "there is no handle" in json.loads(error[2])["error"] else [error])


def live(tap, p):
    with View("--interval", "0.2", p.id) as v:
        def listener():
            return next(t for t in v.api("graph")["threads"] if t["thread"] == p.listener)

        before = listener()["wait_reason"]
        p.process.stdin.write("start\n")
        p.process.stdin.flush()
        after = until(listener, lambda t: t["wait_reason"] == "DelayExecution")["wait_reason"]
        started = [o["object"]["signal_state"] for o in v.api("graph")["objects"]
                   if (o["object"]["name"] or "").endswith("started")]
        tap.case("live: an event that is set is seen", differences("reasons", (before, after, started),
                                                                  ("UserRequest", "DelayExecution", [1])))
        history = until(lambda: v.api("history?after=0"), lambda h: len(h["samples"]) >= 4)
        numbers = [s["number"] for s in history["samples"]]
        problems = differences("numbers", numbers, list(range(1, len(numbers) + 1)))
        later = until(lambda: v.api(f"history?after={numbers[-1]}"), lambda h: h["samples"])
        problems += differences("next", later["samples"][0]["number"], numbers[-1] + 1)
        problems += differences("status", (later["status"]["ended"], later["status"]["process_id"],
                                           later["status"]["target"]), (False, p.id, "process"))
        problems += [s for s in history["samples"] if s["threads"] != 15 or s["deadlocked"] != 3]
        tap.case("live: a history without gaps", problems)
        many(tap, v)
        p.process.kill()
        p.process.wait()
        ended = until(lambda: v.api("history?after=0")["status"], lambda s: s["ended"])
        graph = v.api("graph")
        problems = differences("ended", (ended["ended"], ended["why"]), (True, "the process has ended"))
        problems += differences("threads", len(graph["threads"]), 15)
        problems += differences("stack", v.get(f"api/threads/{p.writer}/stack")[0], 503)
        tap.case("live: when the process has ended, the last picture stays", problems)


def waits_of(v, thread, after=0):
    answer = v.api(f"waits?after={after}")
    return answer["number"], next((t["waits"] for t in answer["threads"] if t["id"] == thread), [])


def over_time(tap, _):
    """The waits of each thread, before and after the service gets its command to start."""
    with Program("service") as q, View("--interval", "0.1", q.id) as v:
        number, waits = until(lambda: waits_of(v, q.writer), lambda found: found[1] and found[1][-1]["deadlocked"])
        last = waits[-1]
        problems = differences("writer", (last["open"], last["kind"], last["name"].split("\\")[-1], last["objects"], last["reason"]),
                               (True, "mutant", "journal", 1, "UserRequest"))
        problems += [] if last["from"] <= last["to"] else [last]
        problems += differences("in the same wait, nothing is new", waits_of(v, q.writer, number)[1], [])
        number, before = until(lambda: waits_of(v, q.listener), lambda found: found[1] and found[1][-1]["open"])
        q.start()
        _, after = until(lambda: waits_of(v, q.listener, number), lambda found: len(found[1]) == 2)
        ended, begun = (after + [None, None])[:2]
        problems += differences("ended", (ended["open"], ended["from"], ended["kind"]), (False, before[-1]["from"], "event"))
        problems += differences("begun", (begun["open"], begun["reason"]), (True, "DelayExecution"))
        problems += [] if ended["to"] <= begun["from"] + 0.05 else [ended, begun] # one tick, the resolution of wait times
        q.process.kill()
        q.process.wait()
        until(lambda: v.api("history?after=0")["status"], lambda s: s["ended"])
        problems += [] if waits_of(v, q.writer)[1] else ["they are gone with the process"]
        tap.case("live: the waits of each thread over time, also those that have ended", problems)


def many(tap, v):
    """For any number of clients, the server takes one snapshot per tick."""
    begin, first = time.monotonic(), int(v.get("api/graph")[1]["Interlock-Snapshot"])
    askers = [threading.Thread(target=lambda: [v.get("api/graph") for _ in range(10)]) for _ in range(8)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    last = int(v.get("api/graph")[1]["Interlock-Snapshot"])
    ticks = (time.monotonic() - begin) / 0.1
    tap.case("live: one snapshot per tick, however many ask",
             [] if last - first <= ticks + 1 else [last - first, ticks])


def core(tap):
    name = "a core file"
    if SANITIZED or not shutil.which("gcore"):
        print(f"ok {tap.count + 1} - {name} # SKIP gcore is missing, or this is a sanitizer's build")
        tap.count += 1
        return
    with tempfile.TemporaryDirectory() as folder, Program("resources", SHARED) as p:
        until(lambda: view("deadlocks", p.id), lambda d: len(d["deadlocked_threads"]) == 3)
        subprocess.run(["gcore", "-o", f"{folder}/core", str(p.id)], check=True, capture_output=True,
                       timeout=2 * PATIENCE)
        target = f"{folder}/core.{p.id}"
        with View(target) as v:
            problems = differences("graph", v.api("graph"), view("graph", target))
            problems += differences("status", {k: v.api("history?after=0")["status"][k] for k in ("target", "ended")},
                                    {"target": "core", "ended": False})
            problems += differences("waits", v.api("waits?after=0"), {"number": 0, "time": 0, "threads_left_out": 0, "threads": []})
            symbols = [f["symbol"] for f in v.api(f"threads/{p.alice}/stack")["threads"][0]["stack"]]
            problems += [] if any("resource_alice" in s for s in symbols) else [symbols]
            tap.case(name, problems)


def refusals(tap, p):
    for name, words in [("no target", []), ("no port", ["--port", "65536", "1"]),
                        ("no interval", ["--interval", "0", "1"]), ("a word too much", ["1", "2"])]:
        result = interlock("view", *words)
        tap.case(f"{name} is refused", [] if result.returncode == 2 and "usage" in result.stderr else [result])
    result = interlock("view", 2 ** 30)
    tap.case("no such process", [] if result.returncode == 1 and "there is no process" in result.stderr else [result])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = interlock("view", "--port", taken.getsockname()[1], p.id)
    tap.case("a port that is in use", [] if result.returncode == 1 and "cannot be used" in result.stderr else [result])


def main():
    tap = Tap()
    with Program("service") as p:
        until(lambda: view("locks", p.id), lambda d: len(d["locks"]) == 3 and d["deadlocks"])
        for cases in (access, strangers, assets, data, refusals, over_time, live):
            try:
                cases(tap, p)
            except (AssertionError, KeyError, StopIteration, IndexError, TypeError, OSError, ValueError,
                    http.client.HTTPException, subprocess.SubprocessError) as problem:
                tap.case(cases.__name__, [repr(problem)])
    core(tap)
    tap.done()


main()
