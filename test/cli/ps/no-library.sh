: >libnvidia-ml.so.1
LD_LIBRARY_PATH=. cudamem ps
