"""The data folder: one instance at a time, and secrets that only its user reads."""

import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graph_mem.errors import SetupError
from graph_mem.local.folder import Announcement, DataFolder
from graph_mem.local.secrets import keep_secret

HOLD = """
import sys, time
from pathlib import Path
from graph_mem.local.folder import Announcement, DataFolder
folder = DataFolder(Path(sys.argv[1]))
with folder.hold():
    folder.announce(Announcement("g", "n", None))
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_instance_is_refused_and_told_which_process_works_here(tmp_path: Path) -> None:
    with DataFolder(tmp_path).hold():
        assert DataFolder(tmp_path).holder() == os.getpid()
        with pytest.raises(SetupError, match=f"in use by process {os.getpid()}"), DataFolder(tmp_path).hold():
            raise AssertionError("two instances at once")
    assert DataFolder(tmp_path).holder() is None


def test_a_killed_instance_leaves_its_folder_free(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path)
    with subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        assert folder.holder() == other.pid
        assert folder.announced() == Announcement("g", "n", None)
        other.send_signal(signal.SIGKILL)
    assert folder.holder() is None
    assert folder.announced() is None
    with folder.hold():
        assert folder.announced() is None


@pytest.mark.parametrize("before", [None, 0o755, 0o777])
def test_the_folder_is_for_its_user_only_from_now_on(tmp_path: Path, before: int | None) -> None:
    root = tmp_path / "of" / "mine"
    if before is not None:
        root.mkdir(parents=True)
        root.chmod(before)
    with DataFolder(root).hold():
        assert stat.S_IMODE(root.stat().st_mode) == 0o700
    assert keep_secret(tmp_path / "other" / "secret")
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o700


def test_a_folder_that_all_share_stays_shared(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    with DataFolder(tmp_path).hold():
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777


def test_all_who_ask_for_a_secret_at_once_get_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: keep_secret(tmp_path / "secret"), range(32)))
    assert len(found) == 1
    assert len(found.pop()) >= 32
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]
