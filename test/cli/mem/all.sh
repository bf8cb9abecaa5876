# Every device with what is known of it; names cannot control the terminal.
LD_LIBRARY_PATH=$FAKE_NVML cudamem mem
