"""Everything that needs a GPU, once: the tests marked so, then the demo on TensorRT.

    python tests/gpu.py FOLDER

Leaves in FOLDER what the tests said (gpu.xml), the recording, its page, the figure, and the
figures as JSON (demo.json). Installs nothing: TVM, TensorRT or TensorRT-RTX, and PyTorch for the
tests of tensors that TVM's wheel cannot make, must be there (pip install '.[test,tensorrt]').
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    tests = [sys.executable, "-m", "pytest", "-o", "addopts=", "-m", "gpu", "-ra", "tests/building"]
    failed = subprocess.run([*tests, f"--junitxml={folder / 'gpu.xml'}"], cwd=ROOT).returncode
    demo = [sys.executable, "-m", "byocviz", "demo", "-o", str(folder / "ssd.byocviz")]
    with (folder / "demo.json").open("w", encoding="utf-8") as file:
        failed |= subprocess.run([*demo, "--json"], cwd=ROOT, stdout=file).returncode
    shown = [sys.executable, "-m", "byocviz", "show", str(folder / "ssd.byocviz")]
    subprocess.run(shown, cwd=ROOT)
    return failed


if __name__ == "__main__":
    sys.exit(main())
