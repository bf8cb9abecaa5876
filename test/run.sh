#!/bin/sh
# Every test: installs what the tests need, builds, runs group after group, prints the seconds of each.
#
# usage: sh test/run.sh [--full] [GROUP...]
#   --full     the long forms: slow tests, benchmarks' checks, minutes of fuzzing a target
#   GROUP      only these: gcc clang (builds without warnings), the suites of meson (unit, layers, man, cli, record,
#              ...; tests of threads have the thread sanitizer in them), install, sanitizer, fuzz, browser
# The last line is `N passed, N failed`.  CUDAMEM_TEST_BUILD names the folder for the build folders (default: build-test
# in the source folder).
set -u
{ # read whole before it runs, so that it may be edited meanwhile
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root" || exit 2
full=
wanted=
for word; do
    case $word in
    --full) full=1 ;;
    -h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "unknown option $word" >&2; exit 2 ;;
    *) wanted="$wanted $word" ;;
    esac
done
base=${CUDAMEM_TEST_BUILD:-$root/build-test}
mkdir -p "$base" || exit 2
base=$(cd "$base" && pwd)
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
LC_ALL=C.UTF-8
export LC_ALL
unset CUDAMEM_DISABLE CUDAMEM_OUTPUT CUDAMEM_DEBUG CUDAMEM_TEST_BUILD 2>/dev/null

. "$root/tools/packages.sh"
want_build
want gcc command gcc
want g++ command g++
want clang command clang
want libclang-rt-14-dev file $(ls /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a /usr/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a 2>/dev/null) /nowhere
want libcmocka-dev library cmocka
want python3 command python3
want mandoc command mandoc
want valgrind command valgrind
want gzip command gzip
want diffutils command diff
if [ -n "$missing" ]; then
    # The compiler's own run-time library has its version in its name.
    case " $missing " in *" libclang-rt-14-dev "*)
        version=$(clang --version 2>/dev/null | sed -n 's/.*version \([0-9]*\).*/\1/p' | head -1)
        if [ -z "$version" ]; then
            version=$(apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' | head -1)
        fi
        case ${version:-14} in [1-9] | 1[0-3]) rt="libclang-common-${version}-dev" ;; 14) rt=libclang-rt-14-dev ;; *) rt="libclang-rt-$version-dev" ;; esac
        apt-cache show "$rt" >/dev/null 2>&1 || rt=libclang-common-${version:-14}-dev
        missing=$(echo "$missing" | sed "s/libclang-rt-14-dev/$rt/")
        ;;
    esac
    install_missing || exit 1
fi

browser=
for name in chromium chromium-browser google-chrome; do
    command -v $name >/dev/null 2>&1 && { browser=$name; break; }
done
# Debian's package is a browser; Ubuntu's only leads to a snap, which does not run in containers.
if [ -z "$browser" ] && { [ -z "$wanted" ] || echo "$wanted" | grep -qw browser; } && . /etc/os-release 2>/dev/null && [ "${ID:-}" = debian ]; then
    missing=chromium
    install_missing >/dev/null 2>&1 && browser=chromium
    missing=
fi

passed=0 failed=0 skipped=0 failures=
now() { date +%s; }
begun=$(now)

is_wanted() {
    [ -z "$wanted" ] && return 0
    case " $wanted " in *" $1 "*) return 0 ;; esac
    return 1
}

# finish GROUP SECONDS PASSED FAILED SKIPPED
finish() {
    printf '%-12s %4d s   %d passed, %d failed, %d skipped\n' "$1" "$2" "$3" "$4" "$5"
    passed=$((passed + $3)) failed=$((failed + $4)) skipped=$((skipped + $5))
    [ "$4" -eq 0 ] || failures="$failures $1"
}

# The targets of a build folder whose names match an expression.
targets_like() {
    meson introspect --targets "$base/$1" | python3 -c '
import json, os, re, sys
top = os.path.realpath(sys.argv[1])
for target in json.load(sys.stdin):
    if re.fullmatch(sys.argv[2], target["name"]):
        print(os.path.relpath(os.path.realpath(target["filename"][0]), top))' "$base/$1" "$2"
}

# build FOLDER COMPILER MESON_OPTION...: set up (again, if the options changed) and build everything, or the targets
# matching $only.
only=
build() {
    folder=$base/$1
    compiler=$2
    shift 2
    log=$folder.log
    if [ -e "$folder/build.ninja" ]; then
        meson configure "$folder" "$@" >"$log" 2>&1 || rm -rf "$folder"
    fi
    if [ ! -e "$folder/build.ninja" ]; then
        rm -rf "$folder"
        CC=$compiler meson setup "$folder" "$root" "$@" >"$log" 2>&1 || { tail -30 "$log"; return 1; }
    fi
    targets=
    [ -z "$only" ] || targets=$(targets_like "${folder##*/}" "$only")
    # shellcheck disable=SC2086
    ninja -C "$folder" -j "$jobs" $targets >>"$log" 2>&1 || { grep -E 'error|warning|FAILED' "$log" | head -30; tail -5 "$log"; return 1; }
}

# One test of the kind "it builds without a warning".
build_group() {
    started=$(now)
    if build "$@"; then finish "$1" $(($(now) - started)) 1 0 0; else finish "$1" $(($(now) - started)) 0 1 0; return 1; fi
}

# run_tests FOLDER NAME MESON_TEST_ARGUMENT...: run tests of a build folder side by side, then count them.  NAME is the
# group that they are; `suites`: each suite is a group, and its seconds are those of its tests one after the other.
run_tests() {
    folder=$base/$1 group=$2
    shift 2
    started=$(now)
    log=$base/$group.log
    rm -f "$folder/meson-logs/testlog.json"
    meson test -C "$folder" --no-rebuild --num-processes "$jobs" --print-errorlogs "$@" >"$log" 2>&1
    python3 -c '
import json, sys
groups = {}
for line in open(sys.argv[1]):
    test = json.loads(line)
    name = test["name"].split(" / ")[0].split(":")[-1].split("+")[0] if sys.argv[2] == "suites" else sys.argv[2]
    group = groups.setdefault(name, [0, 0, 0, 0])
    group[0] += test["duration"]
    group[1 if test["result"] in ("OK", "EXPECTEDFAIL") else 3 if test["result"] == "SKIP" else 2] += 1
for name, (seconds, good, bad, skipped) in groups.items():
    print(name, round(seconds), good, bad, skipped)
' "$folder/meson-logs/testlog.json" "$group" >"$base/counts" 2>>"$log"
    [ -s "$base/counts" ] || { tail -20 "$log"; echo "$group 0 0 1 0" >"$base/counts"; }
    took=$(($(now) - started)) broken=
    while read -r name seconds good bad skip; do
        [ "$group" = suites ] || seconds=$took
        finish "$name" "$seconds" "$good" "$bad" "$skip"
        [ "$bad" -eq 0 ] || broken=1
    done <"$base/counts"
    [ "$group" != suites ] || echo "(side by side: $took s)"
    [ -z "$broken" ] || grep -vE '^ *[0-9]+/[0-9]+ .* (OK|SKIP) ' "$log" | tail -150
}

# The suites of a build folder, in their order, less those that have a group of their own.
suites() {
    meson introspect --tests "$base/$1" | python3 -c '
import json, sys
names = []
for test in json.load(sys.stdin):
    for suite in test["suite"]:
        name = suite.split(":")[-1]
        if name not in names and name not in ("full", "browser", "bench"):
            names.append(name)
print(" ".join(names))'
}

check_install() {
    started=$(now)
    if sh "$root/test/install/check.sh" "$base/gcc" "$base/installed" >"$base/install.log" 2>&1; then
        finish install $(($(now) - started)) 1 0 0
    else
        tail -20 "$base/install.log"
        finish install $(($(now) - started)) 0 1 0
    fi
}

# Each target for a while, from the seeds that are there; what it finds stays in the build folder.
fuzz() {
    started=$(now)
    seconds=10
    [ -z "$full" ] || seconds=300
    good=0 bad=0
    only='fuzz_.*'
    if ! build fuzz clang -Dfuzz=true -Dtests=true -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debugoptimized; then
        only=
        finish fuzz $(($(now) - started)) 0 1 0
        return
    fi
    only=
    for target in "$base"/fuzz/test/fuzz/fuzz_*; do
        [ -x "$target" ] && [ -f "$target" ] || continue
        name=${target##*/fuzz_}
        mkdir -p "$base/fuzz/found/$name"
        seeds=
        [ -d "$root/test/fuzz/corpus/$name" ] && seeds=$root/test/fuzz/corpus/$name
        # shellcheck disable=SC2086
        if (cd "$base/fuzz/found" && "$target" -max_total_time=$seconds -rss_limit_mb=2048 -timeout=20 -print_final_stats=0 \
            -artifact_prefix="$base/fuzz/found/$name-" "$name" $seeds) >"$base/fuzz-$name.log" 2>&1; then
            good=$((good + 1))
        else
            bad=$((bad + 1))
            echo "fuzz_$name found something:"
            grep -E 'ERROR|SUMMARY|artifact|Test unit' "$base/fuzz-$name.log" | head
        fi
    done
    finish fuzz $(($(now) - started)) $good $bad 0
}

build_group gcc gcc -Dbuildtype=debugoptimized || { echo "$passed passed, $((failed)) failed, $skipped skipped"; exit 1; }

# Round trips through Python take minutes under sanitizers; the unit tests of the same code do not.
if [ -n "$full" ]; then
    CUDAMEM_TEST_FULL=1
    export CUDAMEM_TEST_FULL
    except= unless_full=
else
    except="--no-suite full" unless_full="--no-suite full --no-suite pickle"
fi
chosen=
for name in $(suites gcc); do
    if is_wanted "$name"; then chosen="$chosen --suite $name"; fi
done
# shellcheck disable=SC2086
if [ -n "$chosen" ]; then run_tests gcc suites $chosen $except; fi
if is_wanted install; then check_install; fi

# The same tests built by the other compiler, with every access and every arithmetic operation watched.  What is
# injected into programs that were not built so cannot be: recording is left out.
if is_wanted clang || is_wanted sanitizer; then
    if build_group clang clang -Db_sanitize=address,undefined -Db_lundef=false -Dbuildtype=debugoptimized && is_wanted sanitizer; then
        ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
        CUDAMEM_TEST_SANITIZED=1
        export ASAN_OPTIONS UBSAN_OPTIONS CUDAMEM_TEST_SANITIZED
        # shellcheck disable=SC2086
        run_tests clang sanitizer --no-suite browser --no-suite record --no-suite preload --no-suite bench \
            --no-suite layers --no-suite man $unless_full -t 4
        unset ASAN_OPTIONS UBSAN_OPTIONS CUDAMEM_TEST_SANITIZED
    fi
fi
if is_wanted fuzz; then fuzz; fi
if is_wanted browser; then
    if [ -n "$browser" ]; then
        BROWSER=$browser
        export BROWSER
        run_tests gcc browser --suite browser
    else
        echo "browser: skipped, there is no Chromium and none could be installed"
        skipped=$((skipped + 1))
    fi
fi

echo "took $(($(now) - begun)) s"
[ -z "$failures" ] || echo "failed:$failures"
if [ $skipped -gt 0 ]; then
    echo "$passed passed, $failed failed, $skipped skipped"
else
    echo "$passed passed, $failed failed"
fi
[ $failed -eq 0 ] && [ $passed -gt 0 ]
exit
}
