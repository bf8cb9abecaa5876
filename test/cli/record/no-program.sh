cudamem record
