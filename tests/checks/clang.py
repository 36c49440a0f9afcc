"""What clang knows about a set of headers: functions, typedefs, layouts of structures, constants."""

import json
import re
import subprocess

CLANG = "clang"


class Headers:
    """One set of headers, for one target."""

    def __init__(self, text, options):
        self.text = text
        self.options = options
        self.tree = None

    def run(self, *options, text=None, check=True):
        command = [CLANG, "-x", "c", "-w", *self.options, *options, "-"]
        result = subprocess.run(command, input=self.text if text is None else text,
                                capture_output=True, text=True)
        if check and result.returncode != 0:
            raise RuntimeError(f"{' '.join(command)}\n{result.stderr}")
        return result

    def dumped(self):
        """The lines of the syntax tree."""
        if self.tree is None:
            self.tree = self.run("-fsyntax-only", "-Xclang", "-ast-dump").stdout.splitlines()
        return self.tree

    def declarations(self):
        """(functions, typedefs): the type of each by its name, as the source spells it."""
        line_of = re.compile(r"^[|`]-(Function|Typedef)Decl 0x.*? (\w+) '([^']*)'")
        functions, typedefs = {}, {}
        for line in self.dumped():
            match = line_of.match(line)
            if match:
                kind, name, spelled = match.groups()
                (functions if kind == "Function" else typedefs)[name] = spelled
        return functions, typedefs

    def layouts(self):
        """{tag: (size, {member: bit offset})}, with the members of unnamed structures within."""
        entry = re.compile(r"^ *(\d+)(?::(\d+)-(?:\d+))? \| ( *)(.*?)$")
        size = re.compile(r"^ *\| \[sizeof=(\d+),")
        result = {}
        tag, members, prefixes = None, {}, []
        output = self.run("-fsyntax-only", "-Xclang", "-fdump-record-layouts-complete").stdout
        for line in output.splitlines():
            match = size.match(line)
            if match and tag is not None:
                if re.fullmatch(r"\w+", tag):
                    result[tag] = (int(match.group(1)), members)
                tag = None
                continue
            match = entry.match(line)
            if not match:
                continue
            offset, bit, indent, text = match.groups()
            depth = len(indent) // 2
            if depth == 0:
                tag = text.split(" ", 1)[1]
                members, prefixes = {}, [""]
                continue
            kind, name = re.fullmatch(r"(.*\)|.*?) ?(\w*)", text).groups()
            prefix = prefixes[depth - 1]
            if name and prefix is not None:
                members[prefix + name] = int(offset) * 8 + int(bit or 0)
            del prefixes[depth:]
            if prefix is not None and re.search(r"\((?:unnamed|anonymous)", kind):
                prefixes.append(f"{prefix}{name}." if name else prefix)
            else:
                prefixes.append(None)
        return result

    def enumerators(self):
        line_of = re.compile(r"-EnumConstantDecl 0x.*? (\w+) 'int'")
        return {m.group(1) for m in map(line_of.search, self.dumped()) if m}

    def macros(self):
        """The names of macros without parameters and with a value, except those of the compiler."""
        output = self.run("-E", "-dM").stdout
        return {m.group(1) for m in re.finditer(r"^#define ([A-Za-z]\w*) \S", output, re.M)}

    def values(self, names):
        """{name: integer} for those of the names that are integer constants."""
        names = sorted(names)
        first = self.text.count("\n") + 1

        def source(chosen):
            return self.text + "".join(
                f"const long long value_{n} = (long long)({n});\n" if n in chosen else "\n"
                for n in names)

        options = ["-S", "-o", "-", "-ferror-limit=0", "-fno-caret-diagnostics"]
        errors = self.run(*options, text=source(set(names)), check=False).stderr
        lines = {int(m.group(1)) - first for m in re.finditer(r"^<stdin>:(\d+):\d+: error", errors,
                                                               re.M)}
        chosen = {n for i, n in enumerate(names) if i not in lines}
        assembly = self.run(*options, text=source(chosen)).stdout
        found = re.finditer(r"^value_(\w+):\n\t\.quad\t(-?\d+)", assembly, re.M)
        return {m.group(1): int(m.group(2)) for m in found}

    def declared(self, folder):
        """The declarations in files below folder that have a name at run time: two dictionaries from
        names to files, one of functions and variables with external linkage, one of static ones."""
        tree = json.loads(self.run("-fsyntax-only", "-Xclang", "-ast-dump=json").stdout)
        external, inline = {}, {}
        file = ""

        # clang writes a file name only where it differs from the one written before.
        def walk(node):
            nonlocal file
            if isinstance(node, list):
                for item in node:
                    walk(item)
                return
            if not isinstance(node, dict):
                return
            for key, value in node.items():
                if key == "file":
                    file = value
                elif key != "includedFrom":
                    walk(value)

        for node in tree["inner"]:
            walk(node.get("loc"))
            place = file
            walk(node.get("range"))
            walk(node.get("inner"))
            if (node["kind"] in ("FunctionDecl", "VarDecl") and not node.get("isImplicit")
                    and place.startswith(str(folder))):
                hidden = node.get("storageClass") == "static"
                (inline if hidden else external)[node["name"]] = place
        return external, inline


class Types:
    """Canonical forms of C types, equal for two targets if the binary interface is equal."""

    WORD = re.compile(r"\w+|\.\.\.|[*()\[\],]")
    QUALIFIERS = {"const", "volatile", "restrict", "__restrict", "__unaligned", "_Atomic"}

    def __init__(self, typedefs, long_bits):
        self.typedefs = typedefs
        self.long_bits = long_bits
        self.resolving = set()

    def canonical(self, spelled):
        words = self.WORD.findall(re.sub(r"__attribute__\(\(.*?\)\)(?!\))", "", spelled))
        result, rest = self.declaration(words)
        if rest:
            raise ValueError(f"cannot read the type {spelled!r}")
        return result

    def declaration(self, words):
        """A type name: specifiers, then an abstract declarator."""
        specifiers = []
        while words and re.match(r"\w", words[0]):
            if words[0] not in self.QUALIFIERS:
                specifiers.append(words[0])
            words = words[1:]
        return self.declarator(self.base(specifiers), words)

    def declarator(self, base, words):
        while words and (words[0] == "*" or words[0] in self.QUALIFIERS):
            if words[0] == "*":
                base = f"pointer to {base}"
            words = words[1:]
        inner = None
        if words[:1] == ["("] and words[1:2] and words[1] in ("*", "("):
            depth, end = 0, 0
            for end, word in enumerate(words):
                depth += (word == "(") - (word == ")")
                if depth == 0:
                    break
            inner, words = words[1:end], words[end + 1:]
        while words and words[0] in ("(", "["):
            if words[0] == "[":
                end = words.index("]")
                base = f"array[{''.join(words[1:end])}] of {base}"
                words = words[end + 1:]
            else:
                parameters, words = self.parameters(words[1:])
                base = f"function({', '.join(parameters)}) returning {base}"
        if inner is not None:
            base, rest = self.declarator(base, inner)
            if rest:
                raise ValueError(f"cannot read the declarator {inner}")
        return base, words

    def parameters(self, words):
        result = []
        while words[0] != ")":
            if words[0] == "...":
                result.append("...")
                words = words[1:]
            else:
                kind, words = self.declaration(words)
                result.append(kind)
            if words[0] == ",":
                words = words[1:]
        return ([] if result == ["void"] else result), words[1:]

    def base(self, words):
        if words[0] in ("struct", "union", "enum"):
            return " ".join(words[:2])
        if len(words) == 1 and words[0] in self.typedefs and words[0] not in self.resolving:
            self.resolving.add(words[0])
            try:
                return self.canonical(self.typedefs[words[0]])
            finally:
                self.resolving.discard(words[0])
        kinds = set(words)
        if kinds & {"void", "float", "double", "_Bool", "__builtin_va_list"}:
            return " ".join(words)
        if "__int128" in kinds:
            bits = 128
        elif "char" in kinds:
            bits = 8
        elif "short" in kinds:
            bits = 16
        elif words.count("long") == 2:
            bits = 64
        elif "long" in kinds:
            bits = self.long_bits
        elif kinds & {"int", "unsigned", "signed"}:
            bits = 32
        else:
            return " ".join(words)
        return f"{'u' if 'unsigned' in kinds else 'i'}{bits}"
