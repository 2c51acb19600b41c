"""A real JupyterLab (or Notebook 7) with a notebook of the test's own, in a real Chromium."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import nbformat

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"


def take(name: str, folder: Path) -> Path:
    """One of the project's own notebooks, copied into a folder."""
    return Path(shutil.copy(NOTEBOOKS / f"{name}.ipynb", folder))


def cells_with(path: Path, *words: str) -> list[int]:
    """The numbers of a notebook's cells of code that hold one of these, in order."""
    cells = nbformat.read(path, as_version=4).cells
    return [
        number
        for number, cell in enumerate(cells)
        if cell.cell_type == "code" and any(word in cell.source for word in words)
    ]


def write_notebook(path: Path, *cells: str) -> Path:
    """A notebook of code cells."""
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in cells]
    notebook.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(notebook, path)
    return path


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def serving(folder: Path, app: str = "lab") -> Iterator[str]:
    """Jupyter's server for a folder; gives its address. ``app`` is ``lab`` or ``notebook``."""
    port = _free_port()
    home = folder / ".home"
    for part in ("config", "data", "runtime", "settings"):
        (home / part).mkdir(parents=True, exist_ok=True)
    news = home / "settings" / "@jupyterlab" / "apputils-extension"
    news.mkdir(parents=True)
    (news / "notification.jupyterlab-settings").write_text(
        '{"fetchNews": "false", "checkForUpdates": false}'
    )
    book = home / "settings" / "@jupyterlab" / "notebook-extension"
    book.mkdir(parents=True)
    # Every cell is in the page, in view or not.
    (book / "tracker.jupyterlab-settings").write_text('{"windowingMode": "none"}')
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(
            filter(None, [str(NOTEBOOKS.parent), os.environ.get("PYTHONPATH")])
        ),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_RUNTIME_DIR": str(home / "runtime"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
    }
    log = open(folder / "server.log", "wb")  # noqa: SIM115
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "jupyterlab" if app == "lab" else app,
            "--no-browser",
            f"--ServerApp.port={port}",
            "--ServerApp.port_retries=0",
            "--IdentityProvider.token=",
            "--ServerApp.password=",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.root_dir={folder}",
            "--ServerApp.allow_root=True",
            "--ServerApp.disable_check_xsrf=True",
            "--LabApp.extension_manager=readonly",
        ],
        cwd=folder,
        env=environment,
        stdout=log,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + 120
        while True:
            try:
                with urllib.request.urlopen(f"{address}/api/status", timeout=5):
                    break
            except OSError:
                assert process.poll() is None, (folder / "server.log").read_text()[-3000:]
                assert time.monotonic() < end, (folder / "server.log").read_text()[-3000:]
                time.sleep(0.3)
        yield address
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
        log.close()


class Desk:
    """A page of Jupyter with one notebook."""

    def __init__(self, page: Any, address: str, app: str = "lab") -> None:
        self.page, self.address, self.app = page, address, app
        page.set_default_timeout(90_000)  # the machine may be busy with other tests
        self.errors: list[str] = []
        page.on("pageerror", self._error)
        self.console: list[str] = []
        page.on("console", lambda message: self.console.append(f"{message.type}: {message.text}"))

    def _error(self, error: Any) -> None:
        """Jupyter's own scripts have errors too; ours come from the frame or from the widget."""
        stack = str(getattr(error, "stack", "") or "")
        if "srcdoc" in stack or "blob:" in stack:
            self.errors.append(f"{error}\n{stack}")

    def open(self, name: str) -> Desk:
        way = f"/lab/tree/{name}?reset" if self.app == "lab" else f"/notebooks/{name}"
        self.page.goto(self.address + way)
        self.page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=90_000)
        self.page.wait_for_timeout(1000)
        return self

    def run(self, cells: Iterable[int]) -> None:
        """Run these cells, by number, one after the other."""
        for number in cells:
            cell = self.page.locator(".jp-Notebook .jp-Cell").nth(number)
            end = time.monotonic() + 120
            # A key that comes before the kernel is there is lost.
            while not re.search(r"\d", text := self._prompt(cell)):
                assert time.monotonic() < end, f"cell {number} does not run: {text}"
                if "*" not in text:
                    cell.locator(".cm-content").first.click()
                    self.page.keyboard.press("Shift+Enter")
                self.page.wait_for_timeout(700)

    def again(self, number: int) -> None:
        """Run a cell that ran before."""
        cell = self.page.locator(".jp-Notebook .jp-Cell").nth(number)
        cell.locator(".cm-content").first.click()
        self.page.keyboard.press("Shift+Enter")

    def restart_kernel(self) -> None:
        """By the menu."""
        self.page.locator(".lm-MenuBar-itemLabel", has_text="Kernel").first.click()
        self.page.locator(".lm-Menu-itemLabel", has_text="Restart Kernel…").first.click()
        self.page.locator(".jp-Dialog button.jp-mod-accept").click()

    def _prompt(self, cell: Any) -> str:
        """``[ ]:``, ``[*]:`` or ``[1]:``; it may go back from the second to the first."""
        return str(cell.locator(".jp-InputPrompt").first.inner_text())

    @property
    def frame(self) -> Any:
        """The viewer's frame."""
        return self.page.frame_locator("iframe[title=byocviz]").first

    def child(self) -> Any:
        """The viewer's frame as a thing that evaluates scripts."""
        handle = self.page.wait_for_selector("iframe[title=byocviz]", timeout=90_000)
        return handle.content_frame()

    def until(self, script: str, arg: Any = None, timeout: float = 60, frame: bool = True) -> None:
        end = time.monotonic() + timeout
        said: Any = None
        while True:
            with contextlib.suppress(Exception):
                where = self.child() if frame else self.page
                said = where.evaluate(script, arg)
                if said:
                    return
            if time.monotonic() > end:
                self.shot(Path(tempfile.gettempdir()) / "byocviz-lab-failed.png")
                raise AssertionError(f"still not: {script} ({arg}): {said}; {self.console[-5:]}")
            self.page.wait_for_timeout(50)

    def at(self, step: str, timeout: float = 60) -> None:
        """Wait until a step is drawn."""
        self.until(
            "name => { const now = document.querySelector('.step[aria-current=step]');"
            " return now && now.querySelector('.step-name').textContent === name"
            " && !now.textContent.includes('not run yet')"
            " && document.documentElement.dataset.drawn !== undefined"
            " && document.querySelectorAll('.pane-after .node').length > 0 }",
            step,
            timeout,
        )

    def button(self, text: str) -> Any:
        return self.page.locator("button.jupyter-button", has_text=text)

    def choose(self, label: str, value: str) -> None:
        """A value of a dropdown."""
        where = f".widget-dropdown:has(label:text-is('{label}')) select"
        self.page.locator(where).select_option(value)

    def tab(self, text: str) -> None:
        self.page.locator(".widget-tab .lm-TabBar-tab", has_text=text).first.click()

    def save(self) -> None:
        self.page.locator(
            "[data-command='docmanager:save'], [data-jp-item-name=save]"
        ).first.click()
        self.page.wait_for_timeout(2000)

    def shot(self, path: str | Path) -> None:
        self.page.screenshot(path=str(path))


def outputs(path: Path) -> list[dict[str, Any]]:
    """All outputs of a saved notebook."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return [out for cell in notebook["cells"] for out in cell.get("outputs", [])]
