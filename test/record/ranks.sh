#!/bin/sh
# Launchers: a file a process, named by rank, host and process; and what their ranks did, side by side.
. "$(dirname "$0")/lib.sh"

# launch VARIABLE N PROGRAM...: as torchrun, mpirun and srun do: N processes at once, told their rank by VARIABLE
cat >launch <<'END'
#!/bin/sh
variable=$1 count=$2
shift 2
rank=0
while [ $rank -lt $count ]; do
    env "$variable=$rank" "$@" &
    rank=$((rank + 1))
done
wait
END
chmod +x launch

# ranks FILE...: "rank events" of each, sorted
ranks() {
    for file; do
        printf '%s %s\n' "$("$CUDAMEM" info --json "$file" | sed -n 's/.*"rank": *\([0-9a-z]*\).*/\1/p' | head -1)" \
            "$(dump "$file" | grep -c '^entry')"
    done | sort
}

each_rank_has_its_file() {
    for variable in RANK OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK SLURM_PROCID; do
        rm -f job.*.bin
        record -o 'job.%r.bin' ./launch $variable 3 "$PROGRAMS/loop" 4
        expect "status with $variable" "$status" 0
        expect "files with $variable" "$(ls job.*)" "$(printf 'job.0.bin\njob.1.bin\njob.2.bin')"
        expect "ranks with $variable" "$(ranks job.*.bin)" "$(printf '0 8\n1 8\n2 8')"
    done
}

# No name tells them apart: their numbers do.  The launcher, which has no CUDA, gets no file and takes no name.
without_a_rank_in_the_name_numbers_tell_apart() {
    record -o job.bin ./launch RANK 3 "$PROGRAMS/loop" 4
    set -- job*.bin
    expect "files" "$#" 3
    for file; do
        case $file in job.[0-9]*.bin) ;; *) fail "$file has no number" ;; esac
    done
    expect "ranks" "$(ranks "$@")" "$(printf '0 8\n1 8\n2 8')"
    contains "line" "$(cat record.err)" "and 2 more, one a process"
}

case_36_ranks_of_one_name_never_overwrite() {
    record -o 'job.%r.bin' ./launch RANK 2 ./launch UNUSED 2 "$PROGRAMS/loop" 4
    set -- job.*
    expect "files: two processes have each rank" "$#" 4
    expect "ranks" "$(ranks "$@")" "$(printf '0 8\n0 8\n1 8\n1 8')"
    for file; do
        case $file in *.old) fail "$file: a rank is taken for an older recording" ;; esac
    done
}

host_and_process_are_in_the_name() {
    record -o '%h-%r-%p.bin' ./launch SLURM_PROCID 2 "$PROGRAMS/loop" 1
    set -- "$(uname -n)"-0-*.bin "$(uname -n)"-1-*.bin
    expect "files" "$#" 2
    [ -f "$1" ] && [ -f "$2" ] || fail "names: $(ls)"
}

# Each rank under a recorder of its own, as with `mpirun cudamem record`.
a_recorder_a_rank() {
    ./launch OMPI_COMM_WORLD_RANK 3 "$CUDAMEM" record --sim -o 'own.%r.bin' "$PROGRAMS/loop" 4 >record.out 2>record.err
    expect "ranks" "$(ranks own.*.bin)" "$(printf '0 8\n1 8\n2 8')"
}

# A launcher passes the environment to another host, where the folder for ring files is not: they go where a recorder
# without a command puts them, and are read there.
a_rank_on_another_host_keeps_its_ring() {
    "$CUDAMEM" record --sim -o far.bin --env | sed 's/^/export /' >env.sh
    (. ./env.sh
    CUDAMEM_RING_FOLDER=$work/of/another/host RANK=5 "$PROGRAMS/loop" 4) >record.out 2>record.err
    ring=$(find "$TMPDIR" -name '*.ring')
    [ -f "$ring" ] || fail "no ring: $(cat record.err)"
    expect "rank and events" "$(ranks "$ring")" "5 8"
    contains "it is listed" "$("$CUDAMEM" ps --stale)" "$ring"
    "$CUDAMEM" convert --to bin "$ring" -o far.bin || fail "it cannot be converted"
    expect "as a snapshot" "$(ranks far.bin)" "5 8"
}

merged() {
    "$CUDAMEM" merge "$@" >merge.out 2>merge.err || fail "merge: status $?"
}

ranks_are_merged_and_told_apart() {
    record -o 'job.%r.bin' ./launch RANK 3 "$PROGRAMS/leak"
    merged job.*.bin -o all.bin
    expect "lines" "$(cat merge.err)" "cudamem: merged 21 entries of 3 processes"
    expect "events" "$(ranks all.bin)" "0 21"
    expect "live" "$(live all.bin)" $((3 * 3 * 3145728))
    [ "$(dump all.bin | awk '$1 == "entry"' | grep -c .)" = 21 ] || fail "entries"
    "$CUDAMEM" summary --json all.bin >summary.json || fail "summary"
    "$CUDAMEM" info --json all.bin >info.json || fail "info"
    command -v python3 >/dev/null 2>&1 || return 0
    python3 - <<'END' || fail "see above"
import json
info, summary = json.load(open("info.json")), json.load(open("summary.json"))
assert [process["rank"] for process in info["processes"]] == [0, 1, 2]
assert [(d["process"], d["device"], d["reserved"]) for d in info["devices"]] == [(p, 0, 9437184) for p in range(3)]
(gpu,) = info["shared_gpus"]
assert gpu["processes"] == 3 and gpu["reserved"] == 3 * 9437184 and gpu["uuid"] == info["devices"][0]["uuid"]
assert [(r["rank"], r["peak_reserved"]) for r in summary["ranks"]] == [(rank, 15728640) for rank in range(3)]
END
}

# What one process would say alone is what it says in a merged file.
each_process_says_the_same_alone_and_merged() {
    record -o 'job.%r.bin' ./launch RANK 2 "$PROGRAMS/leak"
    merged job.0.bin job.1.bin -o all.bin
    "$CUDAMEM" stats job.1.bin | grep -v "^#" >alone.txt
    "$CUDAMEM" stats all.bin | sed -n '/^# process 1/,$p' | grep -v '^#' >both.txt
    cmp -s alone.txt both.txt || fail "statistics: $(diff alone.txt both.txt | head -5)"
    "$CUDAMEM" trace job.1.bin | sed 's/^Device/Process N Device/' >alone.txt
    pid=$("$CUDAMEM" info --json job.1.bin | sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' | head -1)
    "$CUDAMEM" trace all.bin | sed "s/TOTAL MEM: \(.*\)Process/TOTAL MEM: \1\nProcess/" |
        sed -n "/^Process $pid/,\$p" | sed 's/^Process [0-9]*/Process N/' >both.txt
    expect "trace" "$(cat both.txt)" "$(cat alone.txt)"
    "$CUDAMEM" replay --json job.1.bin | sed -n 's/.*"peak_reserved_bytes": *\([0-9]*\).*/\1/p' >alone.txt
    "$CUDAMEM" replay --json all.bin | sed -n 's/.*"peak_reserved_bytes": *\([0-9]*\).*/\1/p' | tail -1 >both.txt
    [ -s alone.txt ] && cmp -s alone.txt both.txt || fail "replay: $(cat alone.txt both.txt)"
    "$CUDAMEM" tune all.bin >tune.out 2>tune.err
    expect "status of tune" "$?" 2
    contains "its line" "$(cat tune.err)" "all.bin holds 2 processes, and this works on one"
}

# The peak of all together is no sum of peaks: one process ends before the other begins.
a_moment_is_one_of_all_processes() {
    for rank in 0 1; do RANK=$rank record -o "seq.$rank.bin" "$PROGRAMS/loop" 3 1048576; done
    merged seq.1.bin seq.0.bin -o all.bin # their order in time does not depend on that of the names
    expect "processes in order of time" "$("$CUDAMEM" convert --to csv all.bin | awk -F, 'NR > 1 { print $2 }' | uniq | tr '\n' ' ')" "1 0 "
    "$CUDAMEM" info --json all.bin@peak >info.json || fail "info at the peak"
    expect "held together at the peak" "$(sed -n 's/.*"shared_gpus".*"reserved": *\([0-9]*\).*/\1/p' info.json)" \
        "$(sed -n 's/.*"shared_gpus".*"reserved": *\([0-9]*\).*/\1/p' info.json | grep 1048576)"
}

two_snapshots_of_one_process_are_refused() {
    record -o one.bin "$PROGRAMS/loop" 1
    cp one.bin two.bin
    "$CUDAMEM" merge one.bin two.bin -o all.bin 2>merge.err && fail "it is not"
    expect "status" "$?" 3
    contains "line" "$(cat merge.err)" "two.bin is of the same process as one.bin"
    [ ! -e all.bin ] || fail "a file was left"
}

case_85_all_ranks_in_one_table() {
    sizes='1 2 3 4 5 6 7 8'
    for size in $sizes; do
        RANK=$((size - 1)) record -o 'r%r.bin' "$PROGRAMS/loop" 1 $((size * 1048576))
    done
    "$CUDAMEM" summary -a --bytes r?.bin >summary.txt || fail "summary"
    expect "a line a rank, both ends marked" \
        "$(awk -F'\t' '/^[0-9]/ { printf "%s %s %s,", $1, $9, $10 }' summary.txt)" \
        "0 1048576 min,1 2097152 -,2 3145728 -,3 4194304 -,4 5242880 -,5 6291456 -,6 7340032 -,7 8388608 max,"
    merged r?.bin -o all.bin
    "$CUDAMEM" summary -a --bytes all.bin >all.txt || fail "summary of the merged file"
    expect "the same of the merged file" "$(grep '^[0-9]' all.txt | cut -f 1-3,5-12)" "$(grep '^[0-9]' summary.txt | cut -f 1-3,5-12)"
    "$CUDAMEM" svg --segments all.bin -o all.svg || fail "one picture"
}

run_case "$1"
