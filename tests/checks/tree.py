"""The files of the tree, and the text in them that is written for readers."""

import ast
import io
import re
import tokenize

C_TOKENS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.S)
HASH = re.compile(r"(?:^|(?<=\s))#(?!!)(?: .*|$)", re.M)


def tree_files(root):
    """Every file of the tree, without version control and build folders."""
    for path in sorted(root.iterdir()):
        if path.name in (".git", "build", "__pycache__") or path.is_symlink():
            continue
        if path.is_dir():
            if not (path / "meson-private").exists():
                yield from tree_files(path)
        else:
            yield path


def comments_of_python(text):
    """[(line, text), ...] of comments and docstrings."""
    found = [(token.start[0], token.string) for token in tokenize.generate_tokens(io.StringIO(text).readline)
             if token.type == tokenize.COMMENT and not token.string.startswith("#!")]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            found.append((node.body[0].lineno, node.body[0].value.value))
    return found


def explains_the_tree(page):
    return page.parts[-2:] == ("docs", "architecture.md") or page.name == "CONTRIBUTING.md" or (
        page.name == "README.md" and len(page.parts) == 2)


def lines_of_page(text, with_plain_text):
    """(number, line) of the lines outside of fenced blocks, or inside of those of plain text."""
    language = None
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            language = line.strip("` ") if language is None else None
        elif language is None or (with_plain_text and language == "text"):
            yield number, line


def comments(path, text):
    """[(line, text), ...] of the comments of a source. Of a page: its lines outside of fenced blocks, or, if it explains the tree,
    also those of blocks of plain text."""
    if path.suffix in (".c", ".h", ".cpp", ".js", ".mjs", ".cc"):
        return [(text.count("\n", 0, match.start()) + 1, match.group(0)) for match in C_TOKENS.finditer(text)
                if match.group(0)[0] == "/"]
    if path.suffix == ".md":
        return list(lines_of_page(text, explains_the_tree(path)))
    if path.suffix == ".py" or text.startswith("#!/usr/bin/env python3"):
        return comments_of_python(text)
    if path.name in ("meson.build", "meson_options.txt", "Makefile", "CMakeLists.txt") or text.startswith("#!"):
        return [(text.count("\n", 0, match.start()) + 1, match.group(0)) for match in HASH.finditer(text)]
    return []


def code(path, text):
    """A source of C without its comments; any other text as it is."""
    if path.suffix not in (".c", ".h", ".cpp", ".cc"):
        return text
    return C_TOKENS.sub(lambda match: " " if match.group(0)[0] == "/" else match.group(0), text)
