"""Bad files through the command: one line on stderr that names file and place, status 3, nothing written, no crash,
and no more memory than twice what was decoded plus 64 MiB.

usage: command.py CUDAMEM DATA
"""
import gzip
import os
import pickle
import struct
import subprocess
import sys
import tempfile
import zlib

CUDAMEM, DATA = sys.argv[1], sys.argv[2]
MIB = 1 << 20
COMMANDS = [["info"], ["summary"], ["stats"], ["segsum"], ["trace"], ["convert", "--to", "json"],
            ["convert", "--to", "bin"], ["convert", "--to", "pickle"], ["svg", "--memory"]]
SANITIZED = "CUDAMEM_TEST_SANITIZED" in os.environ or "asan" in subprocess.run(["ldd", CUDAMEM], capture_output=True, text=True).stdout
failures = []


def check(condition, text):
    if not condition:
        failures.append(text)
        print("FAILED:", text)


def run(arguments, **options):
    """Exit status, stdout, stderr and the peak of anonymous memory that the child can have had, in bytes."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen([CUDAMEM] + arguments, stdout=out, stderr=err, **options)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return child.returncode, out.read(), err.read().decode("utf-8", "replace"), usage.ru_maxrss * 1024


def refused(name, path, commands=COMMANDS, word=None, options=(), shown=None, **process):
    for command in commands:
        target = os.path.join(os.path.dirname(path) if path != "-" else folder, "out.file")
        before = sorted(os.listdir(folder))
        arguments = command + list(options) + [path]
        if command[0] in ("convert", "svg"):
            arguments = command + list(options) + ["-o", target, path]
        status, out, err, memory = run(arguments, **process)
        what = "%s: %s" % (name, " ".join(command))
        check(status == 3, "%s: status %d, %r" % (what, status, err[:300]))
        check(out == b"", "%s: wrote to standard output" % what)
        check(err.startswith("cudamem: %s: " % (shown or path)) and err.count("\n") == 1 and err.endswith("\n"),
              "%s: not the one line: %r" % (what, err[:300]))
        if word:
            check(word in err, "%s: no %r in %r" % (what, word, err[:300]))
        check(sorted(os.listdir(folder)) == before, "%s: left a file behind" % what)
    return memory


def write(name, content):
    path = os.path.join(folder, name)
    with open(path, "wb") as file:
        file.write(content)
    return path


def sign(content):
    return content[:60] + struct.pack("<I", zlib.crc32(content[:60])) + content[64:]


def damaged_files():
    source = os.path.join(DATA, "mempool.pickle.gz")
    pickled = gzip.open(source).read()
    target = os.path.join(folder, "good.bin")
    status, _, err, _ = run(["convert", "--to", "bin", "-o", target, source])
    check(status == 0, "a good file is not converted: %s" % err)
    good = open(target, "rb").read()
    os.remove(target)
    few = [["info"], ["convert", "--to", "json"]]
    for kind, content in (("bin", good), ("pickle", pickled), ("gz", gzip.compress(pickled)),
                          ("bin.gz", gzip.compress(good))):
        for cut in (1, 2, 7, 8, 20, len(content) // 2, len(content) - 1):
            refused("%s cut at %d" % (kind, cut), write("cut." + kind, content[:cut]), few[cut % 2:][:1])
    for place in range(0, len(good), len(good) // 40):
        flipped = bytearray(good)
        flipped[place] ^= 1 << place % 8
        refused("bit of byte %d turned" % place, write("turned.bin", bytes(flipped)), few[place % 2:][:1])
    refused("trailing bytes", write("longer.bin", good + b"x"))
    refused("wrong magic", write("magic.bin", b"\x89CUMEM\n\n" + good[8:]), word="not a snapshot")
    refused("newer major", write("newer.bin", sign(good[:8] + b"\2\0" + good[10:])), word="version 2.0")
    huge = good[:16] + struct.pack("<Q", 1 << 63) + good[24:]
    refused("length of 2^63", write("huge.bin", sign(huge)))
    for path in ("cut.bin", "turned.bin", "huge.bin"):
        os.remove(os.path.join(folder, path))


def other_files():
    refused("missing", os.path.join(folder, "nothing.bin"))
    refused("empty", write("empty.bin", b""), word="empty")
    refused("text", write("text.bin", b"hello\n"), word="text")
    refused("json", write("j.bin", b'{"segments": []}'), word="JSON")
    refused("html", write("h.bin", b"<!DOCTYPE html>\n<html></html>"), word="HTML")
    refused("zeroes", write("z.bin", bytes(5000)), word="zeroes")
    os.mkdir(os.path.join(folder, "folder"))
    refused("a folder", os.path.join(folder, "folder"), word="folder")
    secret = write("secret.bin", b"x")
    os.chmod(secret, 0)
    if os.geteuid() != 0:
        refused("not readable", secret)
    else:
        os.chmod(folder, 0o755)
        refused("not readable", secret, [["info"]], user=65534, group=65534, extra_groups=[])
    with open(os.path.join(folder, "text.bin"), "rb") as file:
        refused("standard input", "-", [["info"]], shown="standard input", stdin=file)


def hostile_pickles():
    refused("a global", write("g.pickle", b"cos\nsystem\n(S'true'\ntR."), word="os")
    refused("a newer protocol", write("p6.pickle", b"\x80\x06N."), word="protocol 6")
    refused("out-of-band buffers", write("oob.pickle", b"\x80\x05\x97."), word="uffer")
    refused("a length of 2^63", write("l.pickle", b"\x80\x04\x8e" + struct.pack("<Q", 1 << 63) + b"x."))
    refused("a string of 4 GB that is not there", write("s.pickle", b"\x80\x02X\xff\xff\xff\xffabc."))
    refused("deep nesting", write("deep.pickle", b"\x80\x04" + b"]" * 3000000 + b"a" * 2999999 + b"."))
    memo = b"\x80\x04]\x94" + b"".join(b"]\x94(h%ch%ce" % (i, i) for i in range(200)) + b"."
    limit = 2 * len(memo) + 64 * MIB + BASE
    memory = refused("a memo bomb", write("memo.pickle", memo))
    check(SANITIZED or memory <= limit, "a memo bomb took %d bytes" % memory)
    far = b"\x80\x04N" + b"r" + struct.pack("<I", 0xfffffff0) + b"."
    memory = refused("a memo number of 2^32", write("far.pickle", far))
    check(SANITIZED or memory <= 64 * MIB + BASE, "a memo number took %d bytes" % memory)


def bombs():
    size = 400 * MIB
    bomb = zlib.compressobj(9, zlib.DEFLATED, 31)
    starts = {"zeroes": b"", "pickle string": b"\x80\x04\x8d" + struct.pack("<Q", size),
              "lists": b"\x80\x04]\x94("}
    fill = {"zeroes": b"\0", "pickle string": b"\0", "lists": b"]"}
    for kind, start in starts.items():
        bomb = zlib.compressobj(1, zlib.DEFLATED, 31)
        packed = bomb.compress(start)
        for _ in range(size // MIB):
            packed += bomb.compress(fill[kind] * MIB)
        packed += bomb.flush()
        path = write("bomb.gz", packed)
        limit = 32 * MIB
        memory = refused("a gzip bomb of " + kind, path, [["info"]], options=["--max-input", "32M"])
        check(SANITIZED or memory <= 2 * limit + 64 * MIB + BASE, "a gzip bomb of %s took %d bytes" % (kind, memory))
        os.remove(path)


def small_bin_bomb():
    """Many chunks of constant columns: a few bytes that would be millions of entries."""
    def varint(number):
        out = b""
        while number >= 128:
            out += bytes([number & 127 | 128])
            number >>= 7
        return out + bytes([number])

    def column(number, encoding, count, content):
        return varint(number) + bytes([encoding]) + varint(count) + varint(len(content)) + content

    def section(kind, content):
        head = struct.pack("<IIQQI", kind, 1, len(content), len(content), zlib.crc32(content))
        return head + struct.pack("<I", zlib.crc32(head)) + content

    chunks = 2000
    sections = [section(1, varint(1) + column(2, 0, 1, varint(chunks * 65536)) + b"\0")]
    for i in range(chunks):
        sections.append(section(20, varint(65536) + column(1, 0, 1, varint(i * 65536)) + b"\0"))
    index = section(24, b"")
    body = b"".join(sections) + index
    header = b"\x89CUMEM\r\n" + struct.pack("<HHIQQQQIIII", 1, 0, 64, 64 + len(body), 64 + len(body) - len(index),
                                          chunks * 65536, sum(len(s) - 32 for s in sections), chunks + 2, 0, 0, 0)
    path = write("bomb.bin", sign(header[:64].ljust(64, b"\0")) + body)
    memory = refused("a bomb of entries", path, [["info"]], word="--max-input", options=["--max-input", "50M"])
    check(SANITIZED or memory <= 100 * MIB + 64 * MIB + BASE, "a bomb of entries took %d bytes" % memory)


with tempfile.TemporaryDirectory() as folder:
    BASE = run(["version"])[3]
    damaged_files()
    other_files()
    hostile_pickles()
    bombs()
    small_bin_bomb()
print("%d failures" % len(failures))
sys.exit(1 if failures else 0)
