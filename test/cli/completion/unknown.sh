cudamem completion tcsh
