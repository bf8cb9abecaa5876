#!/usr/bin/env python3
"""mandoc has nothing to say about a page, but that pages of ours are not installed yet; those must be in the tree.

usage: lint.py MANDOC PAGE
"""
import os
import re
import subprocess
import sys

mandoc, page = sys.argv[1:3]
folder = os.path.dirname(page)
said = subprocess.run([mandoc, "-Tlint", page], capture_output=True, text=True, check=False)
left = []
for line in (said.stdout + said.stderr).splitlines():
    if "outdated mandoc.db" in line:
        continue  # of the machine, not of the page
    match = re.search(r"referenced manual not found: Xr (\S+) (\S+?)(?: \(\d+ times\))?$", line)
    if match and os.path.exists(os.path.join(folder, f"{match.group(1)}.{match.group(2)}")):
        continue
    if match and not match.group(1).startswith("cudamem"):
        continue  # a page of the system that this machine lacks
    left.append(line)
print("\n".join(left))
sys.exit(1 if left else 0)
