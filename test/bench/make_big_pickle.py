#!/usr/bin/python3
"""A big snapshot out of a real one: its trace is repeated, with shifted times, until the file has the wanted size.

    make_big_pickle.py SOURCE.pickle.gz OUT.pickle MEGABYTES [FRAMES]

With FRAMES each entry has a list of that many frames of its own, one of 2,000 stacks.

The file is what PyTorch would write: one frames list a call, shared frames, keys and words, a compile_context string
of its own for each entry, protocol 4 with frames.  It is written piece by piece, without holding it as objects.
"""
import gzip
import pickle
import struct
import sys


class Writer:
    """The few opcodes that Python's pickler uses for these files, with its frames and memo numbers."""

    def __init__(self, file):
        self.file, self.frame, self.memo, self.written = file, bytearray(), 0, 2
        file.write(b"\x80\x04")

    def op(self, data):
        self.frame += data
        if len(self.frame) >= 65536:
            self.flush()

    def flush(self):
        self.file.write(b"\x95" + struct.pack("<Q", len(self.frame)))
        self.file.write(self.frame)
        self.written += 9 + len(self.frame)
        self.frame = bytearray()

    def memoize(self, data):
        self.op(data + b"\x94")
        self.memo += 1
        return self.get(self.memo - 1)

    @staticmethod
    def get(number):
        return b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)

    @staticmethod
    def integer(number):
        if 0 <= number < 256:
            return b"K" + bytes([number])
        if 0 <= number < 65536:
            return b"M" + struct.pack("<H", number)
        if -(1 << 31) <= number < 1 << 31:
            return b"J" + struct.pack("<i", number)
        data = number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True)
        return b"\x8a" + bytes([len(data)]) + data


class Dumper:
    def __init__(self, writer):
        self.w, self.words, self.objects = writer, {}, {}

    def word(self, text):
        """Keys, actions and states: one object each."""
        if text in self.words:
            self.w.op(self.words[text])
        else:
            data = text.encode()
            head = b"\x8c" + bytes([len(data)]) if len(data) < 256 else b"X" + struct.pack("<I", len(data))
            self.words[text] = self.w.memoize(head + data)

    def value(self, value):
        if isinstance(value, str):
            self.word(value)
        elif isinstance(value, bool):
            self.w.op(b"\x88" if value else b"\x89")
        elif isinstance(value, int):
            self.w.op(self.w.integer(value))
        elif isinstance(value, float):
            self.w.op(b"G" + struct.pack(">d", value))
        elif isinstance(value, tuple):
            for item in value:
                self.value(item)
            self.w.memoize(b"\x86")
        elif id(value) in self.objects:
            self.w.op(self.objects[id(value)])
        elif isinstance(value, dict):
            self.objects[id(value)] = self.w.memoize(b"}")
            if value:
                self.w.op(b"(")
                for key, item in value.items():
                    self.word(key)
                    self.value(item)
                self.w.op(b"u")
        else:
            self.objects[id(value)] = self.w.memoize(b"]")
            self.items(value)

    def items(self, items):
        if len(items) == 1:
            self.value(items[0])
            self.w.op(b"a")
            return
        for at in range(0, len(items), 1000):
            self.w.op(b"(")
            for item in items[at:at + 1000]:
                self.value(item)
            self.w.op(b"e")

    def entry(self, entry, shift, stacks):
        w = self.w
        w.memoize(b"}")
        w.op(b"(")
        for key, item in entry.items():
            self.word(key)
            if key == "time_us":
                w.op(w.integer(item + shift))
            elif key == "compile_context":
                data = item.encode()
                w.memoize(b"\x8c" + bytes([len(data)]) + data)
            elif key == "frames":
                if id(item) in stacks:
                    w.op(stacks[id(item)])
                else:
                    stacks[id(item)] = w.memoize(b"]")
                    self.items(item)
            else:
                self.value(item)
        w.op(b"u")


def deepen(trace, depth):
    """Stacks of `depth` frames, out of 500, for the entries."""
    frames = [{"name": f"function_{i}", "filename": f"file_{i % 37}.py", "line": i} for i in range(500)]
    stacks = [[frames[(i * 7 + k * k * (1 + i % 11)) % 500] for k in range(depth)] for i in range(2000)]
    for i, entry in enumerate(trace):
        entry["frames"] = stacks[i * 31 % 2000]


def main():
    source, out, megabytes = sys.argv[1], sys.argv[2], float(sys.argv[3])
    depth = int(sys.argv[4]) if len(sys.argv) > 4 else 0
    with gzip.open(source) as file:
        made = pickle.load(file)
    trace = made["device_traces"][0]
    if depth:
        deepen(trace, depth)
    span = trace[-1]["time_us"] - trace[0]["time_us"] + 1
    with open(out, "wb") as file:
        w = Writer(file)
        d = Dumper(w)
        w.memoize(b"}")
        w.op(b"(")
        count = 0
        for key, item in made.items():
            d.word(key)
            if key != "device_traces":
                d.value(item)
                continue
            w.memoize(b"]")
            w.memoize(b"]")
            shift = 0
            while w.written < megabytes * 1e6:
                stacks = {}
                for entry in trace:
                    if count % 1000 == 0:
                        w.op(b"e(" if count else b"(")
                    if depth:
                        stacks.clear()
                    d.entry(entry, shift, stacks)
                    count += 1
                shift += span
            w.op(b"ea")
        w.op(b"u.")
        w.flush()
    print(f"{out}: {w.written} bytes, {count} entries")


if __name__ == "__main__":
    main()
