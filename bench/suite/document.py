"""Puts the numbers of the runs into docs/performance.md: each table between its two markers, and the plots.

docs/performance has the data: a record for each kind of processor, the instruction counts, the cache lines that the
simulated machine counted (lab/scale), and why.json, the reason for each row in which a peer may be ahead."""

import json
import re
import statistics

from . import plots, results, scale

BEGIN, END = "<!-- bench: {} -->", "<!-- end -->"
BEHIND = 1.05  # a peer that is this many times better is listed
FAIR = 0.4  # a contended lock that is less fair does not count for Interlock
LOCAL = "without a name"  # the local object beside a named one, which its row is about: no contender
PEERS = ("glibc", "linux", "std", "nsync", "absl", "ck", "urcu", "tbb", "uv", "glib", "event", "wine")


def cell(text):
    return text.replace("|", "\\|")


def table(headings, lines):
    kept = [i for i in range(len(headings)) if i == 0 or any(line[i] for line in lines)]
    words = {headings[0], "processor", "why"}
    out = ["| " + " | ".join(headings[i] for i in kept) + " |",
           "|" + "|".join("---" if headings[i] in words else "---:" for i in kept) + "|"]
    out += ["| " + " | ".join(cell(line[i]) for i in kept) + " |" for line in lines]
    return "\n".join(out)


def kind_of(record):
    """The brand in two words, and the number that distinguishes its generations: the family, or, as all of Intel's are of family 6,
    the model. The name of the record's file, with hyphens and in small letters."""
    name = re.sub(r"\(.*?\)|@.*|,.*|\b(CPU|Processor)\b", " ", record["machine"]["processor"])
    words = name.split()[:2] or ["unknown"]
    numbers = dict(part.split(" ", 1) for part in record["machine"].get("model", "").split(", ") if " " in part)
    generation = "model" if words[0] == "Intel" else "family"
    return " ".join(words) + (f", {generation} {numbers[generation]}" if numbers.get(generation) else "")


def file_of(record):
    return kind_of(record).lower().replace(",", "").replace(" ", "-") + ".json"


def best_of(row, side, fairness):
    """The best contender of a side with at least this fairness; None if there is none."""
    found = [r for r in row["results"]
             if r["side"] == side and r["contender"] != LOCAL and r.get("fairness", 1) >= fairness]
    choose = max if results.higher_is_better(row) else min
    return choose(found, key=lambda r: r["median"]) if found else None


def wanted_fairness(row):
    if row["unit"] != "M/s":
        return 0
    return max([r["fairness_target"] for r in row["results"] if "fairness_target" in r], default=FAIR)


def named(result):
    if result is None:
        return "none"
    return f"{results.number(result['median'])} {result['contender']}" + fair(result)


def fair(result):
    return f" ({results.fairness(result['fairness'])})" if "fairness" in result else ""


def is_compared(row):
    return (row["unit"] not in results.COUNTED and row["kind"] != "tail"
            and best_of(row, "interlock", 0) is not None and best_of(row, "peer", 0) is not None)


def all_rows(records):
    """[(row, {index of the record: its row}), ...] in the order of the longest record."""
    order = sorted(range(len(records)), key=lambda i: -len(records[i]["rows"]))
    names = dict.fromkeys(row["name"] for i in order for row in records[i]["rows"])
    by_name = [{row["name"]: row for row in record["rows"]} for record in records]
    found = [{i: rows[name] for i, rows in enumerate(by_name) if name in rows} for name in names]
    return [(next(iter(of.values())), of) for of in found]


def titled(row):
    return f"{row['title']} (`{row['name']}`), {row['unit']}"


# The summary

def summary_cells(row, fairness):
    if row is None:
        return [""] * 3
    mine, peer = best_of(row, "interlock", fairness), best_of(row, "peer", fairness)
    both = mine is not None and peer is not None
    return [named(peer), named(mine), results.ratio(mine["median"], peer["median"]) if both else ""]


def summary(records):
    """A line for each row, the processors side by side. Contended rows have another one for fair locks."""
    headings = [""]
    for record in records:
        headings += [f"{kind_of(record)}: best peer", "Interlock", "ratio"]
    lines = []
    for row, of in all_rows(records):
        if not any(is_compared(each) for each in of.values()):
            continue
        cells = [cell for i in range(len(records)) for cell in summary_cells(of.get(i), 0)]
        lines.append([f"{row['title']}, {row['unit']}", *cells])
        wanted = max(wanted_fairness(each) for each in of.values())
        cells = [cell for i in range(len(records)) for cell in summary_cells(of.get(i), wanted)]
        if wanted and cells != lines[-1][1:]:
            lines.append([f"the same, fairness at least {wanted:g}", *cells])
    return table(headings, lines)


# All rows

def rows_table(records, families):
    """The tables of these families, one after the other for each processor of which all contenders are known."""
    whole = [record for record in records if not record.get("partial")]
    parts = []
    for row, of in all_rows(whole):
        if row["family"] not in families:
            continue
        for i, each in of.items():
            shown, headings = results.table_of(each)
            lines = [[results.SIDES[r["side"]] + ": " + line[0], *line[1:]] for r, line in zip(each["results"], shown)]
            notes = [kind_of(whole[i])] if len(whole) > 1 else []
            notes += ["more is better"] if results.higher_is_better(each) else []
            notes += [results.notes(each)] if results.notes(each) else []
            parts.append(f"**{each['title']}** (`{each['name']}`), {each['unit']}"
                         + "".join(f"; {note}" for note in notes) + "\n\n" + table(headings, lines))
    return "\n\n".join(parts) if parts else "Not measured yet."


# Where a peer is better

def behind(row):
    """How many times better the best peer is than Interlock's best fair contender; 0: nothing to compare."""
    if not is_compared(row):
        return 0
    mine, peer = best_of(row, "interlock", wanted_fairness(row)), best_of(row, "peer", 0)
    if mine is None:
        return float("inf")
    if 0 in (mine["median"], peer["median"]):
        return 0
    return (peer["median"] / mine["median"]) ** (1 if results.higher_is_better(row) else -1)


def explain(records, reasons):
    """Adds the reason to each row that is behind. Returns the rows without one."""
    missing = []
    for record in records:
        for row in record["rows"]:
            row.pop("why", None)
            if behind(row) > BEHIND:
                if row["name"] in reasons:
                    row["why"] = reasons[row["name"]]
                else:
                    missing.append(f"{row['name']} ({kind_of(record)}, {behind(row):.2f} times)")
    return missing


def losses(records):
    """Every row in which a peer is better than all of Interlock's contenders, by how much, and why."""
    lines = []
    for row, of in all_rows(records):
        for i, each in of.items():
            if behind(each) > BEHIND:
                mine = best_of(each, "interlock", wanted_fairness(each)) or best_of(each, "interlock", 0)
                times = f"{behind(each):.2f}" if behind(each) != float("inf") else f"fairness below {wanted_fairness(each):g}"
                lines.append([titled(each), kind_of(records[i]), named(best_of(each, "peer", 0)), named(mine), times,
                              each.get("why", "")])
    if not lines:
        return "None by more than 5 %."
    return table(["row", "processor", "best peer", "Interlock's best", "times better", "why"], lines)


def missed(records):
    """Every contender of Interlock that misses its target, with the best peer."""
    lines = [[titled(each), kind_of(records[i]), named(result), results.aim(each, result),
              named(best_of(each, "peer", 0))]
             for _, of in all_rows(records) for i, each in of.items() for result in each["results"]
             if results.misses(each, result)]
    if not lines:
        return "All were reached."
    return table(["row", "processor", "Interlock", "target", "best peer"], lines)


FRONT = [  # row, the peer that most programs use, the sentence for the README
    ("exclusive", "glibc mutex",
     "Locking and unlocking a free lock takes {mine}; the glibc mutex takes {usual}, the best peer {peer}."),
    ("mutex-4", "glibc mutex",
     "Per second, four threads acquire one lock {mine}; with the glibc mutex {usual}, with the best peer {peer}."),
    ("event-two", "glibc sem_t",
     "A thread wakes one on another processor and is woken by it in {mine}. With glibc's sem_t, whose waiters sleep at once, it "
     "takes {usual}, with the best peer {peer}."),
]
WORST = "Slowest relative to a peer: “{title}” takes {mine}, the best peer {peer}."


def spoken(row, result):
    """A result in two digits, or without a fraction, with its unit in words."""
    value, unit = result["median"], "million times" if row["unit"] == "M/s" else row["unit"]
    if unit == "ns" and value >= 1000:
        value, unit = value / 1000, "µs"
    return (f"{value:.0f}" if value >= 9.95 else f"{value:.2g}") + f" {unit}"


def front(row, sentence, usual=None):
    """A sentence for the README, in a list; none without a fair contender or the usual peer."""
    found = {"mine": best_of(row, "interlock", wanted_fairness(row)), "peer": best_of(row, "peer", 0),
             "usual": next((r for r in row["results"] if r["contender"] == usual), None)}
    if None in (found["mine"], found["peer"]) or (usual and found["usual"] is None):
        return []
    told = {side: spoken(row, result) + ("" if side == "usual" else f" ({result['contender']})")
            for side, result in found.items() if result}
    return ["- " + sentence.format(title=row["title"], **told)]


def numbers(records):
    """For the README: what a lock and a handoff cost, and where Interlock is furthest behind, by processor."""
    parts = []
    for record in records:
        by_name = {row["name"]: row for row in record["rows"]}
        lines = [line for name, usual, sentence in FRONT if name in by_name and not record.get("partial")
                 for line in front(by_name[name], sentence, usual)]
        compared = [row for row in record["rows"] if 0 < behind(row) < float("inf")]
        if compared:
            lines += front(max(compared, key=behind), WORST)
        parts.append(f"{kind_of(record)}, {record['machine']['processors']} processors, {record['machine']['date'][:10]}:\n\n"
                     + "\n".join(lines))
    return "\n\n".join(parts)


def spoken_time(part):
    return part["date"][:16].replace("T", " ")


def condition(record):
    where = record["machine"]
    text = (f"- **{kind_of(record)}**, {where['date'][:10]}: {where['processors']} × {where['processor']}"
            + (f", {where['model']}" if "model" in where else "") + (" (virtual)" if where["virtual"] else ""))
    if record.get("partial"):
        return text + (f"; `{record['mode']}` mode. Only rows in which a peer or a target was ahead, and of each side the "
                       "best contender, were kept.")
    versions = ", ".join(f"{name} {record['versions'][name]}".strip() for name in PEERS if name in record["versions"])
    samples = statistics.median(r["used"] for row in record["rows"] for r in row["results"]
                                if row["unit"] not in results.COUNTED)
    load = record["load"]
    shares = (f"other programs had {100 * load['others']:.1f} % of the processors and the host took "
              f"{100 * load['steal']:.1f} %.")
    parts = record.get("parts", [])
    if len(parts) > 1:
        versions += f". In {len(parts)} parts from {spoken_time(parts[0])} to {spoken_time(parts[-1])}"
    quiet = "Nothing else was running: " if record["quiet"] else "**Preliminary: the machine was not quiet:** "
    return (f"{text}, Linux {where['kernel']}, {where['compiler']}; `{record['mode']}` mode, {samples:g} samples of each "
            f"contender (median). Peers: {versions}. " + quiet + shares)


def conditions(records):
    return "\n".join(condition(record) for record in records)


def instructions(counts):
    """A line for each row: the cost of a floor, a peer, a contender of Interlock, with the locked instructions in parentheses."""
    if not counts:
        return "Not counted; `scripts/instructions` does it."
    lines = []
    for title in dict.fromkeys(entry["title"] for entry in counts):
        cells = {side: [f"{entry['instructions']:.0f} ({entry['locked']:.0f}) {entry['contender']}" for entry in counts
                        if entry["title"] == title and entry["side"] == side] for side in results.SIDES}
        if cells["interlock"]:
            lines.append([title, *("<br>".join(cells[side]) for side in results.SIDES)])
    return table(["", "floor", "peers", "Interlock"], lines)


# Files

def fill(text, sections):
    """Replaces the text between the markers of each section; a marker without a section is an error."""
    def replace(match):
        name = match.group(1)
        kind, _, argument = name.partition(" ")
        content = sections[kind](argument.split()) if argument else sections[kind]()
        return f"{BEGIN.format(name)}\n{content}\n{END}"

    return re.sub(r"<!-- bench: ([^>]*?) -->\n.*?<!-- end -->", replace, text, flags=re.S)


def read(path, default):
    return json.loads(path.read_text()) if path.exists() else default


class Data:
    """The contents of docs/performance."""

    def __init__(self, directory):
        self.directory = directory
        other = ("instructions.json", "scale.json", "why.json")
        self.records = [read(path, None) for path in sorted(directory.glob("*.json")) if path.name not in other]
        self.counts = read(directory / "instructions.json", [])
        self.scale = read(directory / "scale.json", [])
        self.unexplained = explain(self.records, read(directory / "why.json", {}))

    def sections(self):
        return {
            "summary": lambda: summary(self.records),
            "rows": lambda families: rows_table(self.records, families),
            "losses": lambda: losses(self.records),
            "missed": lambda: missed(self.records),
            "numbers": lambda: numbers(self.records),
            "conditions": lambda: conditions(self.records),
            "instructions": lambda: instructions(self.counts),
            "scale": lambda what: scale.table(self.scale, what, table),
        }

    def pages(self, documents):
        """[(path, its expected text), ...]"""
        return [(path, fill(path.read_text(), self.sections())) for path in documents]

    def save(self):
        for record in self.records:
            indent = 1 if record.get("partial") else None
            (self.directory / file_of(record)).write_text(
                json.dumps(record, indent=indent, separators=None if indent else (",", ":")) + "\n")

    def newest(self):
        """The newest of the quiet runs; if there is none, the newest run."""
        whole = [record for record in self.records if not record.get("partial")]
        return max(whole, key=lambda record: (record["quiet"], record["machine"]["date"])) if whole else None


def put(record, directory):
    """Adds a run to the data; it replaces the last one on this kind of processor."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / file_of(record)).write_text(json.dumps(record, separators=(",", ":")) + "\n")


def write(data, documents, images):
    """Returns the names of the plots."""
    for path, text in data.pages(documents):
        if text != path.read_text():
            path.write_text(text)
    data.save()
    newest = data.newest()
    drawn = plots.draw(newest["rows"], images) if newest else []
    return drawn + scale.draw(data.scale, images)
