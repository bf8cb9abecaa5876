# A file that is no library stands for a machine without a driver.
: >libnvidia-ml.so.1
LD_LIBRARY_PATH=. cudamem mem
