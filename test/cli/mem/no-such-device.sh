LD_LIBRARY_PATH=$FAKE_NVML cudamem mem --device 7
