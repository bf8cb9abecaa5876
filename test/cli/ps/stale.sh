# Left-over ring files: of a process that is gone, of one that runs; other files and other folders are not touched.
rings=$TMPDIR/cudamem-$(id -u)
mkdir -m 700 "$rings" "$rings/record-99999999-abcdef"
touch -d '2026-01-02 03:04:05 UTC' "$rings/cudamem-99999999-0123456789abcdef.ring" "$rings/record-99999999-abcdef/cudamem-99999998-00.ring.new"
touch "$rings/cudamem-$$-00.ring" "$rings/notes.txt"
CUDAMEM_RING_FOLDER=$rings XDG_RUNTIME_DIR=$TMPDIR cudamem ps --stale --json | sed "s|$TMPDIR|TMP|; s|\"pid\": $$,|\"pid\": SELF,|; s|-$$-|-SELF-|; s|-$(id -u)/|-UID/|" | grep "TMP" | sed '/SELF/s/"modified": [0-9]*/"modified": NOW/'
cudamem ps --stale --remove | grep "$TMPDIR" | sed "s|$TMPDIR|TMP|; s|-$$-|-SELF-|; s|-$(id -u)/|-UID/|" | cut -f4,6
(cd "$rings" && find . -type f) | sed "s/-$$-/-SELF-/" | sort
ls "$rings/record-99999999-abcdef" 2>/dev/null || echo "its folder is gone"
