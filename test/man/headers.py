#!/usr/bin/env python3
"""The library's manual against its headers: each header has a page that names and describes exactly its functions, with
the parameters that they have; the overview names each page and each status; every header is installed and in cudamem.h.

usage: headers.py SOURCE_ROOT
"""
import os
import re
import sys

root = sys.argv[1]
problems = []


def read(*path):
    with open(os.path.join(root, *path), encoding="utf-8") as file:
        return file.read()


def functions(header):
    """{name: [parameters]} of the declarations, callbacks' types left out."""
    text = re.sub(r"/\*.*?\*/", " ", read("include/cudamem", header), flags=re.S)
    text = re.sub(r"typedef\s+(struct|enum)[^;{]*\{.*?\}\s*\w+;", " ", text, flags=re.S)
    text = re.sub(r"typedef[^;{]*;", " ", text)
    text = re.sub(r"static inline ([^{]*)\{.*?\n\}", r"\1;", text, flags=re.S)
    found = {}
    for name, parameters in re.findall(r"\b(cudamem_\w+)\(((?:[^()]|\([^()]*\))*)\)\s*;", text):
        found[name] = [" ".join(part.split()) for part in re.split(r",(?![^(]*\))", parameters)]
    return found


def synopsis(page):
    """The same of a page's SYNOPSIS."""
    found = {}
    part = page.partition(".Sh SYNOPSIS\n")[2].partition(".Sh DESCRIPTION")[0]
    for name, body in re.findall(r"^\.Fo (\w+)\n(.*?)^\.Fc$", part, re.S | re.M):
        found[name] = re.findall(r'^\.Fa "(.*)"$', body, re.M)
    return found


def check(header, page_name):
    path = os.path.join(root, "man", page_name)
    if not os.path.exists(path):
        problems.append(f"man/{page_name} is missing")
        return
    page, wanted = read("man", page_name), functions(header)
    shown = synopsis(page)
    for name in sorted(set(wanted) ^ set(shown)):
        problems.append(f"man/{page_name}: {name} is in the header or in the SYNOPSIS, and not in the other")
    for name in sorted(set(wanted) & set(shown)):
        if wanted[name] != shown[name]:
            problems.append(f"man/{page_name}: {name} has other parameters: {shown[name]} for {wanted[name]}")
    names = set(re.findall(r"^\.Nm (\w+)", page.partition(".Sh NAME\n")[2].partition(".Nd")[0], re.M))
    for name in sorted(set(wanted) ^ names):
        problems.append(f"man/{page_name}: {name} is in the header or in NAME, and not in the other")
    items = "\n".join(re.findall(r"^\.It (?:Fn .*|Xo\n(?:\.Fn .*\n)*)", page, re.M))
    described = page if page_name == "cudamem.3" else items
    for name in sorted(wanted):
        if not re.search(rf"Fn {name}\b", described):
            problems.append(f"man/{page_name}: {name} is not described")


overview, everything, build = read("man/cudamem.3"), read("include/cudamem/cudamem.h"), read("src/api/meson.build")
count = 0
for header in sorted(os.listdir(os.path.join(root, "include/cudamem"))):
    if f"include/cudamem/{header}'" not in build:
        problems.append(f"include/cudamem/{header} is not installed")
    if not header.endswith(".h") or header == "cudamem.h":
        continue
    if f"#include <cudamem/{header}>" not in everything:
        problems.append(f"cudamem.h lacks {header}")
    if header in ("version.h", "error.h"):
        continue
    count += len(functions(header))
    check(header, f"cudamem_{header[:-2]}.3")
    if f"Xr cudamem_{header[:-2]} 3" not in overview:
        problems.append(f"man/cudamem.3 does not name cudamem_{header[:-2]}(3)")
check("version.h", "cudamem.3")
for status in re.findall(r"\b(CUDAMEM_ERROR_\w+) = ", read("include/cudamem/error.h")):
    if f".It Dv {status}\n" not in overview:
        problems.append(f"man/cudamem.3 lacks {status}")
for line in problems:
    print(line)
print(f"{count} functions, {len(problems)} problems")
sys.exit(1 if problems or count < 20 else 0)
