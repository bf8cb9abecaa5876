mkdir folder
cudamem info folder
