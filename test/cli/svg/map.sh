# A map says each group's sums, and its cells add up to them.
show() {
    sed -n 's/.*<text id="title"[^>]*>\(.*\)<\/text>/\1/p; s/.*<text id="sub"[^>]*>\(.*\)<\/text>/\1/p
        s/.*<text class="h"[^>]*>\(.*\)<\/text>/\1/p' "$1"
}
cudamem svg --map "$DATA/mempool.pickle.gz" -o out.svg && show out.svg
sed -n 's/^<g class="\([a-z]\)" data-b="\([0-9]*\).*/\1 \2/p' out.svg |
    awk '{ sum[$1] += $2 } END { print "allocated", sum["a"]; print "inactive", sum["i"] }'
for color in age size stack; do
    cudamem svg --map --color $color "$DATA/mempool.pickle.gz" -o out.svg
    sed -n 's/.*<rect width="14" height="14"\/><text class="l" x="20" y="11">\(.*\)<\/text><\/g>/'$color': \1/p' out.svg
done
cudamem svg --map --pool 0:1 --size 20M.. "$DATA/mempool.pickle.gz" -o out.svg && show out.svg
