"""Cache lines per operation on simulated processors: tables and plot of lab/scale's counts."""

import shutil

from . import plots

EXCLUSIVE, SHARED, OBJECTS = "exclusive", "shared", "objects"
TITLES = {EXCLUSIVE: "locks, one owner", SHARED: "locks, shared", OBJECTS: "queues, pool, timers"}
REFERENCE = " (reference)"
NODES = (1, 2, 4, 8)
NODE_PROCESSORS = 64
MEASURES = {"lines": "transfers", "cycles": "cycles", "crossings": "crossings"}
LOWEST = 0.1  # stands for zero on a logarithmic scale


def shown(value):
    return "0" if value == 0 else f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 0.1 else f"{value:.2f}"


def flat(cells):
    """The counts of one node."""
    return [c for c in cells if c["nodes"] == 1]


def locks(cells, group=None):
    return list(dict.fromkeys(c["lock"] for c in cells if group is None or c["group"] == group))


def value(cells, lock, processors, nodes, measure):
    for c in cells:
        if (c["lock"], c["processors"], c["nodes"]) == (lock, processors, nodes) and c["finished"]:
            return c["per_acquisition"][measure]
    return None


def by_processors(cells, group, measure, table):
    sizes = sorted({c["processors"] for c in flat(cells)})
    lines = [[lock, *(shown(value(cells, lock, size, 1, measure)) for size in sizes)]
             for lock in locks(flat(cells), group)]
    return table(["processors", *map(str, sizes)], lines)


def by_nodes(cells, table):
    """Lines that cross nodes, and cycles, by the number of nodes."""
    several = locks([c for c in cells if c["nodes"] > 1])
    headings = [f"{NODE_PROCESSORS} processors"]
    headings += [f"lines between nodes, {nodes} nodes" for nodes in NODES if nodes > 1]
    headings += [f"cycles, {nodes} node{'s' if nodes > 1 else ''}" for nodes in NODES]
    lines = []
    for lock in several:
        crossings = [value(cells, lock, NODE_PROCESSORS, nodes, "crossings") for nodes in NODES if nodes > 1]
        cycles = [value(cells, lock, NODE_PROCESSORS, nodes, "cycles") for nodes in NODES]
        lines.append([lock, *map(shown, crossings), *map(shown, cycles)])
    return table(headings, lines)


def table(cells, what, make_table):
    """what: ["lines", group], ["cycles", group] or ["nodes"]."""
    if not cells:
        return "Not counted; `scripts/bench --scale` does it."
    if what[0] == "nodes":
        return by_nodes(cells, make_table)
    return by_processors(cells, what[1], MEASURES[what[0]], make_table)


def draw(cells, directory):
    if not cells or shutil.which("gnuplot") is None:
        return []
    panels = []
    for group, title in TITLES.items():
        lines = {}
        for c in flat(cells):
            if c["group"] == group and c["finished"]:
                name = c["lock"].replace(REFERENCE, "")
                side = "peer" if REFERENCE in c["lock"] else "interlock"
                lines.setdefault(name, (side, []))[1].append((c["processors"], max(LOWEST,
                                                                                  c["per_acquisition"]["transfers"])))
        if lines:
            panels.append((title, "cache lines per operation", True, lines))
    path = directory / "scale.svg"
    plots.stacked_panels(path, panels, "processors")
    return [path]
