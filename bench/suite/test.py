"""Tests of the evaluation of samples: percentiles, which contender counts, which rows are behind, names of processors."""

import unittest

from . import document, records, results


def row(unit, *found, kind="contended"):
    keys = ("side", "contender", "median", "fairness")
    return {"name": "row", "title": "row", "family": "row", "unit": unit, "kind": kind,
            "results": [dict(zip(keys, each)) for each in found]}


class Tails(unittest.TestCase):
    def test_percentiles_are_over_all_samples(self):
        samples = [{"tail": [[10, 500], [20, 490]], "longest": 19}, {"tail": [[10, 0], [1000, 10]], "longest": 990}]
        tail = results.tail_of(samples)
        self.assertEqual(tail, {"operations": 1000, "max": 990, "p50": 10, "p99": 20, "p99.9": 990})


class Behind(unittest.TestCase):
    def test_less_is_better_for_nanoseconds(self):
        self.assertAlmostEqual(document.behind(row("ns", ("peer", "a", 10), ("interlock", "b", 12))), 1.2)

    def test_more_is_better_for_rates(self):
        self.assertAlmostEqual(document.behind(row("M/s", ("peer", "a", 12, 0.1), ("interlock", "b", 10, 0.9))), 1.2)

    def test_only_fair_ones_count_for_interlock(self):
        several = row("M/s", ("peer", "a", 12, 0.9), ("interlock", "b", 20, 0.1), ("interlock", "c", 10, 0.5))
        self.assertAlmostEqual(document.behind(several), 1.2)
        self.assertEqual(document.behind(row("M/s", ("peer", "a", 12, 0.9), ("interlock", "b", 20, 0.1))), float("inf"))

    def test_sizes_are_not_compared(self):
        self.assertEqual(document.behind(row("bytes", ("peer", "a", 1), ("interlock", "b", 9), kind="value")), 0)

    def test_each_needs_a_reason(self):
        record = {"machine": {"processor": "AMD EPYC"}, "rows": [row("ns", ("peer", "a", 10), ("interlock", "b", 12))]}
        self.assertEqual(document.explain([record], {}), ["row (AMD EPYC, 1.20 times)"])
        self.assertEqual(document.explain([record], {"row": "It is so."}), [])
        self.assertEqual(record["rows"][0]["why"], "It is so.")


class Front(unittest.TestCase):
    def test_sentences_name_the_best_of_each_side_and_the_slowest_row_relative_to_a_peer(self):
        machine = {"processor": "AMD EPYC", "processors": 2, "date": "2026-01-02 03:04"}
        lock = {**row("ns", ("peer", "glibc mutex", 12), ("peer", "b", 11), ("interlock", "c", 9.999)), "name": "exclusive"}
        wake = {**row("ns", ("peer", "a", 1000), ("interlock", "c", 2960)), "title": "wake"}
        self.assertEqual(document.numbers([{"machine": machine, "rows": [lock, wake]}]).split("\n"), [
            "AMD EPYC, 2 processors, 2026-01-02:", "",
            "- Locking and unlocking a free lock takes 10 ns (c); the glibc mutex takes 12 ns, the best peer 11 ns (b).",
            "- Slowest relative to a peer: “wake” takes 3 µs (c), the best peer 1 µs (a)."])

    def test_a_lock_that_is_unfair_is_not_shown(self):
        contended = {**row("M/s", ("peer", "glibc mutex", 12, 0.9), ("interlock", "b", 20, 0.1)), "name": "mutex-4"}
        self.assertEqual(document.front(contended, "{mine} {peer}"), [])
        contended["results"].append({**contended["results"][1], "contender": "c", "median": 11.2, "fairness": 0.9})
        self.assertEqual(document.front(contended, "{mine} {peer}"), ["- 11 million times (c) 12 million times (glibc mutex)"])
        self.assertEqual(document.front(contended, "{mine} {usual}", "not measured"), [])


class Processors(unittest.TestCase):
    def test_kinds(self):
        kinds = {"AMD EPYC": "amd-epyc.json", "AMD EPYC 7B13 64-Core Processor": "amd-epyc.json",
                 "Intel(R) Xeon(R) Processor @ 2.30GHz": "intel-xeon.json", "Intel Xeon, 2.3 GHz": "intel-xeon.json",
                 "Intel(R) Xeon(R) Platinum 8481C CPU @ 2.70GHz": "intel-xeon.json", "": "unknown.json"}
        for processor, file in kinds.items():
            self.assertEqual(document.file_of({"machine": {"processor": processor}}), file)

    def test_generations_of_one_brand_are_different_kinds(self):
        kinds = {("AMD EPYC", "family 25, model 17, stepping 1"): "AMD EPYC, family 25",
                 ("AMD EPYC", "family 26, model 2, stepping 1"): "AMD EPYC, family 26",
                 ("Intel(R) Xeon(R) Processor @ 2.30GHz", "family 6, model 143, stepping 8"): "Intel Xeon, model 143",
                 ("ARM", "family , model , stepping "): "ARM"}
        for (processor, model), kind in kinds.items():
            self.assertEqual(document.kind_of({"machine": {"processor": processor, "model": model}}), kind)
        machine = {"processor": "AMD EPYC", "model": "family 26, model 2, stepping 1"}
        self.assertEqual(document.file_of({"machine": machine}), "amd-epyc-family-26.json")


def part(library, date, others, *names):
    machine = {"processor": "AMD EPYC", "model": "", "processors": 2, "kernel": "6", "compiler": "cc", "date": date}
    rows = [dict(row("ns"), name=name, seconds=10, load={"others": others, "steal": 0},
                 results=[{"side": "peer", "samples": [{"value": others}]}]) for name in names]
    return {"mode": "full", "machine": machine, "library": library, "versions": {"tbb": "1"}, "rows": rows,
            "load": {"others": others, "steal": 0}, "quiet": others < 0.05}


class Parts(unittest.TestCase):
    ORDER = ["a", "b", "b", "c"]

    def test_rows_are_in_the_order_of_the_table_and_newer_ones_replace_older_ones(self):
        both = records.merged(part("x", "2026-01-01", 0.01, "c", "b"), part("x", "2026-01-02", 0.02, "a", "b"), self.ORDER)
        self.assertEqual([(each["name"], each["results"][0]["median"]) for each in both["rows"]],
                         [("a", 0.02), ("b", 0.02), ("c", 0.01)])

    def test_rows_of_busy_times_are_measured_again(self):
        whole = records.merged(part("x", "2026-01-01", 0.01, "a"), part("x", "2026-01-02", 0.2, "b"), self.ORDER)
        self.assertEqual((whole["quiet"], whole["load"], records.quiet_rows(whole)), (False, {"others": 0.105, "steal": 0}, {"a"}))
        whole = records.merged(whole, part("x", "2026-01-03", 0, "b"), self.ORDER)
        self.assertEqual((whole["quiet"], whole["load"], records.quiet_rows(whole)), (True, {"others": 0.005, "steal": 0}, {"a", "b"}))
        self.assertEqual([(each["date"], each["rows"]) for each in whole["parts"]],
                         [("2026-01-01", 1), ("2026-01-02", 1), ("2026-01-03", 1)])

    def test_a_tick_does_not_count_in_a_short_row(self):
        short = part("x", "2026-01-01", 0.1, "a")
        short["rows"][0]["seconds"] = 0.3
        self.assertEqual(records.quiet_rows(short), {"a"})

    def test_only_a_run_of_the_same_machine_and_build_is_continued(self):
        old, other = part("x", "2026-01-01", 0, "a"), part("x", "2026-01-02", 0)
        records.check_same_run(old, other)
        for change in ({"library": "y"}, {"machine": {**other["machine"], "kernel": "7"}}):
            with self.assertRaises(records.OtherRun):
                records.check_same_run(old, {**other, **change})


if __name__ == "__main__":
    unittest.main()
