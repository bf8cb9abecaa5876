LD_LIBRARY_PATH=$FAKE_NVML cudamem mem --json --device 0
