LD_LIBRARY_PATH=$FAKE_NVML cudamem mem --bytes -o out.txt --device 0 && cat out.txt
