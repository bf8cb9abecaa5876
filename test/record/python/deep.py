"""Recursion far beyond the depth that is kept, up and down again."""
import sys

import device

sys.setrecursionlimit(10000)
size = 4096


def down(depth, at):
    global size
    if depth in at:
        size += 512
        device.take(size)
    if depth:
        down(depth - 1, at)
    size += 512
    if depth in at:
        device.take(size)


device.begin()
down(900, {890, 850, 600, 400, 399, 398, 3, 0})
down(20, {20, 10, 9, 0})
