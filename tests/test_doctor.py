"""What `byocviz doctor` says, with the TVM that is here. Runs in both environments."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from byocviz import doctor
from byocviz.building import runtimes

HAS_RELAY = (
    importlib.util.find_spec("tvm") is not None
    and importlib.util.find_spec("tvm.relay") is not None
)
ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def found() -> dict[str, doctor.Finding]:
    findings = doctor.examine()
    assert len({f.name for f in findings}) == len(findings)
    return {f.name: f for f in findings}


def test_the_tvm_that_is_here_and_the_command_for_the_other(
    found: dict[str, doctor.Finding],
) -> None:
    import tvm

    assert found["tvm"].value.startswith(tvm.__version__)
    has, other = ("Relay", "Relax") if HAS_RELAY else ("Relax", "Relay")
    assert found[f"records {has}"].state == "ok"
    assert found[f"records {other}"].state == "absent"
    assert "-m venv" in found[f"records {other}"].mend
    assert f"[{other.lower()}" in found[f"records {other}"].mend
    package = "xtc-tvm-python-bindings" if HAS_RELAY else "apache-tvm"
    assert f"from {package}" in found["tvm"].value
    assert "llvm" in found["tvm targets"].value
    assert found["tvm's TensorRT table"].state == "ok"


def test_what_is_absent_has_a_mend(found: dict[str, doctor.Finding]) -> None:
    for one in found.values():
        assert one.state in ("ok", "absent"), one
        assert one.state == "ok" or one.mend or one.name.startswith("GPU"), one


def test_no_command_brings_the_other_tvm_into_this_environment(
    found: dict[str, doctor.Finding],
) -> None:
    other = "[relax" if HAS_RELAY else "[relay"
    for one in found.values():
        if other in one.mend:
            assert "-m venv" in one.mend, one


def test_runtimes_are_said_as_they_are(found: dict[str, doctor.Finding]) -> None:
    for name in runtimes.names():
        runtime = runtimes.get(name)
        one = found[f"builds for {runtime.title}"]
        assert (one.state == "ok") == (runtime.supports(running=False) is None)
        if runtime.supports() is None:
            assert f"runtime={name!r}" in one.value
    assert not any("does not do yet" in one.value for one in found.values())


def test_two_distributions_of_one_package_are_broken() -> None:
    (one,) = doctor._conflict(["apache-tvm", "xtc-tvm-python-bindings"])
    assert one.state == "broken"
    assert "apache-tvm" in one.value
    assert "[relax]" in one.mend
    assert "[relay" in one.mend
    assert doctor._conflict(["apache-tvm"]) == doctor._conflict([]) == []
    assert "built from source" in doctor._origin([])


def test_two_distributions_are_found_where_they_are(tmp_path: Path) -> None:
    # Distributions are their metadata: what installing both would leave behind.
    for name in ("apache-tvm", "xtc-tvm-python-bindings"):
        folder = tmp_path / f"{name.replace('-', '_')}-1.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (folder / "top_level.txt").write_text("tvm\n")
    script = f"""
import sys
sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]
from byocviz.doctor import examine
print([f.value for f in examine() if f.state == "broken"])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "apache-tvm" in done.stdout
    assert "xtc-tvm-python-bindings" in done.stdout


@pytest.mark.parametrize("content", ["raise OSError('libLLVM.so: cannot open')", "1 +"])
def test_a_tvm_that_does_not_import_is_broken_not_fatal(tmp_path: Path, content: str) -> None:
    (tmp_path / "tvm").mkdir()
    (tmp_path / "tvm" / "__init__.py").write_text(content)
    script = f"""
import sys
sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]
from byocviz.cli import main
sys.exit(main(["doctor"]))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert "broken  tvm" in done.stdout
    assert "venv" in done.stdout


def test_without_any_tvm(tmp_path: Path) -> None:
    script = f"""
import sys
sys.path = [p for p in sys.path if "site-packages" not in p] + [{str(ROOT)!r}, {str(tmp_path)!r}]
from byocviz.doctor import examine
print({{f.name: f.mend for f in examine() if f.state == "absent"}}["tvm"])
"""
    import msgspec

    (tmp_path / "msgspec").symlink_to(Path(msgspec.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "Relax: python3 -m venv" in done.stdout
    assert "Relay: python3.11 -m venv" in done.stdout
