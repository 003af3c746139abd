"""graph-mem: a knowledge service that keeps institutional memory true."""

from importlib.metadata import version

__version__ = version("graph-mem")
