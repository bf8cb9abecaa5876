"""reuse.py COUNT: functions that are compiled, called and gone; their addresses come back for others.
reuse.py COUNT SNAPSHOT: the recording, as JSON, tells each one apart by name, file and line.
"""
import json
import sys

COUNT = int(sys.argv[1])


def name_of(number):
    return f"compiled_{number % 5}"


def file_of(number):
    return f"made_{number % 3}.py"


def line_of(number):
    return number % 97 + number % 7 + 2


def size_of(number):
    return 4096 + 512 * number


def one(device, number):
    source = "\n" * (number % 97) + f"def {name_of(number)}(size):\n" + "    pass\n" * (number % 7) + "    return take(size)\n"
    scope = {"take": device.take_quietly}
    exec(compile(source, file_of(number), "exec"), scope)
    function = scope[name_of(number)]
    device.give(function(size_of(number)))
    return id(function.__code__)


def record():
    import device

    device.begin()
    addresses = {one(device, number) for number in range(COUNT)}
    print("addresses", len(addresses), flush=True)


def check():
    with open(sys.argv[2], encoding="utf-8") as file:
        snapshot = json.load(file)
    frames, stacks, seen = snapshot["frames"], snapshot["stacks"], 0
    for entry in snapshot["device_traces"][0]:
        if entry["action"] != "segment_alloc":
            continue
        number, node, made = (entry["size"] - 4096) // 512, entry["frames"], []
        while node:
            frame, node = stacks[node]
            if frames[frame]["filename"].startswith("made_"):
                made.append((frames[frame]["name"], frames[frame]["filename"], frames[frame]["line"]))
        if made != [(name_of(number), file_of(number), line_of(number))]:
            sys.exit(f"function {number}: recorded {made}")
        seen += 1
    print("functions", seen)


check() if len(sys.argv) > 2 else record()
