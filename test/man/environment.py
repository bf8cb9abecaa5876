#!/usr/bin/env python3
"""Every CUDAMEM_ variable that a source reads is documented in cudamem(1), and the other way round.

usage: environment.py SOURCE_ROOT
"""
import os
import re
import sys

root = sys.argv[1]
used = {}
for place in ("src", "tools"):
    for folder, _, names in os.walk(os.path.join(root, place)):
        for name in names:
            if name.endswith((".c", ".h")):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    for match in re.findall(r'"(CUDAMEM_[A-Z_]+)=?"', file.read()):
                        used.setdefault(match, os.path.join(folder, name))
used.pop("CUDAMEM_VERSION_TEXT", None)
with open(os.path.join(root, "man/cudamem.1"), encoding="utf-8") as file:
    page = set(re.findall(r"^\.It Ev (CUDAMEM_[A-Z_]+)", file.read(), re.M))
problems = [f"{name} is not in cudamem(1): {path}" for name, path in sorted(used.items()) if name not in page]
problems += [f"{name} is in cudamem(1), and nothing reads it" for name in sorted(page - set(used))]
for line in problems:
    print(line)
sys.exit(1 if problems else 0)
