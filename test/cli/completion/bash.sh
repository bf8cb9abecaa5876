# needs: bash
# The script is valid, and completes commands, options, values and files.
cudamem completion bash >script
cat >ask <<'X'
. ./script
ask() {
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _cudamem
    echo "$*: ${COMPREPLY[*]}"
}
touch 'a file.bin'
ask cudamem comp
ask cudamem mem --by
ask cudamem mem --color ""
ask cudamem completion f
ask cudamem help vers
ask cudamem mem -o 'a f'
ask cudamem mem --device ""
X
bash ask
