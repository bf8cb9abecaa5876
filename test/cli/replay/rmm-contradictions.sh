# A free of what nothing holds and an allocation over another one are counted and left out.
{
    echo Thread,Time,Action,Pointer,Size,Stream
    echo 1,09:00:00.000100,allocate,0x7f0000000000,1048576,0x0
    echo 1,09:00:00.000101,free,0x7f0000f00000,512,0x0
    echo 1,09:00:00.000102,allocate,0x7f0000080000,1048576,0x0
    echo 1,09:00:00.000103,free,0x7f0000000000,1048576,0x0
} >log
cudamem replay --bytes --json --conf '' log | tr , '\n' | grep -e contradictions -e '"num_device_alloc"' -e '"allocation.all.allocated"'
