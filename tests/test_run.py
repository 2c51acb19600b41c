"""How tests/run.py finds the Python of its second environment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the Pythons here are shell scripts")


def python(path: Path, version: str, venv: bool = True) -> Path:
    """What answers the probe as a Python of that version does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{f'echo {version}' if venv else 'exit 1'}\n")
    path.chmod(0o755)
    return path


def shim(path: Path) -> Path:
    """pyenv's stand-in for a version that is not chosen."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\necho 'pyenv: not found' >&2\nexit 127\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """A machine whose own Python is another one."""
    own = python(tmp_path / "own" / "python3", "3.13")
    monkeypatch.setattr(sys, "executable", str(own))
    return {"HOME": str(tmp_path), "PATH": f"{tmp_path / 'bin'}{os.pathsep}{tmp_path / 'more'}"}


def test_the_real_one_is_a_python_of_a_version_that_is_wanted() -> None:
    found = run.relay_python(os.environ)
    if found is None:
        pytest.fail("no Python 3.10 or 3.11 is here")
    said = subprocess.run([*found, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout.startswith(tuple(f"Python {v}." for v in run.RELAY_VERSIONS))


def test_none(elsewhere: dict[str, str]) -> None:
    assert run.relay_python(elsewhere) is None


def test_its_own(elsewhere: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    own = python(Path(elsewhere["HOME"], "own", "python3.11"), "3.11")
    monkeypatch.setattr(sys, "executable", str(own))
    assert run.relay_python(elsewhere) == [str(own)]


def test_on_the_path_past_what_only_looks_like_it(
    elsewhere: dict[str, str], tmp_path: Path
) -> None:
    shim(tmp_path / "bin" / "python3.10")
    python(tmp_path / "bin" / "python3.11", "3.11", venv=False)
    real = python(tmp_path / "more" / "python3.11", "3.11")
    assert run.relay_python(elsewhere) == [str(real)]


@pytest.mark.parametrize("root", ["", "elsewhere"])
def test_of_pyenv(elsewhere: dict[str, str], tmp_path: Path, root: str) -> None:
    folder = tmp_path / (root or ".pyenv")
    environ = {**elsewhere, "PYENV_ROOT": str(folder)} if root else elsewhere
    python(folder / "versions" / "3.12.1" / "bin" / "python", "3.12")
    real = python(folder / "versions" / "3.10.13" / "bin" / "python", "3.10")
    assert run.relay_python(environ) == [str(real)]


def test_of_the_launcher(elsewhere: dict[str, str], tmp_path: Path) -> None:
    launcher = tmp_path / "bin" / "py"
    launcher.parent.mkdir()
    launcher.write_text('#!/bin/sh\n[ "$1" = -3.11 ] && echo 3.11\n')
    launcher.chmod(0o755)
    assert run.relay_python(elsewhere) == [str(launcher), "-3.11"]


def test_of_uv_fetched_where_it_has_none(elsewhere: dict[str, str], tmp_path: Path) -> None:
    real = tmp_path / "uv" / "python3.11"
    uv = tmp_path / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text(
        f"""#!/bin/sh
case "$*" in
"python install 3.11")
    mkdir -p {real.parent}; printf '#!/bin/sh\\necho 3.11\\n' > {real}; chmod +x {real} ;;
*find*3.11) [ -e {real} ] && echo {real} ;;
*) exit 2 ;;
esac
"""
    )
    uv.chmod(0o755)
    environ = {**elsewhere, "PATH": f"{elsewhere['PATH']}{os.pathsep}{os.defpath}"}
    # `os.defpath` is for the shell's own programs.
    found = list(run.relay_pythons(environ))
    assert [str(real)] in found


def test_without_one_the_command_fails_and_says_so(
    elsewhere: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(run, "RELAY", tmp_path / "absent")
    for name in ("PATH", "HOME"):
        monkeypatch.setenv(name, elsewhere[name])
    monkeypatch.delenv("PYENV_ROOT", raising=False)
    assert run.main(["--relay"]) != 0
    assert "THE RELAY TESTS DID NOT RUN" in capfd.readouterr().err


def test_what_runs_there_is_there() -> None:
    found = [name for name in run.RELAY_TESTS if list(run.ROOT.glob(name))]
    assert "tests/models/test_gluoncv*.py" in found
    assert "tests/test_doctor.py" in found
