#!/bin/sh
# Command-line tests.  A case is test/cli/COMMAND/CASE.sh; beside it stand what it must print and how it must end:
#   CASE.stdout, CASE.stderr   exactly this (nothing, if the file is not there)
#   CASE.stdout.glob, ...      instead: line by line, each a shell pattern
#   CASE.exit                  the exit status (0, if the file is not there)
# It runs by `sh -u` in an empty folder of its own, with cudamem in PATH, DATA naming test/data, and BUILD the build
# folder.  A case that begins with the line `# needs: PROGRAM...` is skipped where there is none; `unsanitized` is no
# program but a build without sanitizers, for cases that record programs or measure themselves.
#
# usage: run.sh [--rewrite] BUILD [COMMAND[/CASE]...]     --rewrite: take what happens as what must happen
here=$(cd "$(dirname "$0")" && pwd)
rewrite=
[ "${1:-}" = --rewrite ] && { rewrite=1; shift; }
[ $# -ge 1 ] || { echo "usage: run.sh [--rewrite] BUILD [COMMAND[/CASE]...]" >&2; exit 2; }
BUILD=$(cd "$1" && pwd) || exit 2
shift
DATA=$(cd "$here/../data" && pwd)
FAKE_NVML=${FAKE_NVML:-$BUILD/test/nvml}
export BUILD DATA FAKE_NVML
PATH=$BUILD/tools:$PATH
LC_ALL=C.UTF-8 TZ=UTC
export PATH LC_ALL TZ
for name in $(env | sed -n 's/^\(CUDAMEM_[A-Z_]*\)=.*/\1/p' | grep -v '^CUDAMEM_TEST_') NO_COLOR MANPAGER PAGER MANPATH; do
    unset "$name"
done
scratch=$(mktemp -d "${TMPDIR:-/tmp}/cudamem-cli-XXXXXX") || exit 2
trap 'rm -rf "$scratch"' EXIT
trap 'exit 2' INT TERM

passed=0 failed=0 skipped=0

# Do the lines of $2 match the patterns of $1, one by one?
matches() {
    [ "$(grep -c '' "$1")" -eq "$(grep -c '' "$2")" ] || return 1
    while IFS= read -r pattern <&3 && IFS= read -r line <&4; do
        # shellcheck disable=SC2254
        case $line in $pattern) ;; *) return 1 ;; esac
    done 3<"$1" 4<"$2"
}

# One stream of a case: $1 is the case without .sh, $2 the stream's name.
check_stream() {
    if [ -e "$1.$2.glob" ]; then
        matches "$1.$2.glob" "$scratch/$2" && return 0
        diff -u --label "expected patterns" --label "$2" "$1.$2.glob" "$scratch/$2" | head -40
        return 1
    fi
    if [ -n "$rewrite" ]; then
        if [ -s "$scratch/$2" ]; then cp "$scratch/$2" "$1.$2"; else rm -f "$1.$2"; fi
        return 0
    fi
    expected=$1.$2
    [ -e "$expected" ] || expected=/dev/null
    diff -u --label "expected $2" --label "$2" "$expected" "$scratch/$2" >"$scratch/diff" && return 0
    head -40 "$scratch/diff"
    return 1
}

run_case() {
    base=${1%.sh}
    name=${base#"$here"/}
    needs=$(sed -n '1,5s/^# needs: //p' "$1")
    for program in $needs; do
        if [ "$program" = unsanitized ]; then
            [ -z "${CUDAMEM_TEST_SANITIZED:-}" ] && continue
            skipped=$((skipped + 1))
            return
        fi
        command -v "$program" >/dev/null 2>&1 || { echo "skipped: $name (no $program)"; skipped=$((skipped + 1)); return; }
    done
    rm -rf "$scratch/folder" "$scratch/tmp"
    mkdir "$scratch/folder" "$scratch/tmp"
    (cd "$scratch/folder" && TMPDIR=$scratch/tmp && HOME=$scratch/tmp && export TMPDIR HOME &&
        exec sh -u "$1") >"$scratch/stdout" 2>"$scratch/stderr" </dev/null
    status=$?
    good=1
    check_stream "$base" stdout || good=
    check_stream "$base" stderr || good=
    expected_exit=0
    if [ -n "$rewrite" ]; then
        if [ $status -ne 0 ]; then echo $status >"$base.exit"; else rm -f "$base.exit"; fi
    else
        [ -e "$base.exit" ] && read -r expected_exit <"$base.exit"
        [ "$status" -eq "$expected_exit" ] || { echo "exit status $status, expected $expected_exit"; good=; }
    fi
    if [ -n "$good" ]; then
        passed=$((passed + 1))
    else
        echo "FAILED: $name"
        failed=$((failed + 1))
    fi
}

[ $# -gt 0 ] || set -- $(cd "$here" && ls -d */ | tr -d /)
for wanted; do
    if [ -d "$here/$wanted" ]; then
        for script in "$here/$wanted"/*.sh; do
            [ -e "$script" ] && run_case "$script"
        done
    elif [ -e "$here/$wanted.sh" ]; then
        run_case "$here/$wanted.sh"
    else
        echo "there is no case $wanted"
        failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $((passed + failed)) -gt 0 ] || exit 77
[ $failed -eq 0 ]
