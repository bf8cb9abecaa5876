"""The user's own: what it does must be the same with ours before it."""
import sys

print("own", sys.modules["sitecustomize"].__doc__.split(":")[0])
if "--fail" in sys.argv:
    raise RuntimeError("of the user's")
