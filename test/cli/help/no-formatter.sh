# Neither man nor mandoc: the options at least.
mkdir bin
ln -s "$(command -v cudamem)" bin/cudamem
PATH=$PWD/bin cudamem mem --help
