# Expandable segments are on: no line proposes them anew.
cudamem explain "$DATA/frag_seed11.pickle.gz@oom" >out
grep -c '^  expandable_segments:True: ' out
sed -n '1p;/^Other/,/^$/p' out
