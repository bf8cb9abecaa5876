# Every number of a moment is of that moment; the request that fails is entry 3845.
for moment in 500 3845 3846; do
    cudamem replay --bytes "$DATA/frag.pickle.gz@#$moment" | sed 1d
done
