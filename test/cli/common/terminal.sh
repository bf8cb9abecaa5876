# needs: python3
# On a terminal: fitted, coloured unless NO_COLOR says otherwise; a binary never goes there.
cat >ask.py <<'X'
import os, pty, subprocess, sys
def shown(*words, **environment):
    master, terminal = pty.openpty()
    child = subprocess.Popen(["cudamem", *words], stdin=subprocess.DEVNULL, stdout=terminal, stderr=subprocess.PIPE,
                             env=dict(os.environ, TERM="xterm", **environment))
    os.close(terminal)
    text = b""
    try:
        while piece := os.read(master, 65536):
            text += piece
    except OSError:
        pass
    return child.wait(), text, child.stderr.read()
file = sys.argv[1]
status, text, _ = shown("diff", file + "@start", file)
print(status, b"\x1b[" in text, b"\t" in text)
status, text, _ = shown("diff", file + "@start", file, NO_COLOR="1")
print(status, b"\x1b[" in text)
status, text, _ = shown("diff", "--color", "always", file + "@start", file, NO_COLOR="1")
print(status, b"\x1b[" in text)
for words in (["convert", "--to", "bin", "-o", "-", file], ["svg", "--memory", "-o", "-", file]):
    status, text, errors = shown(*words)
    print(status, text, errors.decode().split(" (")[0].strip())
X
python3 ask.py "$DATA/mempool.pickle.gz"
