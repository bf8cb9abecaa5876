cat >rules.json <<'JSON'
{"version": 1, "rules": [{"category": "loss", "frame": "capture\\.py:[0-9]+:step$"}]}
JSON
cudamem report --group category --categories rules.json --bytes "$DATA/leak_after.pickle.gz"
sed 's/"version"/"replaces": true, "version"/' rules.json >alone.json
cudamem report --group category --categories alone.json --bytes "$DATA/leak_after.pickle.gz"
for text in '' '{' '[]' '{"version": 2, "rules": []}' '{"version": 1, "rules": [{"category": "x"}]}' \
    '{"version": 1, "rules": [{"category": "x", "frame": "("}]}' '{"version": 1, "rules": [{"category": "x", "frame": "a{99}"}]}' \
    '{"version": 1, "rules": [{"category": "x", "fame": "a"}]}' '{"version": 1, "rules": [{"frame": "a"}]}' \
    '{"version": 1, "rules": []} {' '[[[[[[[[[[[[' '{"version": 1, "rules": [{"category": "x", "requested": [1e300]}]}'; do
    printf '%s' "$text" >bad.json
    cudamem report --group category --categories bad.json "$DATA/leak_after.pickle.gz" 2>&1
    echo $?
done
