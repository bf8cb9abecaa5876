cudamem vresion
