# needs: cc
echo 'int main(void) { return 0; }' >program.c
if cc -static program.c -o static 2>/dev/null; then
    cudamem doctor --sim ./static | sed -n "s|$PWD|.|; s/^bad *program *//p"
else
    echo './static cannot be recorded: it is statically linked; remedy: link it dynamically (without -static); the CUDA runtime in it may stay static'
fi
cc program.c -o program
if [ "$(id -u)" = 0 ]; then
    chown 1 program && chmod 4755 program
    cudamem doctor --sim ./program | sed -n "s|$PWD|.|; s/^bad *program *//p"
else
    echo './program cannot be recorded: it runs with more rights than its user; remedy: record a copy without the set-user-id bit (cp drops it), as a user who has the rights'
fi
