# For the scripts here to read, with $0 theirs: where the packed tree, the interpreter and the outputs are; goes there.
set -u
here=$(cd "$(dirname "$0")" && pwd)
pack=$(cd "${GPU_PACK:-$here/../../.gpu}" && pwd) || exit 2
python=${PYTHON:-$(command -v /opt/torch/.venv/bin/python3 || command -v python3)}
out=${GPU_OUT:-$(mktemp -d)}
cudamem=$pack/cudamem/bin/cudamem
mkdir -p "$out" && cd "$out" || exit 2
