"""The rules by which the mutation check changes a source file. They depend on the text of the targets only.

An access is a call of an __atomic_ builtin or of an Interlocked function. A look is an access, a call of a function of
the targets that returns the outcome of a look, or a local variable that was filled by one.

  order      an order is weakened by one step: seq_cst -> acq_rel (acquire for a load, release for a store),
             acq_rel -> acquire and acq_rel -> release, acquire and release -> relaxed. The order of a compare-exchange
             that fails is weakened with the other one where the language requires that.
  never      the condition of an if, a while or a for that contains a look is still computed, but taken as false; for a
             loop that means that it never looks again
  always     the same, taken as true; for an if only
  ignored    one operand of && or || that contains a look is left out, in a condition or in what is returned
  deleted    a statement that is an access, or a call that makes one or wakes a thread, is left out

The survey of whole folders has these for every condition and every call that is a statement, with a look or without, and also

  boundary   < becomes <=, <= becomes <, > becomes >=, >= becomes >, in a condition or in what is returned
"""

import re
from dataclasses import dataclass

WEAKER = {
    "SEQ_CST": {"load": ["ACQUIRE"], "store": ["RELEASE"], "change": ["ACQ_REL"]},
    "ACQ_REL": {"change": ["ACQUIRE", "RELEASE"]},
    "ACQUIRE": {"load": ["RELAXED"], "change": ["RELAXED"]},
    "RELEASE": {"store": ["RELAXED"], "change": ["RELAXED"]},
}
STRENGTH = {"RELAXED": 0, "RELEASE": 0, "ACQUIRE": 1, "ACQ_REL": 1, "SEQ_CST": 2}

# Calls that leave the targets and wake a thread, or release a lock.
WAKES = r"(?:\w+(?:->|\.))?(?:Wake|KeSetEvent\w*|KeAlertThreadById|KiDeliverNotification|KiReleaseLock)"

ACCESS = r"\b(?:__atomic_(?!signal_fence)|Interlocked(?:Compare|Exchange|And|Or|Xor|Add|Increment|Decrement))\w*"

# Neither changes what the program does.
NO_EFFECT = {"UNREFERENCED_PARAMETER", "__builtin_prefetch", "C_ASSERT", "_Static_assert"}

KEYWORDS = {"if", "while", "for", "switch", "return", "sizeof", "do", "else"}


@dataclass(frozen=True)
class Mutant:
    path: str
    function: str
    text: str  # what is changed, on one line
    change: str  # how
    edits: tuple  # ((from, to, replacement), ...) in the file
    line: int

    @property
    def key(self):
        """Without the file: functions have unique names, and move."""
        return (self.function, self.text, self.change)

    def apply(self, source):
        for start, end, replacement in sorted(self.edits, reverse=True):
            source = source[:start] + replacement + source[end:]
        return source


def blank(source):
    """The source with comments and literals replaced by spaces: all offsets stay the same."""

    def spaces(match):
        return re.sub(r"[^\n]", " ", match.group())

    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])+'", spaces, source, flags=re.S)


def without_comments(source):
    """The source without comments, but with its literals."""
    tokens = r"/\*.*?\*/|//[^\n]*|(\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])+')"
    return re.sub(tokens, lambda match: match.group(1) or " ", source, flags=re.S)


def closing(text, start):
    """The offset after the bracket that closes the one at start."""
    depth = 0
    for offset in range(start, len(text)):
        if text[offset] in "([{":
            depth += 1
        elif text[offset] in ")]}":
            depth -= 1
            if depth == 0:
                return offset + 1
    raise ValueError("a bracket is not closed")


def one_line(text):
    return re.sub(r"\s+", " ", text.replace("\\\n", " ")).strip()


@dataclass
class Function:
    path: str
    name: str
    head: str
    start: int  # of the body, with its brace
    end: int
    body: str  # blanked

    @property
    def returns(self):
        return not re.search(r"\bVOID\s+\(?\w*\)?\s*\(", self.head) and "void " not in self.head


def functions(path, source):
    text = blank(source)
    found = []
    for match in re.finditer(r"^\{\n", text, re.M):
        head_start = max(text.rfind("\n}", 0, match.start()), text.rfind(";\n", 0, match.start()),
                         text.rfind("\n\n", 0, match.start())) + 1
        head = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", text[head_start:match.start()])
        parameters = re.search(r"(\w+)\)?\s*\(", head)
        if parameters is None or ")" not in head:
            continue
        end = closing(text, match.start())
        found.append(Function(path, parameters.group(1), head, match.start(), end, text[match.start():end]))
    return found


def calls(text):
    return set(re.findall(r"(\w+)\s*\(", text)) - KEYWORDS


class Looks:
    """Which functions of the targets make accesses, and which return the outcome of one."""

    def __init__(self, sources):
        every = [function for path, source in sources.items() for function in functions(path, source)]
        self.accessing = {f.name for f in every if re.search(ACCESS, f.body)}
        self.looking = {f.name for f in every if f.returns and re.search(ACCESS, f.body)}
        while True:
            more = {f.name for f in every if f.name not in self.accessing and calls(f.body) & self.accessing}
            looks = {f.name for f in every if f.name not in self.looking and self.returned(f)}
            if not more and not looks:
                break
            self.accessing |= more
            self.looking |= looks

    def returned(self, function):
        """Does the function return the outcome of a look? A BOOLEAN may depend on one."""
        filled = self.variables(function)
        if "BOOLEAN" in function.head.split("(")[0]:
            return bool(calls(function.body) & self.looking)
        returned = re.findall(r"\breturn\b([^;]*);", function.body)
        return function.returns and any(self.is_look(text, filled) for text in returned)

    def is_direct(self, text):
        return bool(re.search(ACCESS, text)) or bool(calls(text) & self.looking)

    def variables(self, function):
        """Local variables that a look fills."""
        filled = set()
        for statement in re.split(r"[;{}]", function.body):
            if not self.is_direct(statement):
                continue
            filled |= {name + r"\b(?!\s*\()" for name in re.findall(r"\b(\w+)\s*=(?!=)", statement)}
            # By its address. The members of a structure that is passed on do not count.
            filled |= {name + r"\b(?!\s*[(.])" for name in re.findall(r"[(,]\s*&(\w+)\s*[,)]", statement)}
        return filled

    def is_look(self, text, filled):
        return self.is_direct(text) or any(re.search(rf"(?<![\w.>&]){name}", text) for name in filled)


def kind_of(builtin):
    if builtin.startswith("__atomic_load"):
        return "load"
    if builtin.startswith("__atomic_store"):
        return "store"
    return "change"


def weakened(path, source):
    """Mutants by the rule `order`."""
    text = blank(source)
    bodies = functions(path, source)
    for call in re.finditer(r"\b(__atomic_\w+)\s*\(", text):
        if "fence" in call.group(1):
            continue
        end = closing(text, call.end() - 1)
        orders = list(re.finditer(r"__ATOMIC_(\w+)", text[call.start():end]))
        for number, order in enumerate(orders):
            fails = "compare_exchange" in call.group(1) and number == 1
            kind = "load" if fails else kind_of(call.group(1))
            for weaker in WEAKER.get(order.group(1), {}).get(kind, []):
                edits = [(call.start() + order.start(1), call.start() + order.end(1), weaker)]
                if not fails and len(orders) == 2 and STRENGTH[orders[1].group(1)] > STRENGTH[weaker]:
                    edits.append((call.start() + orders[1].start(1), call.start() + orders[1].end(1),
                                  "ACQUIRE" if STRENGTH[weaker] == 1 else "RELAXED"))
                change = f"{order.group(1).lower()} -> {weaker.lower()}{' on failure' if fails else ''}"
                yield Mutant(path, owner(bodies, text, call.start()), one_line(source[call.start():end]), change,
                             tuple(edits), line_of(source, call.start()))


def owner(bodies, text, offset):
    for function in bodies:
        if function.start <= offset < function.end:
            return function.name
    macros = re.findall(r"^#define (\w+)", text[:offset], re.M)
    return macros[-1] if macros else "?"


def line_of(source, offset):
    return source.count("\n", 0, offset) + 1


def conditions(function):
    """(keyword, from, to) of the text in the brackets, relative to the file."""
    for match in re.finditer(r"\b(if|while|for)\s*\(", function.body):
        start, end = match.end(), closing(function.body, match.end() - 1) - 1
        if match.group(1) == "for":
            parts = function.body[start:end].split(";")
            start += len(parts[0]) + 1
            end = start + len(parts[1])
        yield match.group(1), function.start + start, function.start + end
    for match in re.finditer(r"\breturn\b([^;]*);", function.body):
        yield "return", function.start + match.start(1), function.start + match.end(1)


def operands(text):
    """[(from, to, operator)] of the operands of && and || in text, outermost and nested in plain brackets."""
    found = []

    def split(start, end):
        pieces, depth, at = [], 0, start
        operators = []
        offset = start
        while offset < end:
            char = text[offset]
            if char in "([{":
                depth += 1
            elif char in ")]}":
                depth -= 1
            elif depth == 0 and char in "?":
                return
            elif depth == 0 and text[offset:offset + 2] in ("&&", "||"):
                pieces.append((at, offset))
                operators.append(text[offset:offset + 2])
                at = offset + 2
                offset += 1
            offset += 1
        pieces.append((at, end))
        if operators:
            for number, piece in enumerate(pieces):
                near = {operators[max(number - 1, 0)], operators[min(number, len(operators) - 1)]}
                # && binds closer: beside both, an operand belongs to the &&.
                found.append((*piece, "&&" if "&&" in near else "||"))
        for first, last in pieces:
            inner = text[first:last]
            stripped = inner.strip()
            lead = len(inner) - len(inner.lstrip())
            negated = re.match(r"!?\(", stripped)
            if negated and closing(stripped, negated.end() - 1) == len(stripped):
                split(first + lead + negated.end(), first + lead + len(stripped) - 1)

    split(0, len(text))
    return found


def condition_mutants(path, source, looks):
    """looks: None for every condition."""
    text = blank(source)
    for function in functions(path, source):
        filled = looks.variables(function) if looks is not None else None
        for keyword, start, end in conditions(function):
            condition = text[start:end]
            shown = one_line(f"{keyword} ({source[start:end].strip()})" if keyword != "return"
                             else f"return {source[start:end].strip()}")
            line = line_of(source, start + len(condition) - len(condition.lstrip()))

            def mutant(what, change, edit):
                return Mutant(path, function.name, what, change, (edit,), line)

            if keyword != "return" and condition.strip() and (looks is None or looks.is_look(condition, filled)):
                yield mutant(shown, "never", (start, end, f"(({source[start:end]}), 0)"))
                if keyword == "if":
                    yield mutant(shown, "always", (start, end, f"(({source[start:end]}), 1)"))
            for first, last, operator in operands(condition):
                piece = condition[first:last]
                if looks is None or looks.is_look(piece, filled):
                    neutral = "1" if operator == "&&" else "0"
                    yield mutant(shown, f"ignored: {one_line(source[start + first:start + last])}",
                                 (start + first, start + last, f" {neutral} "))


def boundaries(path, source):
    text = blank(source)
    for function in functions(path, source):
        for _, start, end in conditions(function):
            for match in re.finditer(r"(?<![<>=!-])([<>])(=?)(?![<>=])", text[start:end]):
                operator = match.group()
                other = match.group(1) + ("" if match.group(2) else "=")
                at = start + match.start()
                # enough of the line to identify the place
                line = source[source.rfind("\n", 0, at) + 1:source.find("\n", at)]
                yield Mutant(path, function.name, one_line(line), f"boundary: {operator} -> {other}",
                             ((at, start + match.end(), other),), line_of(source, at))


def deletions(path, source, looks):
    """looks: None for every call."""
    text = blank(source)
    for function in functions(path, source):
        for match in re.finditer(rf"(?<=[;{{}}])\s*(?:\(VOID\))?({WAKES}|\w+)\s*\(", function.body):
            name = match.group(1)
            if name in KEYWORDS or name in NO_EFFECT or not (looks is None or re.fullmatch(ACCESS, name)
                                                             or name in looks.accessing or re.fullmatch(WAKES, name)):
                continue
            end = closing(function.body, match.end() - 1)
            if not re.match(r"\s*;", function.body[end:]):
                continue
            start = function.start + match.start() + len(match.group()) - len(match.group().lstrip())
            end += function.start
            yield Mutant(path, function.name, one_line(source[start:end]), "deleted", ((start, end, "(void)0"),),
                         line_of(source, start))


def unique(mutants):
    """Numbers mutants whose text occurs in a function more than once."""
    seen = {}
    for mutant in mutants:
        count = seen[mutant.key] = seen.get(mutant.key, 0) + 1
        if count > 1:
            mutant = Mutant(mutant.path, mutant.function, mutant.text, f"{mutant.change} (#{count})", mutant.edits,
                            mutant.line)
        yield mutant


def order_only(mutant):
    """Whether only a memory order is weaker. No host has to show that; the explorer's model does."""
    return " -> " in mutant.change and not mutant.change.startswith("boundary")


def generate(sources, paths):
    """All mutants of paths; sources: {path: text} of all the targets."""
    looks = Looks(sources)
    for path in paths:
        source = sources[path]
        every = [*weakened(path, source), *condition_mutants(path, source, looks), *deletions(path, source, looks)]
        yield from unique(sorted(every, key=lambda m: m.line))


def survey(path, source):
    """All mutants of a file by all rules, with a look or without."""
    every = [*weakened(path, source), *condition_mutants(path, source, None), *boundaries(path, source),
             *deletions(path, source, None)]
    yield from unique(sorted(every, key=lambda m: m.line))


def owners(path, source):
    """The names of what a mutant can be in: functions, and macros."""
    return {function.name for function in functions(path, source)} | set(re.findall(r"^#define (\w+)", blank(source), re.M))


def bodies(path, source):
    """{function: its text without comments}, to notice that a function has changed."""
    return {function.name: function.head + without_comments(source[function.start:function.end])
            for function in functions(path, source)}
