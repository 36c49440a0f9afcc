#!/usr/bin/env python3
"""
The mutation check itself: its rules make the mutants that they describe; it reports a killed mutant, an unexplained
survivor, an explained survivor, and an outdated explanation. On a few mutants of the SLIST.
"""

import itertools
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "lab" / "mutation"), str(ROOT / "tests" / "checks")]
sys.dont_write_bytecode = True

import mutants  # noqa: E402
import schemata  # noqa: E402
import survey  # noqa: E402
from tap import Tap  # noqa: E402

SOURCE = """\
static BOOLEAN Change(ULONG *Word, ULONG *Found, ULONG New)
{
    /* __ATOMIC_SEQ_CST in a comment does not count */
    return __atomic_compare_exchange_n(Word, Found, New, FALSE, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

static VOID Publish(ULONG *Word)
{
    __atomic_store_n(Word, 1, __ATOMIC_RELEASE);
}

BOOLEAN Take(ULONG *Word, ULONG Flags)
{
    ULONG Found = __atomic_load_n(Word, __ATOMIC_RELAXED);
    if (Flags == 0) {
        return FALSE;
    }
    while (Found == 0 && Flags != 1) {
        if (Change(Word, &Found, 1)) {
            Publish(Word);
            return TRUE;
        }
    }
    return FALSE;
}
"""
EXPECTED = {
    ("Change", "acq_rel -> acquire"),
    ("Change", "acq_rel -> release"),
    ("Change", "acquire -> relaxed on failure"),
    ("Publish", "release -> relaxed"),
    ("Publish", "deleted"),
    ("Take", "never"),
    ("Take", "ignored: Found == 0"),
    ("Take", "always"),
    ("Take", "deleted"),
}
# The mutants that only the survey makes.
SURVEYED = """\
VOID Sort(ULONG *Values, ULONG Count)
{
    for (ULONG Index = 1; Index < Count; Index += 1) {
        if (Values[Index - 1] > Values[Index] && Count >= 2) {
            Swap(&Values[Index - 1], &Values[Index]);
        }
    }
}
"""
EXPECTED_SURVEY = {
    ("for (Index < Count)", "never"),
    ("for (ULONG Index = 1; Index < Count; Index += 1) {", "boundary: < -> <="),
    ("if (Values[Index - 1] > Values[Index] && Count >= 2)", "never"),
    ("if (Values[Index - 1] > Values[Index] && Count >= 2)", "always"),
    ("if (Values[Index - 1] > Values[Index] && Count >= 2)", "ignored: Values[Index - 1] > Values[Index]"),
    ("if (Values[Index - 1] > Values[Index] && Count >= 2)", "ignored: Count >= 2"),
    ("if (Values[Index - 1] > Values[Index] && Count >= 2) {", "boundary: > -> >="),
    ("if (Values[Index - 1] > Values[Index] && Count >= 2) {", "boundary: >= -> >"),
    ("Swap(&Values[Index - 1], &Values[Index])", "deleted"),
}
FRAME = """\
#include <stdio.h>
#include <stdlib.h>
static int mutation_chosen, swaps, seen[100];
static int mutation_seen(unsigned place, int outcome) { seen[2 * place + outcome]++; return outcome; }
static void Swap(unsigned *a, unsigned *b) { unsigned c = *a; *a = *b; *b = c; swaps++; }
%s
int main(int argc, char **argv)
{
    unsigned values[4][6] = {{3, 1, 2, 9, 9, 0}, {5, 5, 4, 4, 0, 9}, {2, 1, 0, 0, 0, 0}, {1, 0, 0, 0, 0, 0}};
    mutation_chosen = atoi(argv[1]);
    for (int i = 0; i < 4; i++) {
        Sort(values[i], 5 - i);
        for (int j = 0; j < 6; j++) printf("%%u ", values[i][j]);
    }
    printf("%%d", swaps);
    for (int i = 0; argc == 3 && i < 100; i++)
        if (seen[i]) printf(" %%d", i);
}
"""
# No schedule of these mutants is endless: each of those takes ten seconds.
KILLED = "src/ex/list.c:ExpPushSList"
KILLED_ALONE = "src/ex/list.c:ExpTryPush"  # one mutant
SURVIVES = "src/ex/list.c:RtlFirstEntrySList"  # not called by the two scenarios


def check_rules():
    made = list(mutants.generate({"a.c": SOURCE}, ["a.c"]))
    found = {(mutant.function, mutant.change) for mutant in made}
    if found != EXPECTED:
        yield f"not made: {sorted(EXPECTED - found)}; made: {sorted(found - EXPECTED)}"
    for mutant in made:
        if mutant.apply(SOURCE) == SOURCE:
            yield f"{mutant.key} changes nothing"
    both = [m.apply(SOURCE) for m in made if m.change == "acq_rel -> release"]
    if "__ATOMIC_RELEASE, __ATOMIC_RELAXED" not in both[0]:
        yield "a failing compare-exchange would be stronger than one that succeeds"


def check_survey(folder):
    made = list(mutants.survey("a.c", SURVEYED))
    found = {(mutant.text, mutant.change) for mutant in made}
    if found != EXPECTED_SURVEY:
        yield f"not made: {sorted(EXPECTED_SURVEY - found)}; made: {sorted(found - EXPECTED_SURVEY)}"
    if len({mutant.apply(SURVEYED) for mutant in made}) != len(made):
        yield "two mutants are the same"
    small, large = survey.sample(made, 3), survey.sample(made, 6)
    if small != large[:3] or survey.sample(reversed(made), 3) != small:
        yield "a larger sample does not contain the smaller one"
    path = Path(folder) / "results"
    results = survey.Results(path)
    results.add(made[0], SURVEYED, "killed", "a/test: status 1")
    results.add(made[1], SURVEYED, "survived", None)
    results.add(made[3], SURVEYED, "killed", "sort_twice: race, c11")
    again = survey.Results(path)
    if again.find(made[0], SURVEYED) is None or again.find(made[2], SURVEYED) is not None:
        yield "results are not found again"
    moved = "/* Other. */\nVOID Other(VOID)\n{\n    Swap(NULL, NULL);\n}\n\n" + SURVEYED.replace("{\n", "{\n    /* New. */\n", 1)
    if [again.find(m, moved) for m in mutants.survey("b.c", moved) if m.key == made[0].key] == [None]:
        yield "a result is lost when its function moves"
    if again.find(made[0], SURVEYED.replace("Index = 1", "Index = 2")) is not None:
        yield "a result outlives the text of its function"
    row = survey.count(["a.c"], {"a.c": SURVEYED}, again, {" | ".join(made[1].key): "Because."})["a.c"]
    if (row["mutants"], row["tried"], row["tests"], row["lab"], row["killed"], row["explained"], row["survived"]) != (
            len(made), 3, 1, 1, 2, 1, 0):
        yield f"counted: {row}"


def check_schemata():
    """Each mutant, chosen at run time, does what it does alone."""
    body = SURVEYED.replace("VOID Sort", "static void Sort").replace("ULONG", "unsigned")
    text, chosen, needed = schemata.combine("a.c", body, itertools.count(1))
    if len(chosen) != len(list(mutants.survey("a.c", body))):
        yield f"only {len(chosen)} mutants can be chosen"
    with tempfile.TemporaryDirectory() as folder:
        def output(source, number=0, *more):
            path, program = Path(folder) / "a.c", Path(folder) / "a"
            path.write_text(FRAME % source)
            subprocess.run(["cc", "-w", path, "-o", program], check=True)
            return subprocess.run([program, str(number), *more], capture_output=True, text=True).stdout

        if output(text) != output(body):
            yield "without a choice something is different"
        for number, mutant in chosen.items():
            if output(text, number) != output(mutant.apply(body)):
                yield f"{mutant.text}: {mutant.change}"
        marks = set(output(text, 0, "marks").removeprefix(output(text)).split())
        for number, wanted in needed.items():
            if not marks & {str(2 * place + outcome) for place, outcome in wanted}:
                yield f"is not reached: {chosen[number].change}"
        unsorted = body.replace("> Values[Index]", "> 9 + Values[Index]")
        text, chosen, needed = schemata.combine("a.c", unsorted, itertools.count(1))
        marks = set(output(text, 0, "marks").removeprefix(output(text)).split())
        missed = {chosen[number].change for number, wanted in needed.items()
                  if not marks & {str(2 * place + outcome) for place, outcome in wanted}}
        if missed != {"never", "deleted"}:
            yield f"a condition that is never true: {missed} cannot be noticed"


def mutate(build, folder, survivors, what):
    path = Path(folder) / "survivors.txt"
    path.write_text(survivors)
    command = [sys.executable, ROOT / "scripts" / "mutate", "--build", build, "--folder", folder, "--jobs", "1",
               "--schedules", "300", "--scenarios", "^slist_(history|two_poppers)$", "--survivors", path, what]
    result = subprocess.run(command, capture_output=True, text=True)
    return result.returncode, result.stdout + result.stderr


def check_run(run, code, *texts):
    if run[0] != code:
        yield f"exit code {run[0]}, not {code}:\n{run[1]}"
    for text in texts:
        if text not in run[1]:
            yield f"without {text!r}:\n{run[1]}"


def main():
    build = sys.argv[1]
    tap = Tap()
    tap.case("the rules", check_rules())
    with tempfile.TemporaryDirectory() as folder:
        tap.case("the survey", check_survey(folder))
        tap.case("mutants that are chosen at run time", check_schemata())
        tap.case("mutants that are killed", check_run(
            mutate(build, folder, "", KILLED), 0, "2 mutants in", "2 killed", "slist_two_poppers: assertion"))
        survivor = mutate(build, folder, "", SURVIVES)
        tap.case("survivors that nobody has explained", check_run(survivor, 1, "0 killed"))
        listing = subprocess.run([ROOT / "scripts" / "mutate", "--list", SURVIVES], capture_output=True, text=True)
        tap.case("survivors that are explained", check_run(
            mutate(build, folder, listing.stdout + "    Because.\n", SURVIVES), 0, "Because."))
        listing = subprocess.run([ROOT / "scripts" / "mutate", "--list", KILLED_ALONE], capture_output=True, text=True)
        tap.case("explanations of what does not survive", check_run(
            mutate(build, folder, listing.stdout + "    Because.\n", KILLED_ALONE), 1, "explains a mutant that does not survive"))
    tap.done()


if __name__ == "__main__":
    main()
