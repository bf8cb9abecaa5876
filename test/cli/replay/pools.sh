# Private pools are found from the segments; what the user says of them counts.
for file in graphs mempool mempool_end; do
    cudamem replay --verify "$DATA/$file.pickle.gz" | head -1
done
cudamem replay --verify --json "$DATA/mempool.pickle.gz" | tr -d ' \n'
echo
cudamem replay --verify --pool 0:3=split "$DATA/mempool.pickle.gz"
echo "status $?"
cudamem replay --pool 0:3=some "$DATA/mempool.pickle.gz"
echo "status $?"
cudamem replay --scope 0:1=9..4 "$DATA/mempool.pickle.gz"
echo "status $?"
