# A closed standard output is not taken over by the next file that is opened.
LD_LIBRARY_PATH=$FAKE_NVML cudamem mem >&-
