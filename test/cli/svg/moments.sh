# In the past blocks have the sizes that a replay gives them, where it follows the file; where not, the picture says so.
for file in train frag expandable mempool; do
    cudamem svg --memory "$DATA/$file.pickle.gz@peak" -o - | sed -n "s/.*<text id=\"sub\"[^>]*>\(.*\)<\/text>/$file: \1/p"
done
cudamem svg --map "$DATA/frag.pickle.gz@oom" -o - | sed -n 's/.*<text id="sub"[^>]*>\(.*\)<\/text>/\1/p'
