"""What tells one policy from another: a digest of its code and of all values that this code uses."""

from __future__ import annotations

import builtins
import contextlib
import copyreg
import dis
import enum
import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import platform
import sys
import sysconfig
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import _library


class Unknown(Exception):
    """A value of which nothing says whether it is the same another time."""


def digest(*values: Any) -> str:
    """Return a number, in hexadecimal digits, that is the same where values and the code behind them are the same.

    Code counts without its comments, lines and file names. With a function count its defaults, what it has closed over,
    and the globals that it names, functions and classes among them, and so on. Packages that are installed count by
    name and version, modules of one's own that are named by their text too.

    Raises:
        Unknown: where a value can be held in memory only, such as a lock or an open file.
    """
    walk = _Walk()
    walk.put("python", platform.python_version(), len(values))
    try:
        for v in values:
            walk.value(v)
    except (AttributeError, RecursionError, TypeError, ValueError) as e:  # an object that is like no other
        raise Unknown(f"what has no digest ({e})") from e
    return walk.sum.hexdigest()


@functools.cache
def package() -> str:
    """Return a digest of this package and of the library of the Go code, as they are installed."""
    whole = hashlib.sha256()
    for file in [*sorted(Path(__file__).parent.rglob("*.py")), _library.file()]:
        whole.update(hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()


_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), type(NotImplemented))
_DESCRIPTORS = (
    types.MemberDescriptorType, types.GetSetDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)  # fmt: skip
_GENERATED = {  # of a class, which say where it stands, or follow from the rest
    "__dict__", "__weakref__", "__slotnames__", "__doc__", "__module__", "__firstlineno__", "__static_attributes__",
    "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__abstractmethods__", "_abc_impl",
    "_is_protocol", "__parameters__", "__orig_bases__", "__subclasshook__", "__match_args__",
}  # fmt: skip
_NAMES = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")


def _instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield from _instructions(c)


def _attributes(code: types.CodeType) -> set[str]:
    nested = [_attributes(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    return set(code.co_names).union(*nested)


def _installed(name: Any) -> bool:
    """Return whether a module is one of Python, of this package or of one that is installed, not one's own."""
    if not isinstance(name, str):  # of a type that C made
        return True
    top = name.partition(".")[0]
    if top == "__main__":  # whose file may be that of what runs a notebook, or tests
        return False
    if top in (*sys.builtin_module_names, __name__.partition(".")[0]):
        return True
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        return top in sys.stdlib_module_names
    standard = Path(sysconfig.get_paths()["stdlib"])
    path = Path(file)
    return bool({"site-packages", "dist-packages"} & set(path.parts)) or path.is_relative_to(standard)


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


def _version(name: Any) -> str:
    """Return the version of the package of a module: that which it names, or that with which it was installed."""
    top = str(name).partition(".")[0]
    if top in sys.stdlib_module_names:
        return ""
    if of := getattr(sys.modules.get(top), "__version__", ""):
        return str(of)
    return " ".join(importlib.metadata.version(d) for d in sorted(set(_distributions().get(top, ()))))


class _Walk:
    """A way through values, each of which is added to one sum."""

    def __init__(self) -> None:
        self.sum = hashlib.sha256()
        self.seen: dict[Any, int] = {}
        self.held: list[Any] = []  # what was made on the way; its id is not given to another

    def put(self, *parts: Any) -> None:
        """Add parts that have a plain text, each with its length."""
        for p in parts:
            raw = p if isinstance(p, bytes) else str(p).encode("utf-8", "surrogatepass")
            self.sum.update(len(raw).to_bytes(8, "little") + raw)

    def all(self, of: Any) -> None:
        """Add values in their order."""
        of = list(of)
        self.put(len(of))
        for v in of:
            self.value(v)

    def value(self, v: Any) -> None:
        """Add a value."""
        kind = type(v)
        if kind in _PLAIN:
            self.put(kind.__name__, v if kind is bytes else repr(v))
        elif kind is tuple:
            self.put("tuple")
            self.all(v)
        elif kind in (set, frozenset):  # whose order is another in each process
            self.put(kind.__name__, *sorted(digest(x) for x in v))
        elif kind is types.CodeType:
            self.code(v)
        elif isinstance(v, types.ModuleType):
            self.module(v, set())
        elif id(v) in self.seen:
            self.put("again", self.seen[id(v)])
        else:
            self.seen[id(v)] = len(self.seen)
            self.held.append(v)
            self.object(v)

    def object(self, v: Any) -> None:
        """Add what may hold itself."""
        if type(v) in (list, dict):
            self.put(type(v).__name__)
            self.all([x for pair in v.items() for x in pair] if type(v) is dict else v)
        elif isinstance(v, types.FunctionType):
            self.function(v)
        elif isinstance(v, type):
            self.type(v)
        elif isinstance(v, types.MappingProxyType):
            self.put("mapping")
            self.value(dict(v))
        elif isinstance(v, types.MethodWrapperType):
            self.put("wrapper", v.__name__)
            self.value(v.__self__)
        elif isinstance(v, types.MethodType):
            self.put("method")
            self.all([v.__func__, v.__self__])
        elif isinstance(v, (staticmethod, classmethod)):
            self.put(type(v).__name__)
            self.value(v.__func__)
        elif isinstance(v, property):
            self.put("property")
            self.all([v.fget, v.fset, v.fdel])
        elif isinstance(v, functools.cached_property):
            self.put("cached_property")
            self.value(v.func)
        elif isinstance(v, functools.partial):
            self.put("partial")
            self.all([v.func, v.args, v.keywords, vars(v)])
        elif isinstance(v, (types.BuiltinFunctionType, np.ufunc)):
            of = getattr(v, "__self__", None)
            self.put("builtin", getattr(v, "__module__", None), getattr(v, "__qualname__", v.__name__))
            if of is not None and not isinstance(of, types.ModuleType):
                self.value(of)
        elif isinstance(v, _DESCRIPTORS):
            self.put("descriptor", v.__objclass__.__module__, v.__objclass__.__qualname__, v.__name__)
        elif isinstance(v, enum.Enum):
            self.put("member", v.name)
            self.value(type(v))
        elif type(v) is np.ndarray and not v.dtype.hasobject:
            self.put("array", v.dtype.descr, v.shape, v.tobytes())
        elif isinstance(v, np.generic) and not v.dtype.hasobject:
            self.put("number", v.dtype.descr, v.tobytes())
        elif callable(getattr(v, "detach", None)) and callable(getattr(v, "numpy", None)):  # a tensor of PyTorch
            self.put("tensor", type(v).__qualname__)
            self.value(np.asarray(v.detach().cpu().numpy()))
        elif callable(getattr(v, "get_parameters", None)) and callable(getattr(v, "predict", None)):
            self.put("trained")  # an agent of Stable-Baselines3, which holds environments too
            self.all([type(v), v.get_parameters()])
        else:
            self.reduced(v)

    def reduced(self, v: Any) -> None:
        """Add an object by what it says of itself when it is copied or pickled."""
        try:
            of = copyreg.dispatch_table[type(v)](v) if type(v) in copyreg.dispatch_table else v.__reduce_ex__(4)
        except Exception as e:
            raise Unknown(f"a {type(v).__module__}.{type(v).__qualname__}") from e
        self.put("object")
        self.value(type(v))
        if isinstance(of, str):  # a name, of what may wrap a function, as functools.cache does
            self.put(of)
            self.value(dict(getattr(v, "__dict__", {})))
            return
        self.held.append(of)
        self.all([list(x) if isinstance(x, Iterator) else x for x in of])

    def code(self, c: types.CodeType) -> None:
        """Add what code does."""
        self.put(
            "code", c.co_code, c.co_exceptiontable, c.co_names, c.co_varnames, c.co_freevars, c.co_cellvars,
            c.co_argcount, c.co_posonlyargcount, c.co_kwonlyargcount, c.co_flags,
        )  # fmt: skip
        self.all(c.co_consts)

    def function(self, f: types.FunctionType) -> None:
        """Add a function, with what it uses."""
        self.put("function", f.__name__)
        cells = []
        for cell in f.__closure__ or ():
            try:
                cells.append(cell.cell_contents)
            except ValueError:  # nothing yet
                cells.append(None)
        self.code(f.__code__)
        self.all([f.__defaults__, f.__kwdefaults__, cells, vars(f)])
        if _installed(f.__module__):
            self.put(f.__module__, _version(f.__module__))
            return
        attributes = _attributes(f.__code__)
        names: dict[str, Any] = {}
        loaded: list[Any] = [0, None]  # by the last two instructions: before an import its level and its names
        for i in _instructions(f.__code__):
            if i.opname in _NAMES and i.argval in f.__globals__:
                names[i.argval] = f.__globals__[i.argval]
            elif i.opname == "IMPORT_NAME":
                level, wanted = loaded
                of = "." * level + i.argval
                names[f"import {of}"] = self.imported(of, wanted, f)
            elif i.opname in _NAMES and not hasattr(builtins, i.argval):
                names[i.argval] = None
            if i.opname != "EXTENDED_ARG":
                loaded = [loaded[1], i.argval]
        for name, v in sorted(names.items()):
            self.put(name)
            if isinstance(v, types.ModuleType):
                self.module(v, attributes)
            else:
                self.value(v)

    def imported(self, name: str, wanted: tuple[str, ...] | None, f: types.FunctionType) -> types.ModuleType | None:
        """Return the module that a function imports when it runs, with those of its modules that are wanted."""
        try:
            m = importlib.import_module(name, f.__globals__.get("__package__"))
        except Exception:  # the function meets the same
            return None
        for of in wanted or ():
            if not hasattr(m, of):
                with contextlib.suppress(Exception):
                    importlib.import_module(f"{m.__name__}.{of}")
        return m

    def type(self, t: type) -> None:
        """Add a class: one's own with all that it defines."""
        self.put("class", t.__module__, t.__qualname__)
        if _installed(t.__module__):
            self.put(_version(t.__module__))
            return
        self.all([type(t), t.__bases__])
        for name, v in sorted(vars(t).items()):
            if name not in _GENERATED:
                self.put(name)
                self.value(v)

    def module(self, m: types.ModuleType, attributes: set[str]) -> None:
        """Add a module: one's own with its text, and with those of its values that code may name."""
        self.put("module", m.__name__)
        if _installed(m.__name__):
            self.put(_version(m.__name__))
            return
        key = id(m), frozenset(attributes)
        if key in self.seen:
            return
        self.seen[key] = len(self.seen)
        if (file := getattr(m, "__file__", None)) and Path(file).is_file():
            self.put(Path(file).read_bytes())
        for name in sorted(attributes & set(vars(m))):
            self.put(name)
            v = vars(m)[name]
            if isinstance(v, types.ModuleType):
                self.module(v, attributes)
            else:
                self.value(v)
