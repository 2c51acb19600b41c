"""What a native library does to its process is not done to ours."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("tvm")
pytest.importorskip("onnx")

import onnx
from tvm import relax

from byocviz.building.cache import EngineCache
from byocviz.building.engines import build_engines
from byocviz.building.errors import BuildCancelled, BuildError, Cancel, RuntimeMissing
from byocviz.building.lower import Lowered, lower
from tests.building.lower.lab import Cases, T, build
from tests.building.runtimes.odd import Odd

linux = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc, of Linux")
posix = pytest.mark.skipif(os.name == "nt", reason="signals are POSIX's")


def subgraphs(*names: str) -> dict[str, Lowered]:
    cases = Cases()
    cases(relax.op.nn.relu, T(2, 3))
    cases(relax.op.nn.relu, T(4))
    cases(relax.op.add, T(3), T(3))
    module, _, _ = build(cases)
    return {name: lower(module["main"], name=name) for name in names or ("sub",)}


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reports and temporary files go into the test's own folder, where nothing may be left."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    yield
    assert list(temporary.glob("byocviz-*")) == []


def failure(what: str, **options: Any) -> BuildError:
    with pytest.raises(BuildError) as caught:
        build_engines(subgraphs("fine", "bad"), Odd(), {"what": {"bad": what}}, **options)
    return caught.value


def gone(*processes: int) -> bool:
    """Whether the processes end; zombies count, whoever should have waited for them."""
    for _ in range(200):
        if not any(alive(process) for process in processes):
            return True
        time.sleep(0.05)
    return False


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def eventually(path: Path) -> str:
    for _ in range(600):
        if path.exists() and (text := path.read_text()):
            return text
        time.sleep(0.05)
    raise AssertionError(f"no {path}")


def test_the_child_knows_no_tvm_and_is_one_for_all() -> None:
    given = subgraphs("a", "b")
    built = build_engines(given, Odd(), {"what": "process"})
    seen = [json.loads(one.engine) for one in built.values()]  # type: ignore[arg-type]
    assert seen[0]["pid"] == seen[1]["pid"] != os.getpid()
    for heavy in ("tvm", "tvm_ffi", "numpy", "onnx", "onnxruntime", "torch"):
        assert heavy not in seen[0]["modules"]
    assert seen[0]["calls"] == dict(given["a"].calls)
    assert seen[0]["nodes"] == {k: list(v) for k, v in given["a"].nodes.items()}
    assert not Path(seen[0]["folder"]).exists()
    assert gone(seen[0]["pid"])


def test_the_model_arrives_and_the_plan_comes_back_whole() -> None:
    for isolate in (True, False):
        given = subgraphs("a", "b")
        built = build_engines(given, Odd(), isolate=isolate)
        assert list(built) == ["a", "b"]
        for name, one in built.items():
            assert one.engine == b"plan of " + given[name].serialized()
            assert (one.bytes, one.cached) == (len(one.engine), False)
            assert one.seconds > 0


@posix
@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("aborts", "crashed (SIGABRT, 6)"),
        ("faults", "crashed (SIGSEGV, 11)"),
        ("killed", "was killed (SIGKILL, 9), as the system does where memory runs out"),
        ("exits", "ended with the status 3"),
        ("too_much", "ran out of memory"),
        ("raises", "ZeroDivisionError: of its own"),
        ("no_bytes", "TypeError: plan() gave str, not bytes"),
        ("babbles", "answered with something that is no answer"),
    ],
)
def test_a_library_that_fails(what: str, said: str) -> None:
    error = failure(what)
    for part in (said, "Odd", "subgraph bad", "relu x 2, add x 1"):
        assert part in error.message
    assert error.subgraph == "bad"
    assert error.onnx_path is not None
    assert str(error.onnx_path) in error.mend
    saved = onnx.load(str(error.onnx_path))
    onnx.checker.check_model(saved)
    assert saved.SerializeToString() == subgraphs("bad")["bad"].serialized()
    facts = error.onnx_path.with_suffix(".txt").read_text()
    assert error.message in facts
    if what == "aborts":
        assert "I have had enough" in facts
    assert error.onnx_path.parent.stat().st_mode & 0o077 == 0


def test_a_library_that_gives_nothing() -> None:
    assert "gave no engine of the subgraph bad" in failure("nothing").message


def test_a_hang_ends_at_the_limit() -> None:
    error = failure("hangs", time_limit=2.0)
    assert "took longer than the limit of 2 s" in error.message
    assert error.onnx_path is not None


@linux
def test_memory_without_end_ends_at_the_limit() -> None:
    error = failure("eats", memory_limit=400 << 20, time_limit=120.0)
    assert "took more memory than the limit of 419,430,400 bytes" in error.message


@pytest.mark.parametrize("isolate", [True, False])
def test_an_ordinary_refusal_is_the_same_error(isolate: bool) -> None:
    error = failure("refuses", isolate=isolate)
    assert (error.message, error.mend, error.subgraph) == ("It refuses.", "Do without.", "bad")
    assert error.onnx_path is None
    with pytest.raises(RuntimeMissing, match="It is missing"):
        build_engines(subgraphs(), Odd(), {"what": "is_missing"}, isolate=isolate)


def test_without_isolation_an_exception_is_an_error_with_a_report() -> None:
    error = failure("raises", isolate=False)
    assert "ZeroDivisionError: of its own" in error.message
    assert error.onnx_path is not None
    assert error.onnx_path.exists()


def test_what_it_prints_disturbs_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    built = build_engines(subgraphs("a", "b"), Odd(), {"what": "prints"})
    assert [one.engine for one in built.values()] == [b"quiet", b"quiet"]
    assert capfd.readouterr() == ("", "")


@linux
@pytest.mark.parametrize("what", ["hangs", "waits"])
def test_cancelling_from_another_thread_ends_it_and_what_it_started(
    what: str, tmp_path: Path
) -> None:
    file, cancel = tmp_path / "running", Cancel()
    cache = EngineCache(tmp_path / "engines")
    failed: list[BaseException] = []

    def work() -> None:
        try:
            build_engines(
                subgraphs("fine", "bad"),
                Odd(),
                {"what": {"bad": what}, "file": str(file)},
                cache=cache,
                cancel=cancel,
            )
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    first, second, folder = eventually(file).split()
    assert not cancel.cancelled
    cancel.cancel()
    cancel.cancel()
    assert gone(int(first), int(second))
    thread.join(30)
    assert [type(error) for error in failed] == [BuildCancelled]
    assert not Path(folder).exists()
    assert [path.suffix for path in (tmp_path / "engines").iterdir()] == [".engine"]


@pytest.mark.parametrize("isolate", [True, False])
def test_what_was_cancelled_before_does_not_start(isolate: bool) -> None:
    cancel = Cancel()
    cancel.cancel()
    told: list[Any] = []
    with pytest.raises(BuildCancelled) as caught:
        build_engines(
            subgraphs(), Odd(), isolate=isolate, cancel=cancel, tell=lambda *t: told.append(t)
        )
    assert caught.value.mend
    assert told == []


def test_cancelling_between_two_engines() -> None:
    for isolate in (True, False):
        cancel = Cancel()

        def tell(text: str, done: int, total: int, cancel: Cancel = cancel) -> None:
            if done == 1:
                cancel.cancel()

        with pytest.raises(BuildCancelled):
            build_engines(subgraphs("a", "b"), Odd(), isolate=isolate, cancel=cancel, tell=tell)


SCRIPT = """
import sys
from byocviz.building.engines import build_engines
from tests.building.runtimes.odd import Odd
from tests.building.test_isolate import subgraphs
try:
    build_engines(subgraphs(), Odd(), {"what": sys.argv[1], "file": sys.argv[2]})
except KeyboardInterrupt:
    print("interrupted")
"""


@linux
@pytest.mark.parametrize("ends", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("what", ["hangs", "waits"])
def test_an_interrupt_or_the_end_of_the_parent_ends_it(
    ends: signal.Signals, what: str, tmp_path: Path
) -> None:
    file = tmp_path / "running"
    parent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, what, str(file)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        text=True,
    )
    first, second, folder = eventually(file).split()
    parent.send_signal(ends)
    said, _ = parent.communicate(timeout=60)
    assert gone(int(first))
    if ends == signal.SIGINT:
        assert said == "interrupted\n"
        assert not Path(folder).exists()
    else:
        # Nobody could tidy up: the next build does, a day later.
        for process in (int(first), int(second)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        build_engines(subgraphs(), Odd())
        assert Path(folder).exists()
        os.utime(folder, (0, 0))
        build_engines(subgraphs(), Odd())
        assert not Path(folder).exists()
    assert gone(int(first), int(second))


def test_a_runtime_that_another_process_cannot_import() -> None:
    class Local(Odd):
        pass

    with pytest.raises(BuildError, match="isolate=False"):
        build_engines(subgraphs(), Local())
    assert build_engines(subgraphs(), Local(), isolate=False)["sub"].bytes


def test_options_must_be_plain() -> None:
    with pytest.raises(RuntimeMissing, match="isolate=False"):
        build_engines(subgraphs(), Odd(), {"what": {"sub": object()}})


def test_a_program_without_an_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(BuildError, match="isolate=False"):
        build_engines(subgraphs(), Odd())
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(BuildError, match="does not start"):
        build_engines(subgraphs(), Odd())
