# The limit that was in force explains the failure; one that was not is left out of account.
cudamem explain --no-settings --memory-limit 4503296409 "$DATA/frag.pickle.gz@oom" | sed -n '1p;/^The memory/,/limit/p'
cudamem explain --no-settings --memory-limit 8GiB "$DATA/frag.pickle.gz@oom" | grep 'memory-limit'
