# needs: python3
# Progress is for terminals and for what takes over half a second; afterwards nothing of it is left on the line.
cat >ask.py <<'X'
import os, pty, subprocess, sys, time
data = subprocess.run(["gzip", "-dc", sys.argv[1]], stdout=subprocess.PIPE, check=True).stdout
def stderr_of(pause):
    master, terminal = pty.openpty()
    child = subprocess.Popen(["cudamem", "info", "-"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=terminal)
    os.close(terminal)
    child.stdin.write(data[:1000])
    child.stdin.flush()
    time.sleep(pause)
    child.stdin.write(data[1000:])
    child.stdin.close()
    shown = b""
    try:
        while piece := os.read(master, 4096):
            shown += piece
    except OSError:
        pass
    return child.wait(), shown
status, shown = stderr_of(1.8)
print(status, b"reading" in shown, shown.endswith(b"\r\x1b[K"))
X
python3 ask.py "$DATA/mempool.pickle.gz"
# In a pipe there is none.
(gzip -dc "$DATA/mempool.pickle.gz" | head -c 1000; sleep 1; gzip -dc "$DATA/mempool.pickle.gz" | tail -c +1001) | cudamem info - >out
