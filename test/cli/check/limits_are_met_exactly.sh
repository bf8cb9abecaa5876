# The statistic itself is within the limit, a byte or one less is not.
for file in frag train pressure mempool graphs leak_after; do
    cp "$DATA/$file.pickle.gz" "$file"
    for pair in max-peak=allocated_bytes.all.peak max-peak-reserved=reserved_bytes.all.peak max-retries=num_alloc_retries; do
        option=${pair%%=*}
        value=$(cudamem stats "${pair#*=}" "$file" | sed -n 's/^[^ #]* \([0-9]*\).*/\1/p')
        [ -n "$value" ] || { echo "$file $option is a bound"; continue; }
        cudamem check "--$option" "$value" "$file" >/dev/null
        within=$?
        [ "$value" -gt 0 ] || { echo "$file $option $value: $within"; continue; }
        cudamem check "--$option" $((value - 1)) "$file" >/dev/null
        echo "$file $option $value: $within, one less $?"
    done
done
