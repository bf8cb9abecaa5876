{
    echo Thread,Time,Action,Pointer,Size,Stream
    for row in 2 3 4 5 6; do
        echo 1,09:00:00.00000$row,allocate,0x7f000000${row}000,512,0x0
    done
    echo 1,09:00:00.000007,foo,0x7f0000002000,512,0x0
} >log
cudamem replay --conf '' log
