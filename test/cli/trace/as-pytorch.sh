for file in "$DATA"/*.trace.txt.gz; do
    name=${file##*/}
    name=${name%.trace.txt.gz}
    gzip -dc "$file" >expected
    cudamem trace "$DATA/$name.pickle.gz" | cmp - expected && echo "$name"
done
