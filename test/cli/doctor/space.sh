# A folder that is not there is passed over; a limit on files is told, and one that was deleted.
TMPDIR=$PWD/missing cudamem doctor --sim | grep -c "^ok    space"
(ulimit -f 100; cudamem doctor --sim | sed -n 's/.*files may/files may/p'; cudamem doctor --sim >/dev/null; echo "status $?")
mkdir gone && (cd gone && rmdir ../gone && cudamem doctor --sim | sed -n 's/^bad *output *//p')
