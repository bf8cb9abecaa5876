cudamem record --dpeth 3 true
cudamem record --depth 0 true
cudamem record --stacks some true
