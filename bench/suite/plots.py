"""SVG with gnuplot, without a background. The colours are readable on white and on dark paper."""

import math
import shutil
import subprocess

TEXT = "#7d8590"
SIDE_COLOURS = {"floor": "#8b949e", "peer": "#3b82c4", "interlock": "#e0661a"}
PEER_COLOURS = ["#3b82c4", "#2f9e6e", "#9a6fd1", "#b08c1e", "#c2558f", "#4aa3a3", "#6b7fd6", "#8a8f98", "#5b9a3a",
                "#a5683f"]
OUR_COLOURS = ["#e0661a", "#d42f2f", "#f0a030", "#b8436d", "#e58b6b"]


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("_", "\\\\_") + '"'


def run_gnuplot(path, width, height, body):
    script = f"""
set terminal svg size {width},{height} dynamic font "Helvetica,13" enhanced
set output {quote(str(path)).replace(chr(92) * 2 + '_', '_')}
set border linecolor "{TEXT}"
set tics textcolor "{TEXT}" nomirror
set title textcolor "{TEXT}"
set key textcolor "{TEXT}"
set xlabel textcolor "{TEXT}"
set ylabel textcolor "{TEXT}"
set format y "%g"
set grid linecolor "{TEXT}" linewidth 0.4 dashtype 3
{body}
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True, stdout=subprocess.DEVNULL)
    path.write_text("\n".join(line.rstrip() for line in path.read_text().splitlines()) + "\n")


def shown(row):
    return [result for result in row["results"] if result["median"] >= 1]


def bars(path, rows, limit):
    """One panel of horizontal bars for each row, most expensive last; a bar beyond the limit is cut and labelled."""
    panels, height, offset = [], 0, 0
    for row in rows:
        height += 22 * len(shown(row)) + 70
    for row in reversed(rows):
        results = sorted(shown(row), key=lambda r: -r["median"])
        share = (22 * len(results) + 70) / height
        tics = ", ".join(f"{quote(r['contender'])} {i}" for i, r in enumerate(results))
        boxes, labels = [], []
        for i, result in enumerate(results):
            value = min(result["median"], limit)
            boxes.append(f"set object {i + 1} rectangle from 0,{i - 0.36} to {value:.3f},{i + 0.36} "
                         f"fillcolor rgb \"{SIDE_COLOURS[result['side']]}\" fillstyle solid noborder")
            labels.append(f"set label {i + 1} \"{result['median']:.1f}\" at {value:.3f},{i} offset 0.5,0 "
                          f"textcolor \"{TEXT}\"")
        panels.append(f"""
unset object
unset label
set size 1,{share:.4f}
set origin 0,{offset:.4f}
set lmargin 34
set rmargin 8
set title {quote(row['title'] + ', ' + row['unit'])}
set xrange [0:{limit}]
set yrange [-0.7:{len(results) - 0.3}]
set ytics ({tics})
unset key
{chr(10).join(boxes)}
{chr(10).join(labels)}
plot NaN notitle
""")
        offset += share
    run_gnuplot(path, 760, height, "set multiplot\n" + "\n".join(panels) + "\nunset multiplot")


def series(rows, value):
    """{contender: (side, [(number, value), ...])} over the rows, which differ in their number."""
    lines = {}
    for row in sorted(rows, key=lambda r: r["number"]):
        for result in row["results"]:
            found = value(result)
            if found is not None:
                lines.setdefault(result["contender"], (result["side"], []))[1].append((row["number"], found))
    return lines


def line_panels(path, panels, xlabel):
    """panels: [(title, ylabel, logscale, {contender: (side, points)}), ...]"""
    width, height = 420 * len(panels) + 230, 380
    part = 420 / width
    names = []
    for _, _, _, lines in panels:
        names += [(side, name) for name, (side, _) in lines.items() if (side, name) not in names]
    peers = [name for side, name in names if side != "interlock"]
    ours = [name for side, name in names if side == "interlock"]
    colour = {name: PEER_COLOURS[i % len(PEER_COLOURS)] for i, name in enumerate(peers)}
    colour.update({name: OUR_COLOURS[i % len(OUR_COLOURS)] for i, name in enumerate(ours)})
    body = ["set multiplot", f"set xlabel {quote(xlabel)}", "set logscale x"]
    for index, (title, ylabel, logarithmic, lines) in enumerate(panels):
        numbers = sorted({x for _, points in lines.values() for x, _ in points})
        data, plots = [], []
        for name, (side, points) in lines.items():
            block = f"$p{index}_{len(data)}"
            data.append(f"{block} << EOD\n" + "\n".join(f"{x} {y}" for x, y in points) + "\nEOD")
            weight = 2.6 if side == "interlock" else 1.4
            plots.append(f"{block} using 1:2 with linespoints linewidth {weight} pointtype 7 pointsize 0.5 "
                         f"linecolor rgb \"{colour[name]}\" title {quote(name)}")
        last = index == len(panels) - 1
        for side, name in names if last else []:
            if name not in lines:
                plots.append(f"NaN with linespoints linewidth {2.6 if side == 'interlock' else 1.4} pointtype 7 "
                             f"pointsize 0.5 linecolor rgb \"{colour[name]}\" title {quote(name)}")
        body += data + [
            f"set origin {index * part:.4f},0",
            f"set size {part if not last else 1 - index * part:.4f},1",
            "set lmargin 9",
            f"set rmargin {2 if not last else 31}",
            "set key outside right top" if last else "unset key",
            f"set title {quote(title)}",
            f"set ylabel {quote(ylabel)}",
            "set logscale y" if logarithmic else "unset logscale y\nset yrange [0:*]",
            "set yrange [*:*]" if logarithmic else "",
            f"set xrange [{min(numbers) / 1.3:.3f}:{max(numbers) * 1.3:.3f}]",
            "set xtics (" + ", ".join(f'"{x:,}" {x}' for x in numbers) + ")",
            "plot " + ", \\\n".join(plots),
        ]
    body.append("unset multiplot")
    run_gnuplot(path, width, height, "\n".join(body))


def stacked_panels(path, panels, xlabel):
    """As line_panels, one below the other, each with a key of its own: for many lines. Peers are thin."""
    heights = [max(300, 100 + 22 * len(lines)) for _, _, _, lines in panels]
    above = 0
    colours = OUR_COLOURS + PEER_COLOURS
    body = ["set multiplot", f"set xlabel {quote(xlabel)}", "set logscale xy", "set lmargin 9", "set rmargin 42",
            "set key outside right top maxcols 1"]
    for index, (title, ylabel, _, lines) in enumerate(panels):
        above += heights[index]
        numbers = sorted({x for _, points in lines.values() for x, _ in points})
        data, drawn = [], []
        for name, (side, points) in lines.items():
            block = f"$s{index}_{len(data)}"
            data.append(f"{block} << EOD\n" + "\n".join(f"{x} {y}" for x, y in points) + "\nEOD")
            number = len(data) - 1
            style = "linewidth 1" if side == "peer" else "linewidth 2.4"
            drawn.append(f"{block} using 1:2 with linespoints {style} pointtype {4 + number % 10} pointsize 0.7 "
                         f"linecolor rgb \"{colours[number % len(colours)]}\" title {quote(name)}")
        body += data + [
            f"set origin 0,{1 - above / sum(heights):.4f}",
            f"set size 1,{heights[index] / sum(heights):.4f}",
            f"set title {quote(title)}",
            f"set ylabel {quote(ylabel)}",
            f"set xrange [{min(numbers) / 1.3:.3f}:{max(numbers) * 1.3:.3f}]",
            "set xtics (" + ", ".join(f'"{x:,}" {x}' for x in numbers) + ")",
            "plot " + ", \\\n".join(drawn),
        ]
    body.append("unset multiplot")
    run_gnuplot(path, 900, sum(heights), "\n".join(body))


def fairness_of(result):
    if "fairness" not in result:
        return None
    return max(result["fairness"], 1e-6)


def median_of(result):
    return result["median"]


def plots(rows):
    """[(name, function that draws it to a path), ...] for the measured rows."""
    by_name = {row["name"]: row for row in rows}
    by_family = {}
    for row in rows:
        by_family.setdefault((row["family"], row["kind"]), []).append(row)
    made = []
    pairs = [by_name[name] for name in ("exclusive", "shared", "spinlock") if name in by_name]
    if pairs:
        values = sorted(r["median"] for row in pairs for r in row["results"])
        limit = math.ceil(min(1.1 * values[-1], 2 * values[int(0.9 * (len(values) - 1))]))
        made.append(("uncontended", lambda path: bars(path, pairs, limit)))
    mutexes = by_family.get(("mutex", "contended"))
    if mutexes:
        made.append(("mutex", lambda path: line_panels(path, [
            ("mutex, throughput", "M/s", False, series(mutexes, median_of)),
            ("mutex, fairness (least / most)", "", True, series(mutexes, fairness_of))], "threads")))
    locks = by_family.get(("rwlock", "contended"))
    if locks:
        panels = []
        for share in sorted({row["other"] for row in locks}, reverse=True):
            of_share = [row for row in locks if row["other"] == share]
            panels.append((f"{share} % readers, throughput", "M/s", False, series(of_share, median_of)))
        made.append(("readers", lambda path: line_panels(path, panels, "threads")))
        fair = [(title.replace("throughput", "fairness"), "", True,
                 series([row for row in locks if f"{row['other']} %" in title], fairness_of))
                for title, _, _, _ in panels]
        made.append(("readers-fairness", lambda path: line_panels(path, fair, "threads")))
    timers = [(family, by_family[(family, kind)]) for family, kind in
              (("timer-set", "loop"), ("timer-cancel", "loop"), ("timer-expiry", "value"))
              if (family, kind) in by_family]
    if timers:
        made.append(("timers", lambda path: line_panels(path, [
            (family.replace("timer-", "timers: "), "ns", True, series(of, median_of)) for family, of in timers],
            "timers that are set")))
    any_rows = [(title, by_family[("any" if kind == "loop" else None, kind)] if kind == "loop" else
                 [dict(by_name[name], number=int(name.split("-")[1])) for name in
                  ("any-2-same", "any-8-same", "any-64-same") if name in by_name])
                for title, kind in (("wait for any, one is signaled", "loop"),
                                    ("wait for any, round trip", "exchange"))
                if kind != "loop" or ("any", "loop") in by_family]
    any_rows = [(title, of) for title, of in any_rows if of]
    if any_rows:
        made.append(("any", lambda path: line_panels(path, [
            (title, "ns", True, series(of, median_of)) for title, of in any_rows], "objects")))
    return made


def draw(rows, directory):
    """The paths of the plots; none without gnuplot."""
    if shutil.which("gnuplot") is None:
        return []
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, function in plots(rows):
        path = directory / f"{name}.svg"
        function(path)
        paths.append(path)
    return paths
