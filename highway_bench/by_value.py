"""By value: what a notebook's cell, a script or ``exec`` defines, which no worker can import.

It travels as a pickle. Its key is a hash of what it does: code without file names, line numbers and docstrings, bases,
class attributes, defaults, closures, and the globals that the code loads. Containers, arrays and tensors count by their
content, modules of the user's by their files, libraries by their names.
"""

from __future__ import annotations

import base64
import builtins
import copyreg
import dis
import functools
import hashlib
import inspect
import pickle
import re
import sys
import types
from collections.abc import Iterable, Mapping
from contextlib import suppress
from operator import attrgetter
from typing import Any, Final, NamedTuple

from highway_bench.errors import BadInput
from highway_bench.source import SourceTree, find_module, is_own

MAIN: Final = "__main__"
PICKLED: Final = "pickled:"  # begins the plug-in that has values
DIGITS: Final = 6  # of a key, in a name
DOCSTRING: Final = 0x4000000  # the flag of code that has one
LOADS: Final = ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")  # of names of the module

PLAIN = (type(None), type(...), type(NotImplemented), bool, int, float, complex, str, bytes, bytearray, range, slice)
WRAPPERS: Final[Mapping[Any, tuple[str, ...]]] = {  # what pickle does not take apart, with its parts
    staticmethod: ("__func__",),
    classmethod: ("__func__",),
    property: ("fget", "fset", "fdel"),
    functools.cached_property: ("func",),
}
ABOUT = {  # attributes of a class that do not change what it does
    *("__doc__", "__module__", "__name__", "__qualname__", "__dict__", "__weakref__", "__firstlineno__"),
    *("__static_attributes__", "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__"),
    *("__abstractmethods__", "_abc_impl", "__dataclass_fields__", "__slotnames__", "__parameters__", "__orig_bases__"),
}


class Value(NamedTuple):
    """A thing with its key, and the user's ``modules`` that it reaches. ``near`` has what its scope needs besides what
    its code loads; ``scopes`` are the globals of its functions."""

    thing: Any
    key: str
    modules: frozenset[str]
    near: Mapping[str, Any]
    scopes: tuple[dict[str, Any], ...]


_values: dict[str, Value] = {}  # by the name of each
_packed: dict[tuple[str, ...], str] = {}  # by the keys of what is in it, as two pickles of one thing differ
_received: list[str] = []  # from the process that started this one


def value_of(thing: Any, name: str, near: Mapping[str, Any] | None = None) -> Value:
    """The value of ``thing``, which messages call ``name``. Raises ``BadInput`` for what has none."""
    walk = _Walk(name)
    walk.add([thing, near or {}], name)
    return Value(thing, walk.hash.hexdigest()[:32], frozenset(walk.modules), near or {}, tuple(walk.scopes.values()))


def named_value(reference: str) -> Value | None:
    """The value that ``reference`` names; ``None`` where that is the name of something in a module."""
    return _values.get(reference)


def name_of(thing: Any) -> str:
    """What messages call a function, a class, a partial or another object."""
    name = getattr(thing, "__name__", None) or getattr(getattr(thing, "func", None), "__name__", type(thing).__name__)
    return re.sub(r"\W+", "", str(name))


def reference_to(thing: Any, name: str | None = None, near: Iterable[str] = ()) -> str:
    """``module:name`` of what a worker can import. Else ``__main__:name-digits``, with the name of ``thing`` or the
    ``name`` given, and the start of its key. ``near`` names what else its scope needs."""
    if name is None and is_importable(thing):
        return f"{thing.__module__}:{thing.__qualname__}"
    called = name or name_of(thing)
    found = {one: value for one in near if (value := defined_near(thing, one)) is not None}
    value = value_of(thing, called, found)
    reference = f"{MAIN}:{called}-{value.key[:DIGITS]}"
    _values[reference] = value
    return reference


def is_importable(thing: Any) -> bool:
    """Whether an import of its module gives ``thing``, in every process."""
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == MAIN or module not in sys.modules:
        return False
    try:
        return attrgetter(name)(sys.modules[module]) is thing
    except AttributeError:
        return False


def is_module(name: str) -> bool:
    """Whether a worker can import the module ``name``, as far as that is known without doing it."""
    unknown = (MAIN, "builtins")  # the latter of what ``exec`` defines without a name
    return name not in unknown and (find_module(name) is not None or name in sys.builtin_module_names)


def defined_near(thing: Any, name: str) -> Any:
    """What ``name`` is where ``thing`` is defined; ``None`` where it is nothing."""
    return _scope(thing).get(name)


def _scope(thing: Any) -> dict[str, Any]:
    """The globals of a function, or those of a class's module."""
    thing = inspect.unwrap(getattr(thing, "func", thing))
    if isinstance(thing, types.FunctionType):
        return thing.__globals__
    owner = thing if isinstance(thing, type) else type(thing)
    methods = (one for one in vars(owner).values() if isinstance(one, types.FunctionType))
    if not is_importable(owner) and (method := next(methods, None)) is not None:
        return method.__globals__
    return vars(sys.modules[owner.__module__]) if owner.__module__ in sys.modules else {}


def cell_of(file: str) -> str:
    """The notebook's cell whose code is in ``file``, as ``In[3]``; else ``file``."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    label = getattr(getattr(shell, "compile", None), "format_code_name", lambda name: None)(file)
    return label[1] if label else file


def place_of(thing: Any) -> str:
    """File, or cell, and line of a function or a class, for messages; empty where they are not known."""
    thing = inspect.unwrap(getattr(thing, "func", thing))
    owner = thing if isinstance(thing, type) else type(thing)
    for one in (thing, *vars(owner).values()):
        code = getattr(one, "__code__", None)
        if isinstance(code, types.CodeType) and one is thing:
            return f"{cell_of(code.co_filename)}, line {code.co_firstlineno}"
        if isinstance(code, types.CodeType) and not is_importable(owner):
            return cell_of(code.co_filename)
    try:
        return f"{inspect.getsourcefile(thing)}, line {inspect.getsourcelines(thing)[1]}"
    except (OSError, TypeError):
        return ""


def packed(references: Iterable[str], entries: Mapping[str, Mapping[str, Any]]) -> str:
    """A plug-in with the values that ``references`` name, and with registry entries by kind and name; in a worker
    process, the one that it got.

    Raises ``BadInput`` for what cannot be pickled.
    """
    import cloudpickle

    if _received:
        return _received[-1]

    named = {reference: _values[reference] for reference in references}
    registered = {(kind, name): value_of(one, name) for kind, some in entries.items() for name, one in some.items()}
    keys = tuple(sorted(f"{name} {value.key}" for name, value in (*named.items(), *registered.items())))
    if keys not in _packed:
        scopes = {id(scope): scope for value in (*named.values(), *registered.values()) for scope in value.scopes}
        content = (
            {reference: (value.thing, dict(value.near)) for reference, value in named.items()},
            {where: value.thing for where, value in registered.items()},
            [types.FunctionType((lambda: None).__code__, scope) for scope in scopes.values()],
        )
        try:
            _packed[keys] = PICKLED + base64.b64encode(cloudpickle.dumps(content)).decode()
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            names = ", ".join(name for _, name in registered) or ", ".join(named)
            raise BadInput(f"{names} cannot be sent to worker processes: {error}") from error
    return _packed[keys]


def unpacked(plugin: str) -> Mapping[tuple[str, str], Any]:
    """The registry entries of a ``packed`` plug-in, none in the process that packed it. Its values get their names.

    The globals of its functions are placed in the modules that these name, because compiled code looks there.
    """
    if plugin in (*_packed.values(), *_received):
        return {}
    named, entries, probes = pickle.loads(base64.b64decode(plugin.removeprefix(PICKLED)))
    for reference, (thing, near) in named.items():
        _scope(thing).update(near)
        _values[reference] = Value(thing, "", frozenset(), near, ())
    for probe in probes:
        name = probe.__globals__.get("__name__", MAIN)
        module = sys.modules.setdefault(name, types.ModuleType(name))
        own = {one: value for one, value in probe.__globals__.items() if not one.startswith("__")}
        vars(module).update(own)
    _received.append(plugin)
    found: Mapping[tuple[str, str], Any] = entries
    return found


class _Walk:
    """Hashes what a thing does. A function or a class counts once, and so does a container within itself."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.hash = hashlib.sha256()
        self.modules: set[str] = set()
        self.scopes: dict[int, dict[str, Any]] = {}
        self.tree = SourceTree()
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []  # so that no other object gets the id of one that was seen

    def add(self, value: Any, name: str) -> None:
        """Add ``value``, which messages call ``name``."""
        if isinstance(value, PLAIN) and type(value) in PLAIN:
            self._note(type(value).__name__, repr(value))
        elif id(value) in self._seen:
            self._note("again", self._seen[id(value)])
        else:
            self._alive.append(value)
            self._seen[id(value)] = len(self._alive)
            self._compound(value, name)
            if not isinstance(value, type | types.FunctionType):
                del self._seen[id(value)]

    def _note(self, *parts: object) -> None:
        for part in parts:
            text = str(part).encode("utf-8", "surrogatepass")
            self.hash.update(b"%d:%s" % (len(text), text))

    def _all(self, values: Iterable[Any], name: str) -> None:
        for value in values:
            self.add(value, name)

    def _compound(self, value: Any, name: str) -> None:
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor):
            plain = value.detach().cpu().contiguous().reshape(-1)
            self._note("tensor", value.dtype, tuple(value.shape), value.requires_grad)
            self.hash.update(plain.view(torch.uint8).numpy().tobytes())
        elif hasattr(value, "__array_interface__") and hasattr(value, "dtype") and not value.dtype.hasobject:
            self._note("array", value.dtype, value.shape)
            self.hash.update(value.tobytes())
        elif isinstance(value, types.ModuleType):
            self._module(value)
        elif isinstance(value, types.FunctionType):
            self._function(value, name)
        elif isinstance(value, types.CodeType):
            self._code(value, name)
        elif isinstance(value, type):
            self._class(value, name)
        elif isinstance(value, types.BuiltinFunctionType) and not isinstance(value.__self__, types.ModuleType | type):
            self._all([value.__name__, value.__self__], name)
        elif type(value) in WRAPPERS:
            self._all([type(value).__name__, *(getattr(value, one) for one in WRAPPERS[type(value)])], name)
        elif inspect.ismethoddescriptor(value) or inspect.isdatadescriptor(value) or inspect.isbuiltin(value):
            self._note("built in", getattr(value, "__qualname__", type(value)))  # of C code
        elif isinstance(value, set | frozenset):
            self._set(value, name)
        else:
            self._object(value, name)

    def _module(self, module: types.ModuleType, loaded: Iterable[str] = ()) -> None:
        """A module of the user's: its files, and those of its parts whose names the code has; else its name."""
        self._note("module", module.__name__)
        if is_own(module.__name__):
            self._file(module.__name__)
            for part in filter(None, (sys.modules.get(f"{module.__name__}.{one}") for one in loaded)):
                self._module(part, loaded)

    def _file(self, module: str) -> None:
        self.modules.add(module)
        self._note(self.tree.digest([module], own=True))

    def _by_name(self, value: Any) -> bool:
        """Whether the name of a function or a class says what it does: with its file, or as a library's."""
        module, is_class = value.__module__, isinstance(value, type)
        own = isinstance(module, str) and is_own(module)
        known = is_importable(value) or (is_class and is_module(module) and not own)
        if known:
            self._note("name", module, value.__qualname__)
            if own:
                self._file(module)
        return known

    def _function(self, function: types.FunctionType, name: str) -> None:
        if self._by_name(function):
            return
        scope = function.__globals__
        home = scope.get("__name__", MAIN)
        if not is_module(home):
            self.scopes[id(scope)] = scope
        self._note("function")
        self._code(function.__code__, name)
        self.add(function.__defaults__, f"a default of {name}")
        self._mapping(function.__kwdefaults__ or {}, f"a default of {name}")
        self._mapping(vars(function), name)
        for one, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self._note(one)
            with suppress(ValueError):  # not assigned yet
                self.add(cell.cell_contents, one)
        codes = list(_codes(function.__code__))
        names = {one for code in codes for one in code.co_names}
        if is_module(home) and not is_own(home):  # a library's closure: what it loads, its name says
            return
        for one in dict.fromkeys(one for code in codes for one in _names(code, *LOADS)):
            value = scope.get(one, vars(builtins).get(one))
            self._note("global", one, one in scope)
            if isinstance(value, types.ModuleType):
                self._module(value, sorted(names))
            else:
                self.add(value, one)
        for one in dict.fromkeys(one for code in codes for one in _names(code, "IMPORT_NAME")):
            if is_own(one):
                self._file(one)

    def _code(self, code: types.CodeType, name: str) -> None:
        """Instructions without their offsets, and calls of attributes in one form: Python has another for modules that
        the same file imports, which a notebook's cell does not get."""
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & ~DOCSTRING
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self._note("code", counts, arguments, code.co_cellvars)
        bytecode = dis.Bytecode(code)
        steps = [step for step in bytecode if step.opname not in ("PUSH_NULL", "EXTENDED_ARG")]
        for step in steps:
            self._note(step.opname.replace("LOAD_METHOD", "LOAD_ATTR"))
            if step.opcode in dis.hasconst:
                self.add(step.argval, name)
            elif step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
                self._note(sum(one.offset < step.argval for one in steps))
            else:
                self._note(re.sub(r"NULL(\|self)? \+ | \+ NULL(\|self)?", "", step.argrepr) or step.arg)
        for entry in bytecode.exception_entries:  # type: ignore[attr-defined]
            ends = (sum(one.offset < offset for one in steps) for offset in entry[:3])
            self._note(*ends, *entry[3:])

    def _class(self, cls: type, name: str) -> None:
        if self._by_name(cls):
            return
        self._note("class")
        self.add(type(cls), name)
        self._all(cls.__bases__, name)
        for one, value in sorted(vars(cls).items()):
            if one not in ABOUT:
                self._note(one)
                self.add(value, f"{cls.__name__}.{one}")

    def _set(self, values: Iterable[Any], name: str) -> None:
        self._note(type(values).__name__)
        digests = []
        for value in values:
            one = _Walk(self.name)
            one._seen, one._alive, one.modules, one.scopes = {**self._seen}, self._alive, self.modules, self.scopes
            one.add(value, name)
            digests.append(one.hash.hexdigest())
        self._note(sorted(digests))

    def _mapping(self, values: Mapping[Any, Any], name: str) -> None:
        self._note(len(values))
        for key, value in values.items():
            self.add(key, name)
            self.add(value, f"{name}[{key!r}]" if isinstance(key, int) else str(key))

    def _object(self, value: Any, name: str) -> None:
        """A container by its items, any other object as pickle takes it apart."""
        kind = type(value)
        if kind in (dict, list, tuple):
            self._note(kind.__name__, len(value))
            self._mapping(value, name) if kind is dict else self._all(value, name)
            return
        try:
            reduce = copyreg.dispatch_table.get(kind)
            parts: Any = reduce(value) if reduce else value.__reduce_ex__(2)
        except Exception as error:  # of a lock, a file, a generator, or the user's code
            where = place_of(self._alive[1]) if len(self._alive) > 1 else ""
            raise BadInput(
                f"{self.name} reaches {name!r}, a {kind.__name__}, whose value cannot be compared between runs: make "
                f"it inside of {self.name}{f' ({where})' if where else ''}"
            ) from error
        self._note("object")
        if isinstance(parts, str):  # a name in the module of its class
            self._note(kind.__module__, kind.__qualname__, parts)
            return
        for part in tuple(parts):
            self.add(list(part) if hasattr(part, "__next__") else part, name)


def _codes(code: types.CodeType) -> Iterable[types.CodeType]:
    """``code`` and all that is defined in it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _codes(inner)


def _names(code: types.CodeType, *instructions: str) -> Iterable[str]:
    """The names that these instructions of ``code`` have."""
    return (str(step.argval) for step in dis.get_instructions(code) if step.opname in instructions)
