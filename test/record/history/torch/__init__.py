"""Stands for PyTorch: its names that record --torch-history uses, over the simulated device."""
from . import _C
from . import cuda
