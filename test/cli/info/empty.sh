: >empty
cudamem info empty
