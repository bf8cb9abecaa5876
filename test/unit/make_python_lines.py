#!/usr/bin/env python3
"""Writes the lines of an interpreter's own code, for test_python_lines: run it with each version and join what it prints.

A line a code object: "code VERSION FIRST_LINE TABLE SIZE OFFSET=LINE ...": version and table in hexadecimal, the size of the
code, and from which byte on which line it is, as PyCode_Addr2Line says; -1 is none.
"""
import ctypes
import sys
import types

SOURCE = '''
def short(a, b):
    return a + b

def spread(call, x):
    first = call(
        x,
        [y for y in x
         if y],
        key=lambda z:
            z + 1,
    )
    return (first
            .one(1)
            .two(
                2))

def flow(items):
    total = 0
    for item in items:
        try:
            if item > 3 and \\
                    item < 9:
                continue
            with item as held, \\
                    open(held) as other:
                total += yield held
        except (ValueError,
                TypeError) as error:
            raise KeyError(
                error) from None
        finally:
            total -= 1
    else:
        return total
    while True:
        if not total:
            break

@short(1, 2)
@spread
class Body(
        object):
    a = 1

    def method(self, *, b=(
            2)):
        async def inner():
            async for x in b:
                await x
        return {k: v
                for k, v
                in b}

def far(a):
    x = 1
''' + "\n" * 400 + '''
    y = (a[
''' + "\n" * 150 + '''
        x])
    return y

def wide():
    return [
''' + "        'a', 2.5, {'k': wide()},\n" * 120 + '''
    ]
'''


def lines_of(code):
    line_of = ctypes.pythonapi.PyCode_Addr2Line
    line_of.argtypes = [ctypes.py_object, ctypes.c_int]
    line_of.restype = ctypes.c_int
    before, parts = None, []
    for offset in range(-2, len(code.co_code), 2):
        line = line_of(code, max(offset, -1))
        if line != before:
            parts.append(f"{max(offset, -1)}={line}")
        before = line
    return parts


def write(code):
    table = code.co_lnotab if sys.version_info < (3, 10) else code.co_linetable
    print("code", f"{sys.hexversion:x}", code.co_firstlineno, table.hex() or "-", len(code.co_code), *lines_of(code))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            write(constant)


write(compile(SOURCE, "lines.py", "exec"))
