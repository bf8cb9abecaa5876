# needs: python3
# Of snapshot.bin only the chunks that a moment or --entries asks for are read: with the others overwritten, the same
# comes out, and it is what the whole trace gives.
python3 "$DATA/../cli/make_long.py" long.pickle >ledger
cudamem convert --to bin long.pickle -o whole.bin
python3 - <<'END'
import struct
data = bytearray(open("whole.bin", "rb").read())
at, chunks, bytes_gone = struct.unpack_from("<I", data, 12)[0], 0, 0
while at < len(data):
    kind, packed = struct.unpack_from("<I", data, at)[0], struct.unpack_from("<Q", data, at + 16)[0]
    if kind == 20:
        chunks += 1
        if chunks <= 4:
            data[at : at + 32 + packed] = bytes(32 + packed)
            bytes_gone += packed
    at += 32 + packed
open("part.bin", "wb").write(data)
print(chunks, "chunks, more than half of the file gone:", 2 * bytes_gone > len(data))
END
compare() {
    "$@" long.pickle@#390000 >a && "$@" part.bin@#390000 >b && cmp a b && gzip -c whole.bin | "$@" -@#390000 >b && cmp a b && echo "$2 alike"
}
compare cudamem segsum
compare cudamem svg --title x --memory -o -
cudamem convert --to json --entries 380000..390000 long.pickle >a
cudamem convert --to json --entries 380000..390000 part.bin >b
cmp a b && echo "convert alike"
cudamem convert --to csv --entries 380000..390000 part.bin@#380500 | wc -l
cudamem segsum part.bin
cudamem segsum part.bin@#400002
