for group in function file library stream pool device annotation owner; do
    cudamem report --group $group --bytes -n 2 "$DATA/frag.pickle.gz@oom" | tail -n +2
done
cudamem report --group size --sort count --bytes -n 2 "$DATA/train.pickle.gz"
cudamem report --stream 0 --group stream --bytes "$DATA/frag.pickle.gz"
