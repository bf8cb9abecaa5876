# Complete recordings: PyTorch's own table, byte for byte, and all of its statistics but one that no trace tells.
for name in train train_cpp expandable_mid expandable leak_before leak_after kvcache resnet whatif; do
    cudamem summary "$DATA/$name.pickle.gz" | cmp - "$DATA/$name.summary.txt"
    cudamem summary -a "$DATA/$name.pickle.gz" | cmp - "$DATA/$name.summary_abbreviated.txt"
done
for name in frag frag_conf frag_seed11 frag_seed13; do
    cudamem summary --memory-limit 4503296409 "$DATA/$name.pickle.gz" | cmp - "$DATA/$name.summary.txt"
done
cudamem summary --memory-limit 3002197606 "$DATA/pressure.pickle.gz" | cmp - "$DATA/pressure.summary.txt"
cudamem summary "$DATA/pressure.pickle.gz" | sed -n 4p
