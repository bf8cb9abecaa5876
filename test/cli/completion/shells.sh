# Each script names every command; those whose shell is here are checked by it.
for shell in bash zsh fish; do
    cudamem completion $shell >script.$shell
    for command in $(cudamem help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
        grep -qw -e "$command" script.$shell || echo "$shell: no $command"
    done
    grep -q -e 'dump-options' script.$shell && echo "$shell completes a hidden option"
    if command -v $shell >/dev/null; then $shell -n script.$shell; fi
done
:
