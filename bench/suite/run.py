"""Takes the samples: row by row, all contenders in turn, repeatedly."""

import random
import re
import sys
import time

from . import machine, results

TRIES = 3
SHORT_PATIENCE = 30  # seconds
SIDES = ["floor", "peer", "interlock"]


def selected(patterns, *names):
    return not patterns or any(re.search(pattern, name) for pattern in patterns for name in names)


def collect(agents, options):
    """[(row, [measurement, ...]), ...] in the order of the table of rows."""
    rows, of_row = [], {}
    for agent in agents:
        for measurement in agent.measurements:
            if not (options.full or options.rows or options.smoke or measurement["brief"]):
                continue
            if agent.label == "other" and measurement["side"] != "interlock":
                continue
            if not selected(options.rows, measurement["row"]):
                continue
            if measurement["side"] == "peer" and not selected(options.contenders, measurement["contender"]):
                continue
            if measurement["side"] == "interlock" and not selected(options.ours, measurement["contender"]):
                continue
            if measurement["row"] not in of_row:
                of_row[measurement["row"]] = []
                rows.append(measurement["row"])
            of_row[measurement["row"]].append(measurement)
    order = [m["row"] for m in agents[0].measurements]
    rows.sort(key=lambda name: order.index(name) if name in order else len(order))
    for measurements in of_row.values():
        names = [m["contender"] for m in measurements]
        measurements.sort(key=lambda m: (SIDES.index(m["side"]), names.index(m["contender"])))
    return [(name, of_row[name]) for name in rows]


def new_row(name, measurements):
    first = measurements[0]
    row = {"name": name, **{key: first[key] for key in ("family", "title", "unit", "kind", "number", "other")}}
    row["results"] = []
    for measurement in measurements:
        result = {key: measurement[key] for key in ("contender", "side", "target", "relative") if key in measurement}
        if "fairness" in measurement:
            result["fairness_target"] = measurement["fairness"]
        if measurement["agent"].label:
            result["build"] = measurement["agent"].label
        row["results"].append({**result, "samples": []})
    return row


# The host's tick, after which it may switch threads, times the turns that each thread should have in a sample; for two processors.
MILLISECONDS_PER_THREAD = 4 * 8 // 2


def duration(measurement, options):
    """Milliseconds of a sample. Fairness needs time: each thread has to get its turns."""
    if options.smoke:
        return 0
    if options.milliseconds:
        return options.milliseconds
    longer = options.full or options.rows
    if measurement["kind"] == "contended":
        threads = measurement["number"]
        if longer:
            return max(400 if threads > 4 else 200, threads * MILLISECONDS_PER_THREAD)
        return 150 if threads > 4 else 60
    if measurement["kind"] == "tail":
        return 400 if longer else 80
    if measurement["kind"] in ("exchange", "stream"):
        return 40 if longer else 12
    return 20 if longer else 4


def tries(options):
    """A disturbed sample is repeated, in the short mode while there is time."""
    if options.smoke or time.monotonic() > options.patience:
        return 1
    return TRIES


def take(measurement, options):
    agent = measurement["agent"]
    for _ in range(tries(options)):
        sample = agent.sample(measurement, duration(measurement, options))
        if measurement["unit"] in results.COUNTED or not agent.is_disturbed(sample):
            return sample
    sample["disturbed"] = True
    return sample


def repeats_of(measurements, options):
    if measurements[0]["unit"] in results.COUNTED:
        return 1
    if options.smoke:
        return 1
    short = not (options.full or options.rows)
    return min(options.repeats, 3) if short and measurements[0]["kind"] in ("contended", "tail") else options.repeats


def order(count, repeat, options):
    """Each run leaves traces in the host, so the order changes each time; but two builds stay adjacent."""
    if options.against:
        return [(repeat + index) % count for index in range(count)]
    return random.Random(repeat).sample(range(count), count)


def run_row(name, measurements, options):
    row = new_row(name, measurements)
    for measurement in measurements:
        if not options.smoke and measurement["kind"] not in ("value", "tail"):
            measurement["agent"].sample(measurement, duration(measurement, options))
    repeats = repeats_of(measurements, options)
    for repeat in range(repeats):
        for index in order(len(measurements), repeat, options):
            row["results"][index]["samples"].append(take(measurements[index], options))
    for _ in range(repeats if options.full or options.rows else 0):
        for index in results.short_of_samples(row, repeats // 2 + 1):
            row["results"][index]["samples"].append(take(measurements[index], options))
    return row


def expected(measurements, options):
    """Seconds that the row's samples take, if none is repeated."""
    return sum(duration(m, options) for m in measurements) / 1000 * (1 + repeats_of(measurements, options))


def run(agents, options, done=(), again=(), seconds=float("inf"), keep=lambda row, load: None):
    """(rows, load). Leaves out the rows in done, measures those in again last, and begins none that would end later than after
    so many seconds; but one row is measured anyway. keep gets each row when it is complete."""
    rows = []
    begin = time.monotonic()
    options.patience = begin + (float("inf") if options.full or options.rows else SHORT_PATIENCE)
    chosen = [(name, measurements) for name, measurements in collect(agents, options) if name not in done]
    chosen.sort(key=lambda each: each[0] in again)
    whole = machine.Load(agents)
    for position, (name, measurements) in enumerate(chosen):
        if rows and time.monotonic() - begin + expected(measurements, options) > seconds:
            break
        if sys.stderr.isatty() and not options.smoke:
            print(f"\r\033[K{position + 1}/{len(chosen)} {name}", end="", file=sys.stderr, flush=True)
        load, start = machine.Load(agents), time.monotonic()
        row = run_row(name, measurements, options)
        row["load"], row["seconds"] = load.shares(), round(time.monotonic() - start, 2)
        if options.verbose:
            print(f"{name}: {row['seconds']} s for {len(measurements)} contenders", file=sys.stderr, flush=True)
        rows.append(row)
        keep(row, whole.shares())
    if sys.stderr.isatty() and not options.smoke:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    return rows, whole.shares()
