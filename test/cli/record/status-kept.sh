# needs: unsanitized
# A program that never touches CUDA: its status and its words are its own.
cudamem record sh -c 'echo out; echo err >&2; exit 7' 2>err
status=$?
head -1 err
exit $status
