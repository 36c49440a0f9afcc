"""Records of runs: a run may be measured in parts, and rows be measured again."""

from . import results


def is_quiet(load):
    return load["others"] < 0.05 and load["steal"] < 0.02


class OtherRun(Exception):
    """A record to be continued is not of this machine, or not of this build."""


def check_same_run(old, record):
    for what in ("processor", "model", "processors", "kernel", "compiler"):
        if old["machine"].get(what) != record["machine"][what]:
            raise OtherRun(f"the record is of another machine: {what} {old['machine'].get(what)}, not {record['machine'][what]}")
    if old.get("library") != record["library"]:
        raise OtherRun("the record is of another build of the library; remove it to begin a new one")


def merged(old, record, order):
    """The old record with the rows of this one. The parts are listed; the highest load of any of them counts."""
    rows = {row["name"]: row for row in old["rows"] + record["rows"]}
    rows = [rows[name] for name in dict.fromkeys(order) if name in rows]
    results.finish(rows)
    load = {key: max(old["load"][key], record["load"][key]) for key in record["load"]}
    return dict(record, mode=old["mode"], rows=rows, load=load, quiet=old["quiet"] and record["quiet"],
                parts=parts_of(old) + parts_of(record), versions=dict(old["versions"], **record["versions"]))


def parts_of(record):
    """When and under what load the rows were measured."""
    return record.get("parts", [{"date": record["machine"]["date"], "load": record["load"], "rows": len(record["rows"])}])
