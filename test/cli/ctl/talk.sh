# needs: unsanitized python3
# A program that is talked to: what it is, a pause, a mark, a snapshot.
mkfifo to from
cudamem record --sim=1:4GiB "$BUILD/test/programs/steered" <to >from 2>record.err &
exec 3>to 4<from
read -r word pid <&4
tell() {
    echo "$1" >&3
    read -r answer <&4
}
tell 'alloc a 3145728'
tell 'alloc b 1048576'
tell 'free a'
cudamem ctl "$pid" mark 'after b' 2>&1 | sed "s/$pid/PID/"
cudamem ctl "$pid" pause 2>&1 | sed "s/$pid/PID/"
cudamem ctl "$pid" pause 2>&1 | sed "s/$pid/PID/"
tell 'alloc c 2097152'
cudamem ctl "$pid" status | sed "s/$pid/PID/; s|^program .*/|program .../|; s|^file .*|file ...|; s|^start_time .*|start_time ...|"
cudamem ctl "$pid" resume 2>&1 | sed "s/$pid/PID/"
cudamem ctl --json "$pid" status | python3 -c 'import json, sys
status = json.load(sys.stdin)
print(sorted(status), status["state"], status["marks"])'
cudamem ctl "$pid" snapshot 2>&1 | sed "s/$pid/PID/"
cudamem info --json snapshot.1.bin | python3 -c 'import json, sys
info = json.load(sys.stdin)
print(info["trace"]["entries"], info["devices"][0]["allocated"], info["processes"][0]["unrecorded"])'
exec 3>&-
cat <&4 >/dev/null
wait
cudamem ctl "$pid" status 2>&1 | sed "s/$pid/PID/"
