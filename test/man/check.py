#!/usr/bin/env python3
"""The manual against the program: each command's page documents exactly the options of its table, and shows its usage.

usage: check.py CUDAMEM MAN_FOLDER
"""
import os
import re
import subprocess
import sys

cudamem, folder = sys.argv[1:3]
dump = subprocess.run([cudamem, "completion", "--dump-options"], capture_output=True, text=True, check=True).stdout
tables = {}
for line in dump.splitlines():
    command, name, letter, argument, text = line.split("\t")
    tables.setdefault(command, {})[name] = letter
    assert text and not text.endswith("."), f"{command} {name}: its help is empty or ends with a full stop"
    assert len(text) < 90, f"{command} {name}: its help is too long for one screen"
    assert letter == "" or re.fullmatch(r"-\w", letter), line

problems = []


def documented(text):
    """{'--name': '-x' or ''} of the items of the OPTIONS section."""
    found = {}
    for line in text.splitlines():
        if not line.startswith(".It Fl "):
            continue
        words = line.split()
        flags = [words[i + 1] for i in range(len(words) - 1) if words[i] == "Fl"]
        long_names = ["-" + flag for flag in flags if flag.startswith("-")]
        letters = ["-" + flag for flag in flags if not flag.startswith("-")]
        for name in long_names:
            found[name] = letters[0] if letters else ""
    return found


for command, options in sorted(tables.items()):
    path = os.path.join(folder, f"cudamem-{command}.1")
    if not os.path.exists(path):
        problems.append(f"{path} is missing")
        continue
    with open(path, encoding="utf-8") as file:
        text = file.read()
    page = documented(text)
    for name in sorted(set(options) - set(page)):
        problems.append(f"{path}: {name} is not documented")
    for name in sorted(set(page) - set(options)):
        problems.append(f"{path}: {name} is no option of the command")
    for name in sorted(set(page) & set(options)):
        if page[name] != options[name]:
            problems.append(f"{path}: {name} has the letter {options[name] or 'none'}, the page says {page[name] or 'none'}")
    for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "EXAMPLES", "SEE ALSO"):
        if f".Sh {section}\n" not in text:
            problems.append(f"{path}: no section {section}")
    if f".Nm cudamem {command}\n" not in text and f".Nm cudamem-{command}\n" not in text:
        problems.append(f"{path}: its name is not in it")

with open(os.path.join(folder, "cudamem.1"), encoding="utf-8") as file:
    overview = file.read()
for command in tables:
    if f"Xr cudamem-{command} 1" not in overview:
        problems.append(f"cudamem.1 does not name cudamem-{command}(1)")

for line in problems:
    print(line)
print(f"{len(tables)} commands, {sum(map(len, tables.values()))} options, {len(problems)} problems")
sys.exit(1 if problems or not tables else 0)
