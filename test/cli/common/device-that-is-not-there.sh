# Who asks for a device that the file has not is told, and gets valid results of nothing.
cudamem summary --device 7 "$DATA/graphs.pickle.gz" 2>&1 | sed "s,$DATA/,,"
cudamem stats --device 7 --json "$DATA/graphs.pickle.gz" 2>/dev/null | grep devices
cudamem stats --device 0 "allocated_bytes.all.current" "$DATA/graphs.pickle.gz"
