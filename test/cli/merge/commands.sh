# Commands that cannot work on several processes say so.
gzip -dc "$DATA/train.pickle.gz" >train.pickle
cudamem merge train.pickle train.pickle -o both.bin
cudamem tune both.bin
echo "tune $?"
cudamem diff --group segment train.pickle both.bin
echo "diff by segment $?"
cudamem diff train.pickle both.bin | head -1
cudamem svg --segments both.bin -o both.svg && grep -c process_ both.svg | grep -vx 0 >/dev/null && echo processes in the picture
