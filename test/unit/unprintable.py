#!/usr/bin/env python3
"""Prints src/render/unprintable.h.  With a file as argument: compares instead (77, skipped, if Python knows another Unicode)."""
import sys
import unicodedata

runs, at, code = [], 0x80, 0x80
while code < 0x110000:
    while code < 0x110000 and chr(code).isprintable():
        code += 1
    start = code
    while code < 0x110000 and not chr(code).isprintable():
        code += 1
    if code > start:
        runs.append((start - at, code - start))
    at = code

lines, line = [], "   "
for skip, count in runs:
    item = " %d,%d," % (skip, count)
    if len(line) + len(item) > 118:
        lines.append(line)
        line = "   "
    line += item
lines.append(line)

text = """/*
 * Characters from 0x80 on that Python's repr() escapes (Unicode %s: other, and separators but the space), as pairs: how
 * many printable ones to skip, how many follow that are not.  Made by test/unit/unprintable.py, which checks it, too.
 */
#ifndef RENDER_UNPRINTABLE_H
#define RENDER_UNPRINTABLE_H

#include <stdint.h>

static const uint32_t unprintable_runs[] = {
%s
};

#endif
""" % (unicodedata.unidata_version, "\n".join(lines))

if len(sys.argv) == 1:
    sys.stdout.write(text)
else:
    with open(sys.argv[1], encoding="utf-8") as file:
        kept = file.read()
    if "Unicode %s:" % unicodedata.unidata_version not in kept:
        sys.exit(77)
    sys.exit(kept != text)
