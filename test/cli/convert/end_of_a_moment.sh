# What was cut at a moment ends as the allocator had it then: all of it comes out again.
for format in bin pickle; do
    for moment in oom '#97' '#500' '#3844'; do
        cudamem convert --to $format "$DATA/frag.pickle.gz@$moment" -o "cut.$format" && cudamem replay --verify "cut.$format" | head -1
    done
done
cudamem convert --to bin "$DATA/frag.pickle.gz" -o whole.bin
cudamem convert --to pickle whole.bin@oom -o cut.pickle && cudamem replay --verify cut.pickle | head -1
