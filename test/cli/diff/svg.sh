# As a picture: what grew is red, what shrank or is gone is blue, and each box says by how much.
boxes() {
    awk '/<text id="sub"/ { sub(/.*">/, ""); sub(/<.*/, ""); print }
        /^<g class="[mvj][0-9]" data-b/ { class = substr($0, 11, 2); sub(/.*<title>/, ""); label = $0; getline; sub(/<.*/, "")
            print class, label ": " $0 }' "$1"
}
cudamem diff --svg --width change "$DATA/leak_before.pickle.gz" "$DATA/leak_after.pickle.gz" -o out.svg
boxes out.svg
cudamem diff --svg --group segment --reverse "$DATA/mempool.pickle.gz" "$DATA/mempool_end.pickle.gz" -o out.svg
boxes out.svg
cudamem diff --svg --exit-code --width after "$DATA/mempool.pickle.gz@#1" "$DATA/mempool.pickle.gz" -o out.svg
echo $?
cudamem diff --svg "$DATA/mempool.pickle.gz" "$DATA/mempool.pickle.gz" | grep -c -e 'class="[mv][123]"'
