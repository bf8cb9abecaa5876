# A limit under which the recording does not come out costs no exact number.
cp "$DATA/frag.pickle.gz" .
cudamem summary --memory-limit 1GiB frag.pickle.gz >refuted
cudamem summary frag.pickle.gz | diff refuted - && echo same
cudamem stats --memory-limit 1GiB 'reserved_bytes.all.*' frag.pickle.gz
cudamem stats --memory-limit 4503296409 num_alloc_retries frag.pickle.gz
cudamem stats --memory-limit 1GiB@9580 num_alloc_retries frag.pickle.gz
echo "status $?"
