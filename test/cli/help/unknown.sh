cudamem help sumary
