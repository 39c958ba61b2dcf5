"""The shared library of the Go code, by ctypes.

The library is loaded when a process first needs it. A Go runtime does not live on in
a forked child, so that a child that was forked later loads a copy, as a library of
its own. What its parent had built there stays the parent's.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import re
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


class Error(ValueError):
    """What the Go code refuses, in its words."""


def extra(module: str) -> Any:
    """Return a module that comes with ``ephemera[results]``."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as e:
        raise ModuleNotFoundError(f"{e}; pip install 'ephemera[results]' brings it", name=e.name) from None


_int = ctypes.c_int64
_pointer = ctypes.c_void_p
_signatures: dict[str, list[Any]] = {
    "eph_call": [_int, ctypes.c_char_p, ctypes.c_char_p, _pointer, _int],
    "eph_step": [_int, _pointer, _pointer, ctypes.c_int32],
}

_loaded: ctypes.CDLL | None = None
_file: Path | None = None  # from which it was loaded, in this process or in one that forked it
_copied = False  # this process was forked after the library had been loaded
process = object()  # another one in each process


def _after_fork() -> None:
    global _loaded, _copied, process
    _copied = _copied or _loaded is not None
    _loaded, process = None, object()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _load(path: Path) -> ctypes.CDLL:
    """Load the library; after a fork a copy of it, which the loader takes for another one."""
    if not _copied:
        return ctypes.CDLL(str(path))
    with tempfile.NamedTemporaryFile(prefix="ephemera", suffix=path.suffix) as copy:
        copy.write(path.read_bytes())
        copy.flush()
        return ctypes.CDLL(copy.name)


def _find() -> Path:
    """Return the file of the library: the one that EPHEMERA_LIBRARY names, or that of the package."""
    own = os.environ.get("EPHEMERA_LIBRARY")  # with what another Go program registers
    if not own:
        suffix = {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")
        return Path(__file__).with_name("_native") / f"libephemera{suffix}"
    # The loader searches its own directories for a name without a directory.
    path = Path(own).absolute()
    if not path.is_file():
        raise FileNotFoundError(f"EPHEMERA_LIBRARY is {own!r}, and there is no file {path}")
    return path


def file() -> Path:
    """Return the file from which the library is loaded."""
    global _file
    _file = _file or _find()
    return _file


def library() -> ctypes.CDLL:
    """Return the library, loaded."""
    global _loaded
    if _loaded is None:
        lib = _load(file())
        for name, arguments in _signatures.items():
            function = getattr(lib, name)
            function.argtypes = [*arguments, _pointer]
            function.restype = ctypes.c_int32
        lib.eph_free.argtypes = [_pointer]
        lib.eph_free.restype = None
        _loaded = lib
    return _loaded


def take(answer: ctypes.c_void_p) -> str:
    """Return the text that an answer points to, and free it."""
    if not answer.value:
        return ""
    raw: bytes = ctypes.string_at(answer.value)
    library().eph_free(answer)
    answer.value = None
    return raw.decode()


def error(text: str) -> Error:
    """Return what the library says is wrong as an exception.

    A panic, which is a mistake of the Go code and not of its caller, has Go's stack as a note. The file in which an
    instance of Python is handed over is no part of it, and settings have the names of Python's keywords.
    """
    begins = re.search(r"\n(?=goroutine \d|\S+ at \S+:\d+(\n|$))", text)
    words, stack = (text[: begins.start()], text[begins.start() :]) if begins else (text, "")
    words = re.sub(r"\S*[0-9a-f]{64}\.toml(:\d+)*: ", "", words)
    words = re.sub(r"\bworld\.(marks|trace|epoch|decay|split)\b", r"\1", words)
    e = Error(words)
    if begins:
        e.add_note(f"This is a mistake in the Go code. Its stack:{stack.rstrip()}")
    return e


def call(name: str, *arguments: Any) -> str:
    """Call a function of the library; its answer, or its error as an exception."""
    answer = ctypes.c_void_p()
    failed = getattr(library(), name)(*arguments, ctypes.byref(answer))
    text = take(answer)
    if failed:
        raise error(text)
    return text


def _plain(value: Any) -> Any:
    """Return what JSON can hold of a NumPy number."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a setting is {value!r}; needed is a number, a text or true or false")


Numbers = NDArray[np.float64]
_none: Numbers = np.empty(0)


def ask(handle: int, what: str, *arguments: Any, numbers: Numbers = _none) -> Any:
    """Call a function of a handle, or with handle 0 one that stands for itself; it may write over the numbers.

    Return its answer, of what was built a handle.
    """
    try:
        text = json.dumps(arguments, allow_nan=False, default=_plain).encode()
    except ValueError as e:
        raise Error("a number is NaN or infinite; needed are finite numbers") from e
    answer = call("eph_call", handle, what.encode(), text, numbers.ctypes.data, len(numbers))
    return json.loads(answer) if answer else None


class Handle:
    """What lives in the Go code, and is freed there with this object. One thread at a time uses it."""

    _kind: str
    _handle = 0
    _lock: threading.RLock
    _process: object

    def __new__(cls, *args: Any, **keywords: Any) -> Self:
        """Give it a lock, which a signal handler may pass to close it."""
        self = super().__new__(cls)
        self._lock = threading.RLock()
        self._process = process
        return self

    def _turn(self) -> threading.RLock:
        """Return the lock; raise in a child that was forked, where it may never be free."""
        if self._process is not process:
            raise RuntimeError(f"the {self._kind} is one of the process that forked this one; make it anew here")
        return self._lock

    def _alive(self) -> int:
        """Return the handle; raise if it is closed."""
        if self._handle == 0:
            raise RuntimeError(f"the {self._kind} is closed")
        return self._handle

    def close(self) -> None:
        """Free it. It may be called again."""
        if self._handle and self._process is process:
            with self._turn():
                handle, self._handle = self._handle, 0
            if handle:
                ask(handle, "close")

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            self.close()

    def __reduce__(self) -> Any:
        raise TypeError(
            f"the {self._kind} lives in the Go code and cannot be pickled; pickle its arguments, or save a Learner"
        )
