#!/usr/bin/env python3
"""check.py must refuse what it is there to refuse: trees with one mistake each.

usage: can_fail.py CHECK
"""
import os
import subprocess
import sys
import tempfile

GOOD = {
    "tools/commands.h": "COMMAND(one)\n",
    "tools/cmd_one.c": '#include "tools/commands.h"\nint main(void) { printf("x"); }\n',
    "man/cudamem-one.1": ".Dd x\n",
    "test/cli/one/a.sh": "true\n",
    "src/base/a.h": '/* printf("in a comment") */\nint a_printf(int);\n',
    "src/format/b.c": '#include "base/a.h"\n#include "snapshot/c.h"\nint snprintf_x; /* exit( */\n',
}
MISTAKES = {
    "upward": ("src/base/x.c", '#include "snapshot/c.h"\n', "base must not use"),
    "sideways": ("src/format/x.c", '#include "symbol/c.h"\n', "format must not use"),
    "sideways the other way": ("src/symbol/x.c", '#include "format/c.h"\n', "symbol must not use"),
    "recorder": ("src/record/x.c", '#include "snapshot/c.h"\n', "record must not use"),
    "preload": ("src/preload/x.c", '#include "format/c.h"\n', "preload must not use"),
    "reader": ("src/analyze/x.c", '#include "base/input.h"\n', "analyze must not use"),
    "climbing": ("src/base/x.c", '#include "../format/c.h"\n', "climbs"),
    "stranger": ("src/base/x.c", '#include "nowhere/c.h"\n', "no room"),
    "printing": ("src/format/x.c", 'void f(void) { printf("x"); }\n', "printf() outside"),
    "ending": ("src/analyze/x.c", "void f(void) { exit(1); }\n", "exit() outside"),
    "size": ("src/base/x.c", "int x;\n" * 7000, "larger than"),
    "word": ("src/base/x.c", "/* TO" "DO: later */\n", "unfinished"),
    "place": ("test/x.sh", "cd /wor" "k/there\n", "path of one machine"),
    "page": ("tools/commands.h", "COMMAND(one)\nCOMMAND(two)\n", "cudamem-two.1"),
}


def run(check, mistake=None):
    with tempfile.TemporaryDirectory() as root:
        files = dict(GOOD)
        if mistake:
            files[mistake[0]] = mistake[1]
        for path, text in files.items():
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        done = subprocess.run([sys.executable, check, root], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout


status, text = run(sys.argv[1])
assert status == 0, text
for name, mistake in MISTAKES.items():
    status, text = run(sys.argv[1], mistake)
    assert status == 1 and mistake[2] in text, f"{name}: status {status}\n{text}"
print(f"{len(MISTAKES)} mistakes were seen")
