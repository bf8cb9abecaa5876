gzip -dc "$DATA/mempool.pickle.gz" | cudamem info - | sed -n 's/^trace.entries/&/p'
