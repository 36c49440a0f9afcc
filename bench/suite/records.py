"""Records of runs: a run may be measured in parts, and rows be measured again."""

from . import results


TICKS_OF_SHORT_ROW = 0.1  # seconds of other programs that do not show in its samples: the host counts in ticks


def is_quiet(load):
    return load["others"] < 0.05 and load["steal"] < 0.02


def was_quiet(row):
    return is_quiet(row["load"]) or sum(row["load"].values()) * row["seconds"] < TICKS_OF_SHORT_ROW


def quiet_rows(record):
    """The names of the rows that a continued run need not measure again."""
    return {row["name"] for row in record["rows"] if was_quiet(row)}


class OtherRun(Exception):
    """A record to be continued is not of this machine, or not of this build."""


def check_same_run(old, record):
    for what in ("processor", "model", "processors", "kernel", "compiler"):
        if old["machine"].get(what) != record["machine"][what]:
            raise OtherRun(f"the record is of another machine: {what} {old['machine'].get(what)}, not {record['machine'][what]}")
    if old.get("library") != record["library"]:
        raise OtherRun("the record is of another build of the library; remove it to begin a new one")


def merged(old, record, order):
    """The old record with the rows of this one. Its load is that of the rows, of those measured again the last time."""
    rows = {row["name"]: row for row in old["rows"] + record["rows"]}
    rows = [rows[name] for name in dict.fromkeys(order) if name in rows]
    results.finish(rows)
    seconds = sum(row["seconds"] for row in rows) or 1
    load = {key: round(sum(row["load"][key] * row["seconds"] for row in rows) / seconds, 4) for key in record["load"]}
    return dict(record, mode=old["mode"], rows=rows, load=load, quiet=all(was_quiet(row) for row in rows),
                parts=parts_of(old) + parts_of(record), versions=dict(old["versions"], **record["versions"]))


def parts_of(record):
    """When the rows were measured."""
    return record.get("parts", [{"date": record["machine"]["date"], "rows": len(record["rows"])}])
