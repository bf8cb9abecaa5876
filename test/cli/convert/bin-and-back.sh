# needs: python3
# pickle, snapshot.bin, pickle: an equal object.
for name in mempool frag graphs; do
    cudamem convert --to bin "$DATA/$name.pickle.gz" -o one.bin &&
        cudamem convert --to pickle one.bin -o two.pickle &&
        python3 -c '
import gzip, pickle, sys
with gzip.open(sys.argv[1]) as a, open(sys.argv[2], "rb") as b:
    print(pickle.load(a) == pickle.load(b))' "$DATA/$name.pickle.gz" two.pickle
done
