# --no-traces: what the segments say is what the whole file says; no word about a recording that was off.
gzip -dc "$DATA/frag.pickle.gz" >frag.pickle
cudamem convert --to bin frag.pickle -o frag.bin
for file in frag.pickle frag.bin; do
    cudamem stats "*.current" $file >whole
    cudamem stats --no-traces "*.current" $file | cmp - whole && grep -c . whole
    cudamem summary -a --no-traces $file | grep -v '^#' | cut -c1-38 | sed 4d >few
    cudamem summary -a $file | grep -v '^#' | cut -c1-38 | sed 4d | diff - few | grep -c '^[<>]'
    cudamem summary --no-traces $file | grep -c 'recording was off'
done
cudamem stats --no-traces frag.bin@peak
