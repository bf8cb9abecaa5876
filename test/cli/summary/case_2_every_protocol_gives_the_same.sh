# needs: python3
# The same dict at protocols 0 to 5: summaries of the same bytes; a bytearray is a value; the rest is refused by name.
python3 - "$DATA/frag.pickle.gz" <<'END'
import gzip, pickle, sys
content = pickle.load(gzip.open(sys.argv[1]))
for protocol in range(6):
    pickle.dump(content, open("%d.pickle" % protocol, "wb"), protocol)
content["buffer"] = bytearray(b"bytes")
pickle.dump(content, open("bytearray.pickle", "wb"), 5)
open("outside.pickle", "wb").write(b"\x80\x05\x97.")
open("later.pickle", "wb").write(b"\x80\x06}.")
END
cudamem summary - <0.pickle >expected
for name in 1 2 3 4 5 bytearray; do
    cudamem summary - <$name.pickle | cmp - expected && echo "$name alike"
done
cudamem summary outside.pickle
echo "$?"
cudamem summary later.pickle
