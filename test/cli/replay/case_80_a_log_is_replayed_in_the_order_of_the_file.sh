# Thread 2 frees what thread 1 allocated, with an earlier time; only in the order of the rows does nothing contradict, and
# is the memory free again for the third request.
{
    echo Thread,Time,Action,Pointer,Size,Stream
    echo 1,09:00:00.000100,allocate,0x7f0000000000,33554432,0x0
    echo 2,09:00:00.000099,free,0x7f0000000000,33554432,0x0
    echo 1,09:00:00.000101,allocate,0x7f0000000000,33554432,0x0
    echo 2,09:00:00.000102,allocate,0x7f0002000000,33554432,0x0
    echo 1,09:00:00.000103,free,0x7f0002000000,33554432,0x0
} >log
cudamem replay --json --conf '' log | tr , '\n' | grep -e '"peak_.*_bytes"' -e '"device_allocs"' -e contradictions \
    -e '"allocation.all'
cudamem info log | grep -e '^source' -e '^actions'
