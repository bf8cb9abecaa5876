# Whole stacks on request, innermost first; exact bytes.
cudamem explain --stacks --bytes -n 1 --no-settings "$DATA/train.pickle.gz"
