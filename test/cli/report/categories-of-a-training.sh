# What AdamW keeps is twice the parameters' bytes asked for; cuBLAS' workspaces are none of the model's; at the peak there
# are gradients and activations.
cudamem report --group category --bytes "$DATA/train.pickle.gz"
cudamem report --group category --bytes "$DATA/train.pickle.gz@peak"
cudamem report --group category --bytes "$DATA/train_cpp.pickle.gz"
cudamem report --by allocated --group category --bytes "$DATA/resnet.pickle.gz"
