"""Allocates while it is imported."""
import device

kept = device.take(900 * 1024)


def late():
    # a text beyond ASCII: äöü 漢字 😀
    return device.take(901 * 1024)


class Straße:
    def größe(self):
        return device.take(902 * 1024)

    def 漢字(self):
        return self.größe()


Straße().漢字()
