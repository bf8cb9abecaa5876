# Byte for byte what PyTorch's own viewer printed for each of the real snapshots.
for file in "$DATA"/*.segsum.txt; do
    name=${file##*/}
    name=${name%.segsum.txt}
    cudamem segsum "$DATA/$name.pickle.gz" | cmp - "$file" && echo "$name"
done
