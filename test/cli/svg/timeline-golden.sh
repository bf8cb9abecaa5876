# A small one, to the byte, without style and script.
cudamem svg --timeline --x entries --detail 20 "$DATA/leak_before.pickle.gz" -o out.svg
sed -e '/<defs>/,/<\/style>/d' -e '/<script>/,/<\/script>/d' out.svg
