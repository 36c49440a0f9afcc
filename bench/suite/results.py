"""Statistics over samples, and their tables."""

import statistics

from .agents import REGIME_GAP

HIGHER_IS_BETTER = ("M/s",)
COUNTED = ("bytes", "wakeups")  # independent of any clock
PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}


def regimes(samples):
    """Splits the range of the line round trips where they leave a gap: [upper bound, ...], the last one infinite."""
    probes = sorted(probe for sample in samples for probe in sample.get("line", []) if probe > 0)
    bounds = [(low * high) ** 0.5 for low, high in zip(probes, probes[1:]) if high > REGIME_GAP * low]
    return bounds + [float("inf")]


def regime_of(sample, bounds):
    """The number of its regime; None if it changed meanwhile or is unknown."""
    if 0 in sample["line"]:
        return None
    found = {next(i for i, bound in enumerate(bounds) if probe <= bound) for probe in sample["line"]}
    return found.pop() if len(found) == 1 else None


def keep_one_regime(row, bounds):
    """Marks the samples of a row that are not of its most frequent regime, and those during which it changed."""
    counts = {}
    samples = [s for result in row["results"] for s in result["samples"] if "line" in s]
    if not samples:
        return
    for sample in samples:
        sample["regime"] = regime_of(sample, bounds)
        counts[sample["regime"]] = counts.get(sample["regime"], 0) + 1
    chosen = max((r for r in counts if r is not None), key=lambda r: counts[r], default=None)
    if chosen is not None:
        row["line"] = round(statistics.median(p for s in samples if s["regime"] == chosen for p in s["line"]), 1)
    row["regimes"] = len(counts)
    for sample in samples:
        sample["foreign"] = sample["regime"] != chosen


def short_of_samples(row, wanted):
    """Indexes of the results with fewer samples than wanted that were not disturbed and in the row's regime."""
    keep_one_regime(row, regimes([s for result in row["results"] for s in result["samples"]]))
    return [index for index, result in enumerate(row["results"])
            if sum(1 for s in result["samples"] if not s.get("foreign") and not s.get("disturbed")) < wanted]


def usable(result):
    good = [s for s in result["samples"] if not s.get("foreign") and not s.get("disturbed")]
    return good or [s for s in result["samples"] if not s.get("foreign")] or result["samples"]


def tail_of(samples):
    """The percentiles over all samples together; the buckets of each are (upper end, how many)."""
    buckets = {}
    for sample in samples:
        for end, count in sample["tail"]:
            buckets[end] = buckets.get(end, 0) + count
    everything = sum(buckets.values())
    found = {"operations": everything, "max": max(sample["longest"] for sample in samples)}
    for name, share in PERCENTILES.items():
        below = 0
        for end in sorted(buckets):
            below += buckets[end]
            if below >= share * everything:
                found[name] = min(end, found["max"])
                break
    return found


def summarize(result):
    samples = usable(result)
    values = [sample["value"] for sample in samples]
    middle = statistics.median(values)
    result["median"] = middle
    result["min"], result["max"] = min(values), max(values)
    result["spread"] = (max(values) - min(values)) / middle if middle else 0
    result["used"] = len(values)
    result["disturbed"] = sum(1 for s in samples if s.get("disturbed"))
    if "tail" in samples[0]:
        result["tail"] = tail_of(samples)
    if "fairness" in samples[0]:
        result["fairness"] = statistics.median(sample["fairness"] for sample in samples)


def higher_is_better(row):
    return row["unit"] in HIGHER_IS_BETTER


def best(row, side):
    medians = [r["median"] for r in row["results"] if r["side"] == side and r["median"] > 0]
    if not medians:
        return None
    return max(medians) if higher_is_better(row) else min(medians)


def floor_of(row):
    """The most expensive floor: the others omit something that a contender must do."""
    medians = [r["median"] for r in row["results"] if r["side"] == "floor"]
    return max(medians) if medians else None


def target_of(row, result):
    """The target in the unit of the row."""
    if "target" not in result:
        return None
    if "relative" not in result:
        return result["target"]
    to = [r["median"] for r in row["results"] if r["contender"] == result["relative"]]
    return result["target"] * to[0] if to else None


def aim(row, result):
    """The target as shown in a table; empty if there is none."""
    target = target_of(row, result)
    if not target:
        return ""
    wanted = f" ({result['fairness_target']:g})" if "fairness_target" in result else ""
    return ("≥ " if higher_is_better(row) else "≤ ") + number(target) + wanted


def misses(row, result):
    """Does the median, as it is shown, miss its target, or the fairness its own?"""
    target = target_of(row, result)
    if not target:
        return False
    median = float(number(result["median"]).replace(",", ""))
    late = median < target if higher_is_better(row) else median > target
    return late or round(result.get("fairness", 1), 2) < result.get("fairness_target", 0)


def number(value):
    if value is None:
        return ""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(value, to):
    return f"{value / to:.2f}" if to else ""


def fairness(value):
    if value is None:
        return ""
    return f"{value:.2f}" if value >= 0.01 or value == 0 else f"{value:.0e}"


def columns(row, result):
    peer, floor = best(row, "peer"), floor_of(row)
    ours = result["side"] == "interlock"
    return [
        result["contender"] + (f" [{result['build']}]" if result.get("build") else ""),
        number(result["median"]),
        number(result["max"] if higher_is_better(row) else result["min"]),
        f"{100 * result['spread']:.0f} %",
        fairness(result.get("fairness")),
        ratio(result["median"], peer) if ours else "",
        ratio(result["median"], floor) if result["side"] != "floor" else "",
        aim(row, result),
    ]


def tail_columns(result):
    tail = result["tail"]
    return [result["contender"], *(number(tail[name]) for name in (*PERCENTILES, "max")), f"{tail['operations']:,}"]


TAIL_HEADINGS = ["", *PERCENTILES, "max", "operations"]
HEADINGS = ["", "median", "best", "spread", "fairness", "to best peer", "to floor", "target"]
SIDES = {"floor": "floor", "peer": "peer", "interlock": "Interlock"}


def notes(row):
    found = []
    if "line" in row:
        found.append(f"cache-line round trip: {row['line']:.0f} ns")
    if row.get("regimes", 1) > 1:
        found.append("samples of other regimes left out")
    disturbed = sum(r["disturbed"] for r in row["results"])
    if disturbed:
        found.append(f"{disturbed} disturbed samples among the used ones")
    return "; ".join(found)


def table_of(row):
    """(a line for each result, the headings)"""
    if row["kind"] == "tail":
        return [tail_columns(result) for result in row["results"]], TAIL_HEADINGS
    return [columns(row, result) for result in row["results"]], HEADINGS


def heading(row):
    return f"{row['title']} [{row['name']}], {row['unit']}" + (", more is better" if higher_is_better(row) else "")


def print_row(row):
    shown, headings = table_of(row)
    lines = [(SIDES[result["side"]], *line) for result, line in zip(row["results"], shown)]
    kept = [0, 1, *(i for i in range(2, len(headings) + 1) if any(line[i] for line in lines))]
    table = [("", *headings), *lines]
    widths = {i: max(len(line[i]) for line in table) for i in kept}
    print(f"\n{heading(row)}" + (f"  ({notes(row)})" if notes(row) else ""))
    for line in table:
        cells = [line[i].ljust(widths[i]) if i < 2 else line[i].rjust(widths[i]) for i in kept]
        print("  " + "  ".join(cells).rstrip())


def finish(rows):
    bounds = regimes([s for row in rows for result in row["results"] for s in result["samples"]])
    for row in rows:
        keep_one_regime(row, bounds)
        for result in row["results"]:
            summarize(result)


def is_bad(sample):
    return sample.get("disturbed") or ("line" in sample and sample["regime"] is None)


def print_comparison(rows):
    """This build relative to the other, by pairs of adjacent samples."""
    print("\nthis build / the other (median of the ratios of neighbouring samples; their range)")
    for row in rows:
        for result in row["results"]:
            other = [r for r in row["results"] if r["contender"] == result["contender"] and r.get("build") == "other"]
            if result.get("build") or not other:
                continue
            pairs = sorted(a["value"] / b["value"] for a, b in zip(result["samples"], other[0]["samples"])
                           if b["value"] and a.get("regime") == b.get("regime") and not is_bad(a) and not is_bad(b))
            if not pairs:
                print(f"  {row['name']:18} {result['contender']:36} no pair of undisturbed samples")
                continue
            fair = ""
            if "fairness" in result:
                fair = f"   fairness {fairness(result['fairness'])} / {fairness(other[0]['fairness'])}"
            print(f"  {row['name']:18} {result['contender']:36} {statistics.median(pairs):6.3f}  "
                  f"({pairs[0]:.3f} to {pairs[-1]:.3f}, {len(pairs)} pairs)  "
                  f"{number(result['median'])} / {number(other[0]['median'])} {row['unit']}{fair}"
                  f"{', more is better' if higher_is_better(row) else ''}")
