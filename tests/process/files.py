#!/usr/bin/env python3
"""usage: files.py PROGRAM: the state of the files that INTERLOCK_TRACE and INTERLOCK_CONTENTION name.

Whatever is wrong with them, the program runs, exits, and reports the problem once."""

import json
import os
import resource
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, sys.argv[2])
from tap import Tap  # noqa: E402

PROGRAM = Path(sys.argv[1]).resolve()
OWN = "the program's own output\n"
SECONDS = 120
SETTINGS = ("INTERLOCK_TRACE", "INTERLOCK_CONTENTION")
KEPT = "kept by its owner\n"


def run(folder, setting, value, *arguments, **options):
    environment = {**os.environ, setting: str(value)}
    return subprocess.run([PROGRAM, *arguments], cwd=folder, env=environment, text=True, errors="replace", timeout=SECONDS,
                          stdout=options.pop("stdout", subprocess.PIPE), stderr=subprocess.PIPE, **options)


def went_on(result, said=None):
    """The program ran normally; said: the one line that the library printed, or none."""
    lines = result.stderr.splitlines()
    problems = []
    if result.returncode != 0 or (result.stdout is not None and not result.stdout.startswith(OWN)):
        problems.append(f"the program: {result.returncode} {result.stdout!r}")
    if (said is None and lines) or (said is not None and (len(lines) != 1 or said not in lines[0])):
        problems.append(f"said {lines!r}, expected {said!r}")
    return problems


def is_recording(data, setting):
    if setting == "INTERLOCK_TRACE":
        try:
            return sum(event.get("cat") == "wait" for event in json.loads(data)["traceEvents"]) == 3
        except ValueError:
            return False
    return data[:8] == b"IKTRACE3"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def expect(what, found, wanted):
    return [] if found == wanted else [f"{what}: {found!r}, expected {wanted!r}"]


def regular(folder, setting):
    problems = went_on(run(folder, setting, "new"))
    problems += expect("files", names(folder), ["new"])
    problems += expect("a recording", is_recording((folder / "new").read_bytes(), setting), True)
    yield "a new file", problems
    (folder / "new").write_text(KEPT)
    (folder / "new").chmod(0o640)
    problems = went_on(run(folder, setting, "new", "signals"))
    problems += expect("files", names(folder), ["new"]) + expect("mode", stat.S_IMODE((folder / "new").stat().st_mode), 0o640)
    problems += expect("a recording", is_recording((folder / "new").read_bytes(), setting), True)
    yield "a file that is there is replaced, with its mode", problems


def device(folder, name, minor):
    """A copy of the machine's own file, if the user may create one: a faulty library would remove it."""
    try:
        os.mknod(folder / name, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        with open(folder / name, "wb"):
            return folder / name
    except OSError:
        return Path("/dev") / name


def devices(folder, setting):
    null, always_full = device(folder, "null", 3), device(folder, "full", 7)
    yield "a device", went_on(run(folder, setting, null)) + expect("it is there", stat.S_ISCHR(null.lstat().st_mode), True)
    yield "a device that is full", went_on(run(folder, setting, always_full), "No space left") + expect(
        "it is there", stat.S_ISCHR(always_full.lstat().st_mode), True)
    problems = went_on(run(folder, setting, folder), "Is a directory")
    yield "a folder", problems + expect("it is there", folder.is_dir(), True)


def links(folder, setting):
    (folder / "real").write_text(KEPT)
    (folder / "link").symlink_to("real")
    problems = went_on(run(folder, setting, "link"))
    problems += expect("link", os.readlink(folder / "link"), "real")
    problems += expect("a recording", is_recording((folder / "real").read_bytes(), setting), True)
    yield "a symbolic link to a file", problems + expect("files", names(folder), ["link", "real"])
    (folder / "real").unlink()
    problems = went_on(run(folder, setting, folder / "link"))
    problems += expect("a recording", is_recording((folder / "real").read_bytes(), setting), True)
    yield "a symbolic link to nothing yet", problems + expect("files", names(folder), ["link", "real"])
    (folder / "round").symlink_to("round")
    problems = went_on(run(folder, setting, "round"), "Too many levels")
    yield "a symbolic link to itself", problems + expect("link", os.readlink(folder / "round"), "round")
    (folder / "round").unlink()
    null = device(folder, "null", 3)
    (folder / "to-null").symlink_to(null)
    yield "a symbolic link to a device", went_on(run(folder, setting, "to-null")) + expect(
        "link", os.readlink(folder / "to-null"), str(null)) + expect("device", stat.S_ISCHR(null.lstat().st_mode), True)
    if os.geteuid() == 0:
        os.lchown(folder / "link", 12345, -1)
        before = (folder / "real").read_bytes()
        problems = went_on(run(folder, setting, "link"), "of another user")
        yield "a symbolic link of another user", problems + expect("file", (folder / "real").read_bytes() == before, True)
        os.chown(folder / "real", 12345, -1)
        problems = went_on(run(folder, setting, "real"), "another user")
        yield "a file of another user", problems + expect("file", (folder / "real").read_bytes() == before, True)


def pipes(folder, setting):
    os.mkfifo(folder / "pipe")
    problems = went_on(run(folder, setting, "pipe"), "it has no reader")
    yield "a pipe without a reader", problems + expect("it is there", stat.S_ISFIFO((folder / "pipe").stat().st_mode), True)
    with tempfile.TemporaryFile() as read:
        reader = subprocess.Popen(["cat", folder / "pipe"], stdout=read)
        keeps = os.open(folder / "pipe", os.O_RDWR)
        result = run(folder, setting, "pipe")
        os.close(keeps)
        reader.wait(timeout=SECONDS)
        read.seek(0)
        problems = went_on(result) + expect("a recording", is_recording(read.read(), setting), True)
    yield "a pipe with a reader", problems + expect("files", names(folder), ["pipe"])
    keeps = os.open(folder / "pipe", os.O_RDWR)
    os.set_blocking(keeps, False)
    try:
        while os.write(keeps, bytes(4096)):
            pass
    except BlockingIOError:
        pass
    problems = went_on(run(folder, setting, "pipe"), "its reader does not read")
    os.close(keeps)
    yield "a pipe whose reader does not read", problems


def descriptors(folder, setting):
    for name, number in (("/dev/stdout", 1), ("/dev/fd/1", 1), ("/proc/self/fd/1", 1)):
        with open(folder / "out", "w+b") as out:
            out.write(b"before\n")
            out.flush()
            result = run(folder, setting, name, stdout=out)
            out.seek(0)
            data = out.read()
        problems = went_on(result) + expect("files", names(folder), ["out"])
        problems += expect("the program's output first", data.startswith(b"before\n" + OWN.encode()), True)
        problems += expect("a recording", is_recording(data[len("before\n" + OWN):], setting), True)
        yield f"{name}: behind the program's own output", problems
    problems = went_on(run(folder, setting, "/dev/fd/77"), "Bad file descriptor")
    yield "a descriptor that is not open", problems


def full(folder, setting):
    (folder / "kept").write_text(KEPT)
    (folder / "kept").chmod(0o600)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, resource.RLIM_INFINITY))

    problems = went_on(run(folder, setting, "kept", "signals", preexec_fn=limit), "File too large")
    problems += expect("it is there", (folder / "kept").read_text(), KEPT)
    yield "no room for the file: what was there stays", problems + expect("files", names(folder), ["kept"])
    problems = went_on(run(folder, setting, "new", preexec_fn=limit), "File too large")
    yield "no room for a new file: nothing is left", problems + expect("files", names(folder), ["kept"])


def read_only(folder, setting):
    if os.geteuid() == 0:
        return
    (folder / "kept").write_text(KEPT)
    folder.chmod(0o500)
    problems = went_on(run(folder, setting, "kept"), "Permission denied") + expect("file", (folder / "kept").read_text(), KEPT)
    problems += went_on(run(folder, setting, "new"), "Permission denied") + expect("files", names(folder), ["kept"])
    folder.chmod(0o700)
    yield "a folder that cannot be written", problems


def processes(folder, setting):
    problems = went_on(run(folder, setting, "file.out", "fork"))
    problems += expect("files", len(names(folder)), 9)
    problems += [f"{name} is none" for name in names(folder) if not is_recording((folder / name).read_bytes(), setting)]
    yield "children have files of their own", problems
    others = [subprocess.Popen([PROGRAM], cwd=folder, env={**os.environ, setting: "at-once"}, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True) for _ in range(16)]
    said = [other.communicate(timeout=SECONDS)[1] for other in others]
    problems = expect("said", set(said), {""}) + expect("exit", {other.returncode for other in others}, {0})
    problems += [f"{path.name} is none" for path in folder.glob("at-once*")
                 if not is_recording(path.read_bytes(), setting)]
    problems += expect("left", [path.name for path in folder.glob("at-once*") if path.name.count("-") > 1], [])
    yield "processes that write the same file at once", problems
    with open(folder / "stream", "w+b") as out:
        result = run(folder, setting, "/dev/stdout", "fork", stdout=out)
        out.seek(0)
        data = out.read()
    data = data[data.rindex(OWN.encode()) + len(OWN):] if OWN.encode() in data else data
    yield "children of a process that writes to a stream write nothing to it", went_on(result) + expect(
        "a recording", is_recording(data, setting), True)


def daemons(folder, setting):
    """The program closes every descriptor that it finds, and has files of its own under their numbers."""
    (folder / "own").write_text(KEPT)
    problems = went_on(run(folder, setting, "new", "daemon")) + expect("own", (folder / "own").read_text(), KEPT)
    problems += [f"{name} is none" for name in names(folder)
                 if name != "own" and not is_recording((folder / name).read_bytes(), setting)]
    yield "a daemon's own files stay as they were", problems + expect(
        "files", [name for name in names(folder) if name.endswith(".trace")] + [len(names(folder))], [3])
    with open(folder / "out", "w+b") as out:
        result = run(folder, setting, "/dev/stdout", "daemon", stdout=out)
    problems = went_on(result, "the program has closed it") + expect("own", (folder / "own").read_text(), KEPT)
    yield "a daemon that has closed the stream", problems + expect("out", (folder / "out").read_text(), OWN)


def privileged(folder, setting):
    """A program with more rights than its caller does not write files for the caller."""
    if os.geteuid() != 0:
        return
    program = folder / "privileged"
    program.write_bytes(PROGRAM.read_bytes())
    program.chmod(0o4755)
    folder.chmod(0o777)
    result = subprocess.run([program], cwd=folder, env={setting: str(folder / "out")}, text=True, capture_output=True,
                            preexec_fn=lambda: os.setuid(12345), timeout=SECONDS)
    yield "a program with the right of another user ignores it", went_on(result) + expect(
        "files", names(folder), ["privileged"])


def main():
    tap = Tap()
    for setting in SETTINGS:
        for cases in (regular, devices, links, pipes, descriptors, full, read_only, processes, daemons, privileged):
            with tempfile.TemporaryDirectory() as folder:
                os.chmod(folder, 0o755)
                for name, problems in cases(Path(folder), setting):
                    tap.case(f"{setting}: {name}", problems)
    tap.done()


main()
