#!/bin/sh
# Under CUDAMEM_DEBUG=abort a misuse ends the program with both stacks; else, and without a misuse, it goes on.
# usage: library_debug.sh PROGRAM
set -u
program=$1
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; cat "$work/stderr"; exit 1; }
ulimit -c 0

[ "$("$program" twice)" = -9 ] || fail "without the setting a second free is no status"
[ "$(CUDAMEM_DEBUG=1 "$program" twice)" = -9 ] || fail "another value aborts"
[ "$(CUDAMEM_DEBUG=abort "$program" well 2>"$work/stderr")" = 0 ] || fail "without a misuse it does not end well"
[ ! -s "$work/stderr" ] || fail "it prints without a misuse"

(CUDAMEM_DEBUG=abort "$program" twice) >"$work/stdout" 2>"$work/stderr"
[ $? = 134 ] || fail "a second free does not abort"
[ ! -s "$work/stdout" ] || fail "it goes on after the misuse"
awk '/this call:/ { at = "now" } /was freed here:/ { at = "before" }
    /second_free/ && at == "now" { now = 1 } /first_free/ && at == "before" { before = 1 }
    END { exit !(now && before) }' "$work/stderr" || fail "not both stacks of a second free"

(CUDAMEM_DEBUG=abort "$program" inside) >/dev/null 2>"$work/stderr"
[ $? = 134 ] || fail "a pointer into a block does not abort"
grep -q 'no call gave or took' "$work/stderr" || fail "what is known of the address is not said"
