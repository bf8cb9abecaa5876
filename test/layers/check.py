#!/usr/bin/env python3
"""The tree's own rules: who may include whom, who may print or end the process, sizes, words, and the name chain.

usage: check.py SOURCE_ROOT
"""
import os
import re
import sys

# room: the rooms below it that it may use (itself always).
MAY_USE = {
    "base": "",
    "device": "base",
    "alloc": "base device",
    "record": "base device",
    "snapshot": "base",
    "symbol": "base snapshot",
    "format": "base device alloc record snapshot",
    "analyze": "base device alloc snapshot symbol",
    "render": "base snapshot analyze",
    "api": "base device alloc record snapshot symbol format analyze render",
    "preload": "base device alloc record",
    "sim": "base device",
    "tools": "base device alloc record snapshot symbol format analyze render",
}
MAY_USE = {room: set(below.split()) | {room} for room, below in MAY_USE.items()}

# Single headers that are forbidden although their room is allowed, and allowed although it is not.
FORBIDDEN = {("analyze", "base/input.h"), ("render", "base/input.h"), ("api", "record/record.h")}
ALLOWED = set()

# file: calls it may make, each for a reason that its own comments give.
MAY_CALL = {
    # It replaces these, to stamp the end of a recording; and it has the one line to say that nothing is recorded.
    "src/preload": {"_exit", "_Exit", "exit", "quick_exit", "fprintf"},
    "src/sim": {"abort"},
    # What CUDAMEM_DEBUG=abort is for.
    "src/api/debug.c": {"fprintf", "abort"},
}
ENDS_OR_PRINTS = re.compile(
    r"(?<![\w.>])(printf|fprintf|dprintf|vprintf|vfprintf|puts|fputs|putchar|perror|exit|_exit|_Exit|quick_exit|abort|err|errx|warn|warnx)\s*\("
)
LARGEST = 40 * 1024
# Spelt in pieces, so that this file does not hold them.
WORDS = re.compile(r"\b(" + "|".join(["TO" "DO", "FIX" "ME", "XX" "X", "HA" "CK", "not imple" "mented"]) + r")\b")
PLACES = re.compile(r"/(wor" "k|far" "m|roo" "t)/|/home/(?!u(ser)?/)[a-z]+/")
SKIP_SUFFIXES = (".gz", ".pickle", ".png", ".bin", ".ring")

problems = []


def problem(path, line, text):
    problems.append(f"{path}{':%d' % line if line else ''}: {text}")


def without_comments(text):
    """The code alone: comments and texts blanked, lines kept."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()) if m.group()[0] == "/" else '""', text)


def check_includes(path, text):
    parts = path.split("/")
    room = parts[1] if parts[0] == "src" else parts[0]
    if room not in MAY_USE:
        problem(path, 0, f"room {room} has no rule; add it to test/layers/check.py and DESIGN's layers")
        return
    for match in re.finditer(r'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', text, re.M):
        name, line = match.group(1), text.count("\n", 0, match.start()) + 1
        other = name.split("/")[0] if "/" in name else room
        if other == "cudamem" or (room, name) in ALLOWED:
            continue
        if ".." in name.split("/"):
            problem(path, line, f'"{name}" climbs out of its room; write it relative to src/')
        elif other not in MAY_USE:
            problem(path, line, f'"{name}" belongs to no room')
        elif other not in MAY_USE[room] or (room, name) in FORBIDDEN:
            problem(path, line, f'{room} must not use "{name}"')


def check_calls(path, code):
    allowed = set()
    for place, calls in MAY_CALL.items():
        if path == place or path.startswith(place + "/"):
            allowed |= calls
    for match in ENDS_OR_PRINTS.finditer(code):
        if match.group(1) not in allowed and not re.search(r"\b(int|void)\s+$", code[: match.start()][-40:]):
            problem(path, code.count("\n", 0, match.start()) + 1, f"{match.group(1)}() outside tools/: return an error")


def check_words(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, what in ((WORDS, "left unfinished by its own words"), (PLACES, "a path of one machine")):
            if pattern.search(line):
                problem(path, number, f"{what}: {line.strip()[:80]}")


def commands(root):
    with open(os.path.join(root, "tools/commands.h"), encoding="utf-8") as file:
        return re.findall(r"^COMMAND\((\w+)\)$", file.read(), re.M)


def check_name_chain(root):
    listed = commands(root)
    sources = {name[4:-2] for name in os.listdir(os.path.join(root, "tools")) if re.fullmatch(r"cmd_\w+\.c", name)}
    for name in sorted(sources ^ set(listed)):
        problem("tools/commands.h", 0, f"{name} is in the list or in a tools/cmd_*.c, and not in the other")
    for name in listed:
        if not os.path.exists(os.path.join(root, f"man/cudamem-{name}.1")):
            problem(f"man/cudamem-{name}.1", 0, "missing: every command has a page")
        cases = os.path.join(root, "test/cli", name)
        if not os.path.isdir(cases) or not any(case.endswith(".sh") for case in os.listdir(cases)):
            problem(f"test/cli/{name}/", 0, "missing: every command has command-line tests")


def tree(root):
    skip = {".git", "data", "__pycache__", "corpus"}
    for place in ("src", "tools", "include", "test", "man", ".ci"):
        for folder, folders, names in os.walk(os.path.join(root, place)):
            folders[:] = sorted(name for name in folders if name not in skip)
            for name in sorted(names):
                if not name.endswith(SKIP_SUFFIXES):
                    yield os.path.relpath(os.path.join(folder, name), root)
    for name in ("README.md", "meson.build", "meson_options.txt"):
        if os.path.exists(os.path.join(root, name)):
            yield name


def main():
    root = sys.argv[1]
    count = 0
    for path in tree(root):
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            text = file.read()
        check_words(path, text)
        if not path.endswith((".c", ".h")) or not path.startswith(("src/", "tools/", "include/")):
            continue
        count += 1
        if len(text.encode()) > LARGEST:
            problem(path, 0, f"larger than {LARGEST // 1024} KiB: a newcomer gets lost in it")
        if not path.startswith("include/"):
            check_includes(path, text)
        if path.startswith("src/"):
            check_calls(path, without_comments(text))
    check_name_chain(root)
    for line in problems:
        print(line)
    print(f"{count} sources, {len(problems)} problems")
    return 1 if problems or not count else 0


sys.exit(main())
