# Of an expandable segment what is not mapped stands between what is, and with --color stack each block says whose it is.
cudamem svg --map --color stack --title 'a <b> & "c"' "$DATA/expandable_mid.pickle.gz" -o - | grep -e '<text id="sub"' -e '<text id="title"' |
    sed 's/.*">\(.*\)<\/text>/\1/'
cudamem svg --map "$DATA/expandable.pickle.gz@#2000" -o - | sed -n 's/.*<text class="h"[^>]*>\(.*\)<\/text>/\1/p'
# A block without a stack says why.
cudamem svg --map "$DATA/train.pickle.gz" -o - | grep -A 2 '<title>32.00 MiB allocated' | sed -n 's/^\((.*)\)<.title.*/\1/p'
