echo >file
cudamem record ./file
