"""Every way into a Python function."""
import asyncio
import contextlib
import functools
import gc
import threading

import device
from device import give, take, take_locked

size = 4096


def new():
    global size
    size += 512
    return size


def plain():
    return take(new())


def nested(depth):
    return nested(depth - 1) if depth else take(new())


def generator():
    yield take(new())
    yield from inner_generator()
    for address in (take(new()) for _ in range(2)):
        yield address


def inner_generator():
    yield take(
        new()
    )


class Layer:
    held = take if False else None

    def __new__(cls, *arguments):
        take(new())
        return super().__new__(cls)

    def __init__(self, extra=None):
        self.first = take(new())
        self.second = Inner(extra)

    def __call__(self):
        return take(new())

    @property
    def weight(self):
        return take(new())

    @staticmethod
    def fixed():
        return take(new())

    def __del__(self):
        take(new())


class Inner:
    def __init__(self, extra):
        self.extra = extra
        self.memory = take(new())


class Meta(type):
    def __init__(cls, *arguments):
        super().__init__(*arguments)
        take(new())


@contextlib.contextmanager
def managed():
    take(new())
    yield
    take(new())


def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments, **words):
        return function(*arguments, **words)

    return wrapper


@decorated
@decorated
def wrapped(*, argument):
    return take(new())


def failing():
    try:
        raise ValueError(nested(2))
    except ValueError:
        take(new())
        raise KeyError(1) from None
    finally:
        take(new())


def in_flight():
    try:
        failing()
    except KeyError:
        return take(new())


async def sleeper():
    await asyncio.sleep(0)
    return take(new())


async def gathered():
    await asyncio.gather(sleeper(), sleeper())
    return await sleeper()


def threaded(number):
    device.join()
    nested(number)


class Sequence:
    def __getitem__(self, key):
        return take(new())

    def __getattribute__(self, name):
        return take(new())


def warm():
    """Often enough that the interpreter takes its shorter ways: calls that it does without C in between."""
    layer, sequence = Layer(), Sequence()
    for _ in range(40):
        Inner(None)
        layer.weight
        sequence[0]
        sequence.name
        nested(2)
        layer()
        for address in inner_generator():
            give(address)


def closure():
    kept = new()

    def inner():
        def innermost():
            return take(kept)

        return innermost()

    return inner()


def locked():
    return take_locked(new())


def main():
    plain()
    nested(20)
    for address in generator():
        give(address)
    layer = Layer(1)
    layer()
    layer.weight
    layer.fixed()
    del layer
    gc.collect()

    class Body(metaclass=Meta):
        memory = take(new())

    with managed():
        plain()
    wrapped(argument=1)
    in_flight()
    closure()
    warm()
    locked()
    asyncio.run(gathered())
    list(map(lambda _: plain(), range(2)))
    sorted([3, 1, 2], key=lambda item: (plain(), item)[1])
    functools.reduce(lambda a, b: plain(), [1, 2, 3])
    [plain() for _ in range(2)]
    {key: plain() for key in "ab"}
    exec("def compiled():\n\n    return plain()\ncompiled()", globals())
    eval("plain()")
    threads = [threading.Thread(target=threaded, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    import imported
    imported.late()


device.begin()
if __name__ == "__main__":
    main()
