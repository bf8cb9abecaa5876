for file in "$DATA"/*.compare.txt; do
    name=${file##*/}
    name=${name%.compare.txt}
    cudamem diff --group segment --format pytorch "$DATA/${name%-*}.pickle.gz" "$DATA/${name#*-}.pickle.gz" | cmp - "$file" && echo "$name"
done
