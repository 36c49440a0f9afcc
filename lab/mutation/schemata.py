"""
All mutants of a file in one: the number in mutation_chosen selects one at run time, so that the library is compiled and its
tests are linked once for all of them. A condition becomes a choice among its variants; a call that may be deleted becomes
conditional. Weaker memory orders cannot be chosen at run time: a compiler takes an order that is not constant as seq_cst.
Each place also marks that it was reached, and a condition marks its outcome (reach.c): a test in which a condition is never true
cannot notice that it is taken as false.
"""

import re

import mutants

# const: the compiler does not instrument its reads, so the explorer does not see them. reach.c defines it.
DECLARATION = "extern const int mutation_chosen; extern int mutation_seen(unsigned, int);\n"


def spans(path, source):
    """(from, to, is it a condition?) of the conditions and returned values of a file, none inside another."""
    found = []
    for function in mutants.functions(path, source):
        for keyword, start, end in sorted(mutants.conditions(function), key=lambda span: (span[1], -span[2])):
            if not found or start >= found[-1][1]:
                found.append((start, end, keyword != "return"))
    return found


def span_of(mutant, places):
    """Where the source becomes a choice: the condition that the mutant changes, or the call that it deletes. None: it cannot."""
    if mutants.order_only(mutant) or len(mutant.edits) != 1:
        return None
    start, end, _ = mutant.edits[0]
    if mutant.change.startswith("deleted") and re.match(r"[A-Z0-9_]+\(", mutant.text):
        return None  # a macro, which may be a declaration or several statements
    for place in places:
        if place[0] <= start and end <= place[1]:
            return None if mutant.change.startswith("deleted") else place
    return (start, end, False) if mutant.change.startswith("deleted") else None


def needs(mutant, place, is_condition):
    """[(place, outcome)]: a test can notice the mutant only if it has seen one of them."""
    if not is_condition:
        return [(place, 0)]
    if re.match("never|always", mutant.change):
        return [(place, int(mutant.change.startswith("never")))]
    return [(place, 0), (place, 1)]


def combine(path, source, numbers):
    """The source with all of its mutants that can be chosen, those, and {number: its needs}. numbers: an iterator of numbers for
    them. A place has the number of its first mutant."""
    places = spans(path, source)
    groups, chosen, needed = {}, {}, {}
    for mutant in mutants.survey(path, source):
        span = span_of(mutant, places)
        if span is not None:
            number = next(numbers)
            chosen[number] = mutant
            groups.setdefault(span, []).append(number)
            needed[number] = needs(mutant, groups[span][0], span[2])
    text = source
    for (start, end, is_condition), members in sorted(groups.items(), reverse=True):
        text = (text[:start] + choice(source[start:end], start, is_condition, [(n, chosen[n]) for n in members]) + text[end:])
    return text, chosen, needed


def choice(original, offset, is_condition, members):
    """An expression, in as many lines as the original."""
    variants = []
    place = members[0][0]
    for number, mutant in members:
        start, end, replacement = mutant.edits[0]
        if mutant.change.startswith("deleted"):
            # A statement: the call may be a macro with a loop.
            return f"((mutation_chosen == {number}) ? (void)0 : ({{ mutation_seen({place}, 0); {original}; (void)0; }}))"
        changed = original[:start - offset] + replacement + original[end - offset:]
        variants.append(f"(mutation_chosen == {number}) ? ({one_line(changed)}) : ")
    if is_condition:
        return f" ({''.join(variants)}mutation_seen({place}, !!({original})))"
    return f" ({''.join(variants)}(mutation_seen({place}, 0), ({original})))"


def one_line(text):
    return " ".join(mutants.without_comments(text).split())
