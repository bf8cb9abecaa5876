# needs: cc python3
# A program is looked at, not run.
unset DEBUGINFOD_URLS
doctor() {
    cudamem doctor --sim "$@" | sed '1,/^ok    space/d' | grep -v "^note  space"
    cudamem doctor --sim "$@" >/dev/null
    echo "status $?"
}
printf '#!/bin/sh\ntouch was_run\n' >script && chmod +x script
doctor ./script | sed 's|run by .*|run by a shell|'
printf '#!/nowhere/python\n' >lost && chmod +x lost
doctor ./lost
printf '#!%s/two\n' "$PWD" >one && printf '#!%s/one\n' "$PWD" >two && chmod +x one two
doctor ./one
doctor ''
echo >plain
doctor ./plain
doctor ./missing --sim -x
echo 'int main(void) { return 0; }' >program.c
cc -g program.c -o program && doctor ./program | sed "s|$PWD|.|"
cc program.c -o unnamed && strip unnamed && doctor ./unnamed | sed "s|$PWD|.|"
printf '\177ELF\1\1\1' >small && head -c 200 /dev/zero >>small && chmod +x small
doctor ./small | sed "s|$PWD|.|"
[ ! -e was_run ] && echo nothing was run
