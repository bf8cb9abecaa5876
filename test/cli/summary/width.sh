# Each line of a table has 77 columns; the first is a rule.
for name in train frag graphs resnet; do
    cudamem summary "$DATA/$name.pickle.gz" | grep '^|' | awk '{ print length }' | sort -u
    cudamem summary "$DATA/$name.pickle.gz" | head -1 | cut -c1-4
done
