# Innermost frames first: what allocated most, whoever called it.
cudamem svg --memory --reverse "$DATA/train.pickle.gz" -o out.svg
sed -n 's/^<g class="[a-z0-9]*" data-b="\([0-9]*,[0-9]*\)"><title>\(.*\)/\1 \2/p' out.svg | head -8
for color in state age size stack; do
    cudamem svg --segments --reverse --color $color "$DATA/train.pickle.gz" -o out.svg
    sed -n 's/.*<rect width="14" height="14"\/><text class="l" x="20" y="11">\(.*\)<\/text><\/g>/'$color': \1/p' out.svg
done
