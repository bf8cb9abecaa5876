for words in "x" "0" "-1" "99999999999" "1 2" "--interval 0" "--interval 100000" "-n 1001"; do
    cudamem top $words
    echo "$words: $?"
done
