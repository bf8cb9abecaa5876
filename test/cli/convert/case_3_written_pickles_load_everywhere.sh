# needs: python3
# Whatever is written has protocol 2 to 4 and is read back equal; where the input is bad, nothing is left behind.
for name in frag graphs mempool expandable; do
    gzip -dc "$DATA/$name.pickle.gz" >in.pickle
    cudamem convert --to pickle in.pickle -o out.pickle
    python3 -c '
import pickle
bytes = open("out.pickle", "rb").read()
print(bytes[:1] == b"\x80" and 2 <= bytes[1] <= 4, pickle.loads(bytes) == pickle.load(open("in.pickle", "rb")))'
    cudamem convert --to json in.pickle -o in.json && cudamem convert --to json out.pickle | cmp - in.json
done
head -c 1000 in.pickle >bad.pickle
mkdir views
for command in "svg --memory" "convert --to pickle" "convert --to json" segsum; do
    cudamem $command bad.pickle -o views/view 2>err
    echo "$? $(wc -l <err) $(ls views | wc -l)"
done
