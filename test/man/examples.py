#!/usr/bin/env python3
"""Every command line of the manual's EXAMPLES and of README.md runs, in a folder that has the files they name.

usage: examples.py CUDAMEM SOURCE_ROOT FAKE_NVML_FOLDER
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

cudamem, root, fake_nvml = (os.path.abspath(path) for path in sys.argv[1:4])
LINES = re.compile(r"^(?:\.Dl |    )\$ (.*)$", re.M)


def command_lines():
    pages = [os.path.join(root, "man", name) for name in sorted(os.listdir(os.path.join(root, "man")))]
    for path in [os.path.join(root, "README.md")] + [path for path in pages if path.endswith((".1", ".5"))]:
        with open(path, encoding="utf-8") as file:
            for line in LINES.findall(file.read()):
                line = line.split("   #")[0].rstrip()
                for escaped, plain in (("\\(dq", '"'), ("\\(aq", "'"), ("\\-", "-"), ("\\e", "\\")):
                    line = line.replace(escaped, plain)
                yield os.path.basename(path), line


def run(line, folder, environment):
    return subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL, timeout=120)


def prepare(folder, environment):
    data = os.path.join(root, "test/data")
    for name, source in (("snapshot", "frag"), ("before", "leak_before"), ("after", "leak_after"), ("rank0", "mempool"),
                         ("rank1", "mempool_end"), ("train", "train")):
        with open(os.path.join(folder, name + ".pickle"), "wb") as file:
            subprocess.run(["gzip", "-dc", os.path.join(data, source + ".pickle.gz")], stdout=file, check=True)
        done = run(f"cudamem convert --to bin {name}.pickle -o {name}.bin", folder, environment)
        assert done.returncode == 0, done.stderr
    for name in ("app", "example", "programs/torchrun"):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 0\n")
        os.chmod(os.path.join(folder, name), 0o755)
    with open(os.path.join(folder, "train.py"), "w", encoding="utf-8") as file:
        file.write("pass\n")
    os.makedirs(os.path.join(folder, "home/.zfunc"))


def keep(folder):
    """A copy of the files, from which each line gets its own: examples write under the names that others read."""
    kept = os.path.join(folder, "kept")
    os.mkdir(kept)
    for name in os.listdir(folder):
        if name.endswith((".pickle", ".bin")):
            shutil.copy(os.path.join(folder, name), kept)
    return kept


def main():
    failed = count = 0
    with tempfile.TemporaryDirectory() as folder:
        programs = os.path.join(folder, "programs")
        os.mkdir(programs)
        os.symlink(sys.executable, os.path.join(programs, "python"))
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CUDAMEM_")}
        environment["PATH"] = os.path.dirname(cudamem) + ":" + programs + ":" + environment["PATH"]
        environment["HOME"] = os.path.join(folder, "home")
        environment["TMPDIR"] = folder
        environment["LD_LIBRARY_PATH"] = fake_nvml
        prepare(folder, environment)
        kept = keep(folder)
        for place, line in command_lines():
            if not re.search(r"\bcudamem\b", line) and not line.startswith("mkdir"):
                continue
            if "cudamem ctl " in line:  # needs a program that runs; test/record talks to some
                continue
            count += 1
            for name in os.listdir(kept):
                shutil.copy(os.path.join(kept, name), folder)
            done = run(line, folder, environment)
            allowed = (0, 1) if "--exit-code" in line else (0,)
            if done.returncode not in allowed:
                failed += 1
                print(f"{place}: {line}\n  status {done.returncode}: {(done.stderr or done.stdout).strip()[:300]}")
    print(f"{count} command lines, {failed} failed")
    return 1 if failed or count < 20 else 0


sys.exit(main())
