"""A child of fork, and those of multiprocessing that are forked or start afresh: each has a recording of its own, with its
own frames."""
import multiprocessing
import os

import device


def in_child(size):
    device.take(size)


def both(size):
    device.begin()
    in_child(size)
    in_child(size + 512)


if __name__ == "__main__":
    if not os.fork():
        both(8192)
        os._exit(0)
    assert os.wait()[1] == 0
    for size, method in ((16384, "fork"), (32768, "spawn")):
        child = multiprocessing.get_context(method).Process(target=both, args=(size,))
        child.start()
        child.join()
        assert child.exitcode == 0
    device.begin()
    device.take(4096)
