"""Threads that allocate at the same time, each in functions of its own depth."""
import threading

import device

THREADS, EACH = 8, 12


def down(depth, size):
    return down(depth - 1, size) if depth else device.take(size)


def work(number):
    device.join()
    barrier.wait()
    for i in range(EACH):
        down(number + i % 3, 4096 + 512 * (number * EACH + i))


device.begin()
barrier = threading.Barrier(THREADS)
threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
