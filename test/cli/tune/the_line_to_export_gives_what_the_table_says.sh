cudamem tune --bytes "$DATA/kvcache.pickle.gz" >tune.txt
eval "$(grep '^export' tune.txt)"
echo "$PYTORCH_CUDA_ALLOC_CONF"
cudamem replay --bytes --conf "$PYTORCH_CUDA_ALLOC_CONF" "$DATA/kvcache.pickle.gz" | sed 1d | cut -f2 >replayed
sed -n 3p tune.txt | cut -f2 | cmp - replayed
