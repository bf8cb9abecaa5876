# Unique beginnings of long options do.
LD_LIBRARY_PATH=$FAKE_NVML cudamem mem --dev 1
