"""NVIDIA's driver, asked directly: needs no package.

The context is the device's primary one, which CUDA's runtime, TVM, PyTorch and TensorRT share.
Functions and numbers are those of the CUDA Driver API reference.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from byocviz.building.errors import EngineError

_LIBRARY = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_MAJOR, _MINOR = 75, 76
"""Device attributes: the compute capability."""
_NON_BLOCKING = 1
"""A stream that does not wait for the default one."""


@dataclass(frozen=True)
class Gpu:
    """What an engine depends on."""

    name: str
    capability: tuple[int, int]
    driver: str
    """The newest CUDA that the driver speaks, and its own version where the system tells it."""

    @property
    def sm(self) -> str:
        """The compute capability as ``SM89``."""
        return f"SM{self.capability[0]}{self.capability[1]}"

    def __str__(self) -> str:
        return f"{self.name}, {self.sm}, driver {self.driver}"


def _driver() -> Any:
    return ctypes.CDLL(_LIBRARY)


@lru_cache(maxsize=1)
def missing_gpu() -> str | None:
    """Why no NVIDIA GPU can be used here; None: one can."""
    try:
        driver = _driver()
    except OSError:
        return f"No NVIDIA driver is installed ({_LIBRARY} is not found)."
    if driver.cuInit(0) != 0:
        return "NVIDIA's driver is installed and finds no GPU that it can use."
    count = ctypes.c_int(0)
    if driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return "NVIDIA's driver is installed and there is no GPU."
    return None


@lru_cache(maxsize=8)
def gpu(index: int = 0) -> Gpu | None:
    """The GPU of that number, as CUDA counts them; None where there is none."""
    if missing_gpu() is not None:
        return None
    driver = _driver()
    handle = ctypes.c_int(0)
    if driver.cuDeviceGet(ctypes.byref(handle), index) != 0:
        return None
    name = ctypes.create_string_buffer(256)
    driver.cuDeviceGetName(name, len(name), handle)
    found = []
    for attribute in (_MAJOR, _MINOR):
        value = ctypes.c_int(0)
        driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle)
        found.append(value.value)
    speaks = ctypes.c_int(0)
    driver.cuDriverGetVersion(ctypes.byref(speaks))
    cuda = f"CUDA {speaks.value // 1000}.{speaks.value % 1000 // 10}"
    return Gpu(
        name.value.decode(errors="replace"), (found[0], found[1]), f"{cuda} {_release()}".strip()
    )


def _release() -> str:
    """The driver's own version, which Linux tells without NVIDIA's management library."""
    try:
        return Path("/sys/module/nvidia/version").read_text().strip()[:40]
    except OSError:
        return ""


class Memory:
    """Memory on the GPU that is kept until the object goes. ``address`` is the device's."""

    def __init__(self, device: Device, size: int) -> None:
        pointer = ctypes.c_uint64(0)
        with device.current():
            # The driver refuses to allocate nothing.
            device.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        self.address, self.size = int(pointer.value), size
        weakref.finalize(self, device.free, self.address)


class Device:
    """One GPU: memory, copies and a stream, for tensors that lie in the host's memory."""

    def __init__(self, index: int = 0) -> None:
        self.index = index
        self._driver = _driver()
        self._handle = ctypes.c_int(0)
        self._context = ctypes.c_void_p(0)
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(self._handle), index)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), self._handle)
        stream = ctypes.c_void_p(0)
        with self.current():
            self.call("cuStreamCreate", ctypes.byref(stream), _NON_BLOCKING)
        self.stream = int(stream.value or 0)

    def call(self, function: str, *arguments: Any) -> None:
        """One call of the driver. Raises `EngineError` with what the driver says."""
        status = int(getattr(self._driver, function)(*arguments))
        if status == 0:
            return
        text = ctypes.c_char_p()
        self._driver.cuGetErrorString(status, ctypes.byref(text))
        said = (text.value or b"no description").decode(errors="replace")
        raise EngineError(
            f"NVIDIA's driver refuses {function.partition('_')[0]}: {said} ({status}).",
            "Free memory on the GPU if that is what it says; after another error the GPU can only "
            "be used again in a new process.",
        )

    @contextmanager
    def current(self) -> Iterator[None]:
        """The primary context, current in this thread; what was so before comes back."""
        self.call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p(0)))

    def free(self, address: int) -> None:
        """Gives memory back; what the driver says at the process's end does not matter."""
        self._driver.cuCtxPushCurrent_v2(self._context)
        self._driver.cuMemFree_v2(ctypes.c_uint64(address))
        self._driver.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p(0)))

    def to_gpu(self, address: int, host: int, size: int, stream: int) -> None:
        """Copies ``size`` bytes in order with what is on the stream."""
        if size == 0:
            return
        self.call(
            "cuMemcpyHtoDAsync_v2",
            ctypes.c_uint64(address),
            ctypes.c_void_p(host),
            ctypes.c_size_t(size),
            ctypes.c_void_p(stream),
        )

    def to_host(self, host: int, address: int, size: int, stream: int) -> None:
        """Copies ``size`` bytes in order with what is on the stream; `wait` before reading."""
        if size == 0:
            return
        self.call(
            "cuMemcpyDtoHAsync_v2",
            ctypes.c_void_p(host),
            ctypes.c_uint64(address),
            ctypes.c_size_t(size),
            ctypes.c_void_p(stream),
        )

    def within(self, address: int, source: int, size: int, stream: int) -> None:
        """Copies ``size`` bytes on the GPU, in order with what is on the stream."""
        if size == 0:
            return
        self.call(
            "cuMemcpyDtoDAsync_v2",
            ctypes.c_uint64(address),
            ctypes.c_uint64(source),
            ctypes.c_size_t(size),
            ctypes.c_void_p(stream),
        )

    def wait(self, stream: int) -> None:
        """Until all that was put on the stream is done."""
        self.call("cuStreamSynchronize", ctypes.c_void_p(stream))


_devices: dict[int, Device] = {}
_lock = threading.Lock()


def device(index: int = 0) -> Device:
    """The GPU of that number, opened once. Raises `EngineError` where it is not there."""
    with _lock:
        if index not in _devices:
            reason = missing_gpu()
            if reason is not None:
                raise EngineError(reason, "Take the runtime onnxruntime, which needs no GPU.")
            _devices[index] = Device(index)
        return _devices[index]
