# Inside a living block; in a hole, with what was there last; in a segment given back; what comes later; never seen.
file=$DATA/leak_after.pickle.gz
cudamem blocks --bytes --address 0x7f7e50000005 "$file"
cudamem blocks --bytes --address 0x7fb6c4200000 "$DATA/frag.pickle.gz"
cudamem blocks --bytes --address 0x7fb6c4200000 "$DATA/frag.pickle.gz@#100"
cudamem blocks --bytes -a 0x7fb7be000000 "$DATA/frag.pickle.gz"
cudamem blocks --bytes -a 16 "$file"
cudamem blocks --address 0x7f2x "$file"; echo $?
cudamem blocks --address -1 "$file"; echo $?
