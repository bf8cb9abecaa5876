for view in segments memory; do
    for file in "$DATA"/*.flame_$view.txt.gz; do
        name=${file##*/}
        name=${name%.flame_$view.txt.gz}
        gzip -dc "$file" >expected
        cudamem convert --to folded --view $view "$DATA/$name.pickle.gz" | cmp - expected && echo "$view $name"
    done
done
