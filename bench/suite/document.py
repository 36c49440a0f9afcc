"""Puts the numbers of a run into docs/performance.md: each table between its two markers, and the plots."""

import json
import re
import statistics

from . import plots, results

BEGIN, END = "<!-- bench: {} -->", "<!-- end -->"


def cell(text):
    return text.replace("|", "\\|")


def table(headings, lines):
    kept = [i for i in range(len(headings)) if i == 0 or any(line[i] for line in lines)]
    out = ["| " + " | ".join(headings[i] for i in kept) + " |",
           "|" + "|".join("---" if i == 0 else "---:" for i in kept) + "|"]
    out += ["| " + " | ".join(cell(line[i]) for i in kept) + " |" for line in lines]
    return "\n".join(out)


def best_of(row, side, fairness):
    """The best contender of a side, of those that are so fair; None if there is none."""
    found = [r for r in row["results"] if r["side"] == side and r.get("fairness", 1) >= fairness]
    choose = max if results.higher_is_better(row) else min
    return choose(found, key=lambda r: r["median"]) if found else None


def named(result):
    if result is None:
        return "none"
    return f"{results.number(result['median'])} {result['contender']}" + fair(result)


def summary_line(row, title, fairness):
    mine, peer = best_of(row, "interlock", fairness), best_of(row, "peer", fairness)
    line = [title, results.number(results.floor_of(row)), named(peer), named(mine)]
    if mine is None:
        return line + [""] * 4
    return line + [results.ratio(mine["median"], peer["median"]) if peer else "",
                   results.ratio(mine["median"], results.floor_of(row)), f"{100 * mine['spread']:.0f} %",
                   results.aim(row, mine)]


def summary(record):
    """A line for each row: floor, best peer, Interlock's best, target. Contended rows have another one for fair locks."""
    lines = []
    for row in record["rows"]:
        if row["unit"] == "bytes" or best_of(row, "interlock", 0) is None or best_of(row, "peer", 0) is None:
            continue
        lines.append(summary_line(row, f"{row['title']}, {row['unit']}", 0))
        wanted = max([r["fairness_target"] for r in row["results"] if "fairness_target" in r], default=0.4)
        fair_line = summary_line(row, f"the same, fairness at least {wanted:g}", wanted)
        if row["unit"] == "M/s" and fair_line[1:] != lines[-1][1:]:
            lines.append(fair_line)
    return table(["", "floor", "best peer (fairness)", "Interlock (fairness)", "to best peer", "to floor", "spread",
                  "target"], lines)


def fair(result):
    return f" ({results.fairness(result['fairness'])})" if "fairness" in result else ""


def rows_table(record, families):
    parts = []
    for row in record["rows"]:
        if row["family"] not in families:
            continue
        lines = [[results.SIDES[r["side"]] + ": " + line[0], *line[1:]]
                 for r, line in ((r, results.columns(row, r)) for r in row["results"])]
        note = results.notes(row)
        parts.append(f"**{row['title']}** (`{row['name']}`), {row['unit']}"
                     + (", more is better" if results.higher_is_better(row) else "") + (f"; {note}" if note else "")
                     + "\n\n" + table(results.HEADINGS, lines))
    return "\n\n".join(parts) if parts else "Not measured."


def behind(row):
    """How many times better the best peer is than Interlock's best; 0 where there is nothing to compare."""
    mine, peer = best_of(row, "interlock", 0), best_of(row, "peer", 0)
    if mine is None or peer is None or row["unit"] == "bytes" or 0 in (mine["median"], peer["median"]):
        return 0
    return (peer["median"] / mine["median"]) ** (1 if results.higher_is_better(row) else -1)


def losses(record):
    """Every row in which a peer is better than all of Interlock, by how much."""
    lines = [[f"{row['title']} (`{row['name']}`), {row['unit']}", named(best_of(row, "peer", 0)),
              named(best_of(row, "interlock", 0)), f"{behind(row):.2f}"]
             for row in record["rows"] if behind(row) > 1.05]
    if not lines:
        return "None by more than 5 %."
    return table(["row", "best peer", "Interlock's best", "times better"], lines)


def missed(record):
    """Every contender of Interlock that has a target and does not reach it, the best peer beside it."""
    lines = [[f"{row['title']} (`{row['name']}`), {row['unit']}", named(result), results.aim(row, result),
              named(best_of(row, "peer", 0))]
             for row in record["rows"] for result in row["results"] if results.misses(row, result)]
    if not lines:
        return "All were reached."
    return table(["row", "Interlock", "target", "best peer"], lines)


def numbers(record):
    """Three of them, for the front door: an uncontended lock, a hand-over, and where Interlock is furthest behind."""
    by_name = {row["name"]: row for row in record["rows"]}
    chosen = [by_name[name] for name in ("exclusive", "event-two") if name in by_name]
    worst = max(record["rows"], key=behind)
    lines = [f"- {row['title']}: {named(best_of(row, 'interlock', 0))}, best peer {named(best_of(row, 'peer', 0))} "
             f"({row['unit']})" for row in chosen]
    lines.append(f"- slowest relative to a peer: {worst['title']}: {named(best_of(worst, 'interlock', 0))}, best peer "
                 f"{named(best_of(worst, 'peer', 0))} ({worst['unit']})")
    return "\n".join(lines)


def conditions(record):
    where, load = record["machine"], record["load"]
    versions = ", ".join(f"{name} {version}".strip() for name, version in record["versions"].items()
                         if not name.startswith(("interlock", "floor")))
    samples = statistics.median(r["used"] for row in record["rows"] for r in row["results"] if row["unit"] != "bytes")
    quiet = ("Nothing else was running" if record["quiet"] else "**Preliminary: the machine was not quiet.** "
             "During the run")
    shares = (f"other programs had {100 * load['others']:.1f} % of the processors and the host took "
              f"{100 * load['steal']:.1f} %")
    return (f"Measured on {where['date'][:10]}: {where['processors']} × {where['processor']}"
            f"{' (virtual)' if where['virtual'] else ''}, Linux {where['kernel']}, {where['compiler']}; "
            f"`{record['mode']}` mode, {samples:g} samples of each contender (median). Peers: {versions}. " + quiet + (": " if record["quiet"] else " ") + shares + ".")


def instructions(counts):
    """A line for each row: what a floor, a peer, a contender of Interlock takes."""
    if not counts:
        return "Not counted; `scripts/instructions` does it."
    lines = []
    for title in dict.fromkeys(entry["title"] for entry in counts):
        cells = {side: [f"{entry['instructions']:.0f} {entry['contender']}" for entry in counts
                        if entry["title"] == title and entry["side"] == side] for side in results.SIDES}
        if cells["interlock"]:
            lines.append([title, *("<br>".join(cells[side]) for side in results.SIDES)])
    return table(["", "floor", "peers", "Interlock"], lines)


def fill(text, sections):
    """Replaces what is between the markers of each section; a marker without a section is an error."""
    def replace(match):
        name = match.group(1)
        kind, _, argument = name.partition(" ")
        content = sections[kind](argument.split()) if argument else sections[kind]()
        return f"{BEGIN.format(name)}\n{content}\n{END}"

    return re.sub(r"<!-- bench: ([^>]*?) -->\n.*?<!-- end -->", replace, text, flags=re.S)


def write(record, counts, documents, images, copy):
    sections = {
        "summary": lambda: summary(record),
        "rows": lambda families: rows_table(record, families),
        "losses": lambda: losses(record),
        "missed": lambda: missed(record),
        "numbers": lambda: numbers(record),
        "conditions": lambda: conditions(record),
        "instructions": lambda: instructions(counts),
    }
    for document in documents:
        text = document.read_text()
        if (filled := fill(text, sections)) != text:
            document.write_text(filled)
    copy.write_text(json.dumps(record, separators=(",", ":")) + "\n")
    return plots.draw(record["rows"], images)
