# What cannot be talked to: a process that is not there, one that is not recorded, and a name that has a number in it.
try() {
    cudamem ctl "$@" 2>&1 | sed "s/$$/SELF/"
}
try 999999999 status
try $$ pause
try $$ snapshot -o out.bin
ls
