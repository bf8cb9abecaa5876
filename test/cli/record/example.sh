# needs: unsanitized
# The quickstart's program on the simulated device, and what can be said of it afterwards.
cudamem record --sim -o example.bin "$BUILD/test/programs/example" >out 2>err
echo "status $?"
ls
cudamem info example.bin | grep -E '^trace.(entries|lost_entries) '
