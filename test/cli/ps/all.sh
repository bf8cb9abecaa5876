# More processes than fit a first guess; one that draws and computes is listed once.
LD_LIBRARY_PATH=$FAKE_NVML cudamem ps
