"""The pages of the documentation and their code blocks. CONTRIBUTING.md describes the kinds of blocks."""

import re
from dataclasses import dataclass, field
from pathlib import Path

FENCE = re.compile(r"^( *)```(\S*)[^`]*$")
DIRECTIVE = re.compile(r"<!-- code: (\w+)[ \n]?(.*?)-->", re.S)
LIST = re.compile(r" *(?:[-*+]|\d+\.) ")


@dataclass
class Block:
    page: str
    line: int
    language: str  # "" for a block without one, "indented" for one without a fence
    text: str
    directives: dict = field(default_factory=dict)  # from the comments right above: name -> argument

    def __str__(self):
        return f"{self.page}:{self.line} {self.language or 'no language'}"


def pages(root):
    return sorted({*root.glob("*.md"), *root.glob("*/README.md"), *root.glob("docs/**/*.md")})


def directives(lines):
    """The directives of the comments at the end of these lines, with only empty lines in between."""
    found, text = {}, "\n".join(lines).rstrip()
    while text.endswith("-->") and (start := text.rfind("<!--")) >= 0:
        match = DIRECTIVE.fullmatch(text[start:])
        if not match:
            break
        found[match.group(1)] = match.group(2).strip("\n ") if "\n" not in match.group(2) else match.group(2).strip("\n")
        text = text[:start].rstrip()
    return found


def blocks(path, name):
    """Every code block of a page, in order."""
    lines = path.read_text(encoding="utf-8").split("\n")
    number, in_list, in_comment, blank = 0, False, False, True
    while number < len(lines):
        line = lines[number]
        fence = FENCE.match(line)
        if fence and not in_comment:
            indent, start = len(fence.group(1)), number
            number += 1
            while number < len(lines) and lines[number].strip() != "```":
                number += 1
            body = [text[indent:] if text[:indent].isspace() or not indent else text for text in lines[start + 1:number]]
            yield Block(name, start + 1, fence.group(2), "\n".join(body) + "\n", directives(lines[:start]))
        elif not in_comment and blank and not in_list and re.match(r"    +\S", line):
            yield Block(name, number + 1, "indented", line + "\n")
            while number + 1 < len(lines) and re.match(r"    |\s*$", lines[number + 1]):
                number += 1
        elif line.strip() and not line.startswith(" "):
            in_list = bool(LIST.match(line)) or (in_list and not blank)
        in_comment = "<!--" in line and "-->" not in line if not in_comment else "-->" not in line
        blank = not lines[number].strip() if number < len(lines) else True
        number += 1


def all_blocks(root):
    for path in pages(root):
        yield from blocks(path, str(path.relative_to(root)))


def prose(path):
    """The text of a page without its fenced blocks."""
    return re.sub(r"^ *```.*?^ *```$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
