# Command lines that make no sense: one line each, and status 2.
try() {
    cudamem ctl "$@" 2>&1
    echo "status $?"
}
try
try 4711
try x status
try 0 status
try 4711 stop
try 4711 mark
try 4711 mark ''
try 4711 mark 'two
lines'
try 4711 mark "$(printf 'caf\351')"
try 4711 mark 01234567890123456789012345678901234567890123
try 4711 pause now
try 4711 pause -o file
try 4711 snapshot --json
try 4711 pause --fresh
