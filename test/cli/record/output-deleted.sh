# Of a folder that is not there any more nobody learns when the program has ended.
mkdir gone && cd gone && rmdir ../gone && cudamem record --sim true
