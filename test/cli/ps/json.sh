LD_LIBRARY_PATH=$FAKE_NVML cudamem ps --json --device 1
