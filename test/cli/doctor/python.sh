# Interpreters by their names.
for name in python3.8 python3.12 python3.13t python3.14 python3.15 python3.11-dbg pythonic; do
    cp /bin/true $name
    cudamem doctor --sim ./$name | sed -n "s/^\([a-z]*\) *python */$name: \1 /p"
done
