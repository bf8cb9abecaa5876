refuse() {
    cudamem replay "$@" "$DATA/frag.pickle.gz"
    [ $? -eq 2 ] || echo "not refused: $*"
}
refuse --memory-limit 4GiB@1KiB
refuse --memory-limit 4GiB@1.5
refuse --memory-limit 4GiB@
refuse --memory-limit 4GiB@-1
refuse --memory-limit 4GiB@99999999999999999999
refuse --memory-limit 4GiB@9580
refuse --scope 0:1=5..9580
refuse --scope 0:1=-5..9
refuse --scope 0:1=5..9.
refuse --pool 0:1=split,no_split
refuse --pool 0:1=no_split,
refuse --pool 0:1=no_split,no_split
refuse --pool 0:1=split --pool 0:1=no_split
refuse --pool 99999999999999999999:1=split
refuse --pool 0:0=no_split
refuse --conf max_split_size_mb:-4
refuse --conf 'expandable_segments:True,roundup_power2_divisions:[ -8:2]'
refuse --conf max_split_size_mb:99999999999999999999
refuse --verify --conf ''
cudamem replay --verify "$DATA/frag.pickle.gz@#50" || echo "status $?"
cudamem replay --memory-limit 4GiB@9579 --scope 0:1=9579..9579 "$DATA/frag.pickle.gz" >out || echo "status $?"
cudamem replay --conf garbage_collection_threshold:5e-1 "$DATA/frag.pickle.gz" >out || echo "status $?"
cudamem replay --verify "$DATA/whatif.pickle.gz@end" >out || echo "status $?"
