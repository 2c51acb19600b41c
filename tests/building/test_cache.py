"""The engine cache trusts nothing that it did not write itself, and never stops a build."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnx")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from byocviz.building import cache as module
from byocviz.building.cache import EngineCache
from byocviz.building.engines import build_engines
from byocviz.building.errors import CacheWarning
from tests.building.runtimes.odd import Odd
from tests.building.test_isolate import subgraphs

posix = pytest.mark.skipif(os.name == "nt", reason="owners and modes are POSIX's")

KEY = EngineCache("unused").key("odd", b"model", {}, {})
DATA = bytes(range(256)) * 9


@pytest.fixture
def cache(tmp_path: Path) -> EngineCache:
    return EngineCache(tmp_path / "deep" / "engines")


def entry(cache: EngineCache) -> Path:
    (found,) = cache.folder.glob("*.engine")
    return found


def test_what_is_put_in_comes_out_and_nothing_else(cache: EngineCache) -> None:
    assert cache.get(KEY) is None
    assert not cache.folder.exists()
    assert cache.put(KEY, DATA) is None
    assert cache.get(KEY) == DATA
    assert EngineCache(cache.folder).get(KEY) == DATA
    assert cache.get(cache.key("odd", b"other", {}, {})) is None
    assert cache.size() > len(DATA)
    assert [path.suffix for path in cache.folder.iterdir()] == [".engine"]
    cache.clear()
    assert cache.get(KEY) is None


def test_a_key_depends_on_everything() -> None:
    cache = EngineCache("unused")
    base: list[Any] = ["tensorrt", b"model", {"fp16": True, "x": (1, 2)}, {"gpu": "A", "v": "1"}]
    changed: list[tuple[int, Any]] = [
        (0, "tensorrt-rtx"),
        (1, b"model "),
        (2, {"fp16": False, "x": (1, 2)}),
        (2, {"fp16": True, "x": (1, 3)}),
        (3, {"gpu": "B", "v": "1"}),
        (3, {"gpu": "A", "v": "2"}),
        (3, {"gpu": "A"}),
    ]
    keys = {cache.key(*base), cache.timing_key(base[0], base[3])}
    for place, value in changed:
        keys.add(cache.key(*[value if i == place else one for i, one in enumerate(base)]))
    assert len(keys) == len(changed) + 2
    other = {"x": [1, 2], "fp16": True}
    assert cache.key(base[0], base[1], other, {"v": "1", "gpu": "A"}) == cache.key(*base)


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_damaged_entry_is_never_used(data: st.DataObject, tmp_path: Path) -> None:
    """Bytes changed, cut off or added anywhere."""
    cache = EngineCache(tmp_path / "engines")
    cache.put(KEY, DATA)
    whole = entry(cache).read_bytes()
    kind = data.draw(st.sampled_from(["flip", "cut", "add", "other"]))
    at = data.draw(st.integers(0, len(whole) - 1))
    if kind == "flip":
        mask = data.draw(st.integers(1, 255))
        broken = whole[:at] + bytes([whole[at] ^ mask]) + whole[at + 1 :]
    elif kind == "cut":
        broken = whole[:at]
    elif kind == "add":
        broken = whole[:at] + data.draw(st.binary(min_size=1, max_size=9)) + whole[at:]
    else:
        broken = data.draw(st.binary(max_size=200))
    entry(cache).write_bytes(broken)
    if broken != whole:
        assert cache.get(KEY) is None
        assert list(cache.folder.glob("*.engine")) == []  # it makes room


def test_an_entry_under_another_name_or_of_another_format_is_not_used(
    cache: EngineCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put(KEY, DATA)
    other = cache.key("odd", b"other", {}, {})
    entry(cache).rename(cache.folder / f"{other}.engine")
    assert cache.get(other) is None
    cache.put(KEY, DATA)
    monkeypatch.setattr(module, "FORMAT", module.FORMAT + 1)
    assert cache.key("odd", b"model", {}, {}) != KEY
    assert cache.get(KEY) is None


@posix
def test_the_folder_is_the_users_own(
    cache: EngineCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.put(KEY, DATA)
    assert cache.folder.stat().st_mode & 0o777 == 0o700
    cache.folder.chmod(0o770)
    assert cache.get(KEY) is None
    with pytest.warns(CacheWarning, match="chmod 700"):
        assert cache.put(KEY, DATA)
    cache.folder.chmod(0o700)
    assert cache.get(KEY) == DATA
    with monkeypatch.context() as patch:
        patch.setattr(os, "getuid", lambda: 123456)
        assert cache.get(KEY) is None
        with pytest.warns(CacheWarning, match="another user"):
            cache.put(KEY, DATA)
    linked = cache.folder / f"{cache.key('odd', b'x', {}, {})}.engine"
    linked.symlink_to(entry(cache))
    assert cache.get(linked.stem) is None


@posix
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_what_is_no_file_under_the_name_of_an_entry(cache: EngineCache, kind: str) -> None:
    """A pipe that nobody writes to would be waited for without end: by another process here, which
    can be ended."""
    cache.put(KEY, DATA)
    path = entry(cache)
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    code = (
        "import sys\nfrom byocviz.building.cache import EngineCache\n"
        "print(EngineCache(sys.argv[1]).get(sys.argv[2]))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(cache.folder), KEY],
                          capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
    assert done.stdout == "None\n", done.stderr
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(9):
        assert cache.get(KEY) is None
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("name", ["n" * 300, "a\0b"])
def test_a_folder_that_cannot_be(tmp_path: Path, name: str) -> None:
    cache = EngineCache(f"{tmp_path}/{name}/engines")
    assert cache.get(KEY) is None
    with pytest.warns(CacheWarning, match="cannot be used"):
        assert cache.put(KEY, DATA)
    assert cache.size() == 0
    cache.clear()


def test_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert EngineCache().folder == tmp_path / "byocviz" / "engines"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if os.name != "nt":
        assert EngineCache().folder == tmp_path / "home" / ".cache" / "byocviz" / "engines"


def test_the_ones_used_longest_ago_make_room(tmp_path: Path) -> None:
    cache = EngineCache(tmp_path, limit=4 * (len(DATA) + 200))
    keys = [cache.key("odd", bytes([i]), {}, {}) for i in range(6)]
    for age, key in enumerate(keys[:4]):
        cache.put(key, DATA)
        os.utime(tmp_path / f"{key}.engine", (1e9 + age, 1e9 + age))
    assert cache.get(keys[0]) == DATA  # used now
    cache.put(keys[4], DATA)
    cache.put(keys[5], DATA)
    assert cache.size() <= cache.limit
    assert [key for key in keys if cache.get(key)] == [keys[0], *keys[3:]]
    with pytest.warns(CacheWarning, match="limit"):
        assert cache.put(KEY, DATA * 5)
    assert cache.size() > 0


def test_what_a_killed_process_left_half_written_goes(cache: EngineCache) -> None:
    cache.put(KEY, DATA)
    left = [cache.folder / f".byocviz-{name}.tmp" for name in ("old", "new")]
    for path in left:
        path.write_bytes(b"half")
    os.utime(left[0], (1e9, 1e9))
    cache.put(KEY, DATA)
    assert [path.exists() for path in left] == [False, True]


FULL = """
import resource, sys, warnings
from byocviz.building.cache import EngineCache
from byocviz.building.engines import build_engines
from tests.building.runtimes.odd import Odd
from tests.building.test_isolate import subgraphs
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    given = subgraphs("a", "b")
    built = build_engines(given, Odd(), isolate=False, cache=EngineCache(sys.argv[1]))
assert [one.engine for one in built.values()] == [b"plan of " + g.serialized()
                                                  for g in given.values()]
print([str(w.message) for w in caught if w.category.__name__ == "CacheWarning"])
"""


@posix
def test_a_disk_that_takes_no_more_does_not_stop_the_build(tmp_path: Path) -> None:
    """Here: a process that may write no more than 100 bytes to a file."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "engines")],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "cannot be written" in done.stdout
    assert done.stdout.count("The engine was not kept") == 1  # two engines, one cause
    assert list((tmp_path / "engines").iterdir()) == []


def test_a_build_takes_what_an_earlier_one_left(cache: EngineCache) -> None:
    first = build_engines(subgraphs("a", "b"), Odd(), {"what": "builds"}, cache=cache)
    assert [one.cached for one in first.values()] == [False, False]
    # Nothing is built: this would end the process.
    again = build_engines(subgraphs("a", "b"), Odd(), {"what": "builds"}, cache=cache)
    assert [one.cached for one in again.values()] == [True, True]
    assert [one.engine for one in again.values()] == [one.engine for one in first.values()]
    assert [one.bytes for one in again.values()] == [one.bytes for one in first.values()]


def test_a_damaged_entry_is_built_anew(cache: EngineCache) -> None:
    (first,) = build_engines(subgraphs(), Odd(), cache=cache).values()
    whole = entry(cache).read_bytes()
    entry(cache).write_bytes(whole[:-1] + b"!")
    (again,) = build_engines(subgraphs(), Odd(), cache=cache).values()
    assert (again.engine, again.cached) == (first.engine, False)
    assert entry(cache).read_bytes() == whole


def test_other_options_build_anew(cache: EngineCache) -> None:
    build_engines(subgraphs(), Odd(), {"file": "x"}, cache=cache)
    (again,) = build_engines(subgraphs(), Odd(), {"file": "y"}, cache=cache).values()
    assert not again.cached


@pytest.mark.parametrize("isolate", [True, False])
def test_the_times_of_kernels_are_handed_on(cache: EngineCache, isolate: bool) -> None:
    """From engine to engine, and to the next build."""
    options = {"what": "times"}
    first = build_engines(subgraphs("a", "b"), Odd(), options, isolate=isolate, cache=cache)
    assert [one.engine for one in first.values()] == [b"+a", b"+a+b"]
    (later,) = build_engines(subgraphs("c"), Odd(), options, isolate=isolate, cache=cache).values()
    assert later.engine == b"+a+b+c"
    without = build_engines(subgraphs("a", "b"), Odd(), options, isolate=isolate)
    assert [one.engine for one in without.values()] == [b"+a", b"+a+b"]


def test_two_processes_may_share_it(tmp_path: Path) -> None:
    """Each writes and reads the same entries; whatever is read is whole."""
    script = (
        "import sys; from byocviz.building.cache import EngineCache\n"
        "cache = EngineCache(sys.argv[1], limit=300_000)\n"
        "keys = [cache.key('odd', bytes([i]), {}, {}) for i in range(5)]\n"
        "for n in range(40):\n"
        "    i = n % 5\n"
        "    cache.put(keys[i], bytes([i]) * 50_000)\n"
        "    assert cache.get(keys[(n + 2) % 5]) in (None, bytes([(n + 2) % 5]) * 50_000)\n"
    )
    running = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", script, str(tmp_path / "engines")])
        for _ in range(2)
    ]
    assert [process.wait() for process in running] == [0, 0]


def test_nothing_warns_in_the_ordinary_case(cache: EngineCache) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build_engines(subgraphs("a", "b"), Odd(), cache=cache)
