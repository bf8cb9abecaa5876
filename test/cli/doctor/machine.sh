# Without a driver recording is refused, on the simulated device it works; JSON says the same.
if ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1'; then # there is one here
    printf 'status 1: 1 of 1 in the way\n'
else
    cudamem doctor >out.txt
    echo "status $?: $(grep -c '^bad .*driver .*remedy: ' out.txt) of $(grep -c '^bad' out.txt) in the way"
fi
cudamem doctor --sim >out.txt
echo "status $?"
sed -n '/^note/d; s|/.*/\(libcudamem[^ ]*\)|\1|; s|space *.*|space|; p' out.txt
cudamem doctor --sim --json >out.json
echo "status $?"
grep -o '"recordable": [a-z]*' out.json
grep -c '"verdict": "ok"' out.json | grep -vx 0 >/dev/null && echo findings
