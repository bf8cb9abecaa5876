cudamem replay --memory-limit 4503296409 --json "$DATA/frag.pickle.gz" | grep -E "exact|peak_reserved|ooms"
