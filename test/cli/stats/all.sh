cudamem stats "$DATA/mempool.pickle.gz" | grep -v '^#' | cut -d' ' -f1 | sort -c && cudamem stats "$DATA/mempool.pickle.gz" | grep -vc '^#'
