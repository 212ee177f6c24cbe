"""The models of a server: finding model files, and loading and unloading them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relvm import ThreadPoolRunner, load_model, vm
from relvm.bytecode.program import signature_entry
from relvm.errors import RelvmError, RelvmFormatError, RelvmNameError, RelvmUnsupportedError, near_matches
from relvm.model import Model
from relvm.runtime.file_io import EXECUTABLE_SUFFIXES, map_executable
from relvm.vm import Executable
from serve.batching import Batcher
from serve.settings import Settings
from serve.signature import batch_axis, batch_rows, most_rows, read_signature

SUFFIXES = (".onnx", ".rvm", ".relvm", ".so")


class UnknownModelError(Exception):
    """There is no such model, or no such version of it."""


class ModelUnavailableError(Exception):
    """The model exists, but is not loaded."""


class LoadError(Exception):
    """A model cannot be loaded."""


@dataclass(frozen=True)
class Source:
    """A version of a model.  content: its file, its executable, or the reason why it has neither."""

    name: str
    version: str
    content: Path | Executable | RelvmError


class ServedModel:
    """A version of a model that is loaded.

    Parameters
    ----------
    source
        The model.
    settings
        The settings of the server.

    Raises
    ------
    OSError, RelvmError
        The model cannot be loaded, or cannot be served.
    """

    def __init__(self, source: Source, settings: Settings) -> None:
        self.name = source.name
        self.version = source.version
        content = source.content
        if isinstance(content, RelvmError):
            raise content
        if isinstance(content, Executable):
            self.platform = "relvm_executable"
            model = Model(content, function=settings.function, num_threads=1)
        else:
            self.platform = f"relvm_{content.suffix[1:]}"
            model = _load(content, settings)
        self.signature = read_signature(model)
        self.max_batch, self.unbatched_because = self._batch(model.executable, settings)
        limits: dict[str, Any] = {"max_seconds": settings.timeout, "max_bytes": settings.max_run_bytes}
        self.runner = ThreadPoolRunner(model.executable, settings.workers, settings.function, **limits)
        model.close()
        self._settings = settings
        self._users = 0
        self._unused = asyncio.Event()
        self._unused.set()

    def start(self, on_batch: Callable[[int], Any]) -> None:
        """Accept requests.  Call this in the event loop that serves them."""
        settings = self._settings
        self.batcher = Batcher(
            self.runner,
            max_batch=self.max_batch,
            max_wait=settings.max_wait,
            max_queue=settings.max_queue,
            on_batch=on_batch,
        )

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Context manager: `close` waits until the block has ended."""
        self._users += 1
        self._unused.clear()
        try:
            yield
        finally:
            self._users -= 1
            if not self._users:
                self._unused.set()

    async def predict(self, arguments: list[Any], timeout: float) -> tuple[Any, ...]:
        """Return the outputs for one request.  The errors are those of `batch_rows` and `Batcher.predict`."""
        rows = batch_rows(self.signature, arguments, self.max_batch) if self.is_batched else 1
        return await self.batcher.predict(arguments, rows, timeout)

    async def close(self) -> None:
        """Answer all requests that use the model, and end its threads."""
        await self._unused.wait()
        await self.batcher.close()
        await asyncio.to_thread(self.runner.close)

    @property
    def is_batched(self) -> bool:
        """Whether requests run in batches."""
        return self.max_batch > 1

    @property
    def metadata(self) -> dict[str, Any]:
        """The name, platform, inputs and outputs, as in the protocol."""
        inputs, outputs = ([each.metadata for each in side] for side in (self.signature.inputs, self.signature.outputs))
        return {"name": self.name, "platform": self.platform, "inputs": inputs, "outputs": outputs}

    def _batch(self, executable: Executable, settings: Settings) -> tuple[int, str]:
        """Return the maximum number of rows in a batch, and a reason.

        If the settings ask for batches but the model cannot be batched, the number is 1.  Otherwise the reason is "".
        """
        asked = settings.model_batches.get(self.name)
        rows = settings.max_batch if asked is None else asked
        if rows == 1:
            return 1, ""
        try:
            axis = batch_axis(self.signature)
        except RelvmUnsupportedError as error:
            if asked is not None:
                raise
            return 1, str(error)
        stated = signature_entry(executable.signature, settings.function)
        most = most_rows(stated["attributes"], axis) if stated else None
        return (rows if most is None else min(rows, most)), ""


def _load(path: Path, settings: Settings) -> Model:
    """Load a model like `relvm.load_model`, but copy executables, so that later writes to the file have no effect."""
    if path.suffix not in EXECUTABLE_SUFFIXES:
        return load_model(path, function=settings.function, threads=1)
    content = map_executable(path)
    try:
        executable = Executable.from_bytes(content, trust_native=settings.trust_native, elsewhere=True)
    except (RelvmFormatError, RelvmUnsupportedError) as error:
        raise type(error)(f"{path}: {error}") from None
    return Model(vm.adapt(executable), function=settings.function, num_threads=1)


class Repository:
    """The models of a server.

    Parameters
    ----------
    models
        A file, a folder, or executables by the names of the models.
    settings
        The settings of the server.
    on_batch
        A function that is called with the name and version of a model, and the rows of each batch that it runs.
    """

    def __init__(
        self,
        models: Path | Mapping[str, Executable],
        settings: Settings,
        on_batch: Callable[[str, str, int], Any],
    ) -> None:
        self._models = models
        self._settings = settings
        self._on_batch = on_batch
        self._served: dict[str, dict[str, ServedModel]] = {}
        self._reasons: dict[tuple[str, str], str] = {}  # the reason why a version is not served
        self._changing = asyncio.Lock()

    def load_all(self) -> None:
        """Load all models.  The index lists models that cannot be loaded, with the reason.

        Raises
        ------
        OSError
            The folder cannot be read.
        RelvmNameError
            The settings name a model that does not exist, and clients cannot load it later.
        """
        sources = self._find()
        names = {each.name for each in sources}
        for name in () if self._settings.control else self._settings.model_batches.keys() - names:
            raise RelvmNameError(f"--max-batch {name}=...: no model {name}{near_matches(name, names)}")
        for source in sources:
            try:
                self._add(ServedModel(source, self._settings))
            except Exception as error:
                self._reasons[source.name, source.version] = _reason(source, error)

    def start(self) -> None:
        """Accept requests.  Call this in the event loop that serves them."""
        for model in self.served:
            self._start(model)

    async def close(self) -> None:
        """Answer all accepted requests, and close all models."""
        async with self._changing:
            await asyncio.gather(*(model.close() for model in self.served))

    @property
    def served(self) -> list[ServedModel]:
        """All models and versions that are loaded."""
        return [model for versions in self._served.values() for model in versions.values()]

    @property
    def reasons(self) -> dict[tuple[str, str], str]:
        """The reason why a version is not loaded, by name and version."""
        return dict(self._reasons)

    def find(self, name: str, version: str | None) -> ServedModel:
        """Return a version of a model.  If `version` is None, return the highest loaded version.

        Raises
        ------
        UnknownModelError
            There is no such model or version.
        ModelUnavailableError
            The version is not loaded.
        """
        versions = self._served.get(name, {})
        if version is None and versions:
            return versions[max(versions, key=int)]
        if version in versions:
            return versions[version]
        what = f"model {name[:200]}" if version is None else f"version {version[:20]} of model {name[:200]}"
        for (known, of), reason in self._reasons.items():
            if known == name and version in (None, of):
                raise ModelUnavailableError(f"{what} is not loaded: {reason}")
        near = (
            near_matches(name[:200], self._served) if not versions else f"; there are {', '.join(self.versions(name))}"
        )
        raise UnknownModelError(f"no {what}{near}")

    def versions(self, name: str) -> list[str]:
        """Return the versions of a model that are loaded, in ascending order."""
        return sorted(self._served.get(name, {}), key=int)

    async def index(self) -> list[dict[str, str]]:
        """Return the index of the protocol's extension: all models, also those that are not loaded.

        Raises
        ------
        LoadError
            The folder cannot be read.
        """
        rows = {(each.name, each.version): ("READY", "") for each in self.served}
        for key, reason in self._reasons.items():
            rows.setdefault(key, ("UNAVAILABLE", reason))
        if self._settings.control:
            for each in await self._found():
                rows.setdefault((each.name, each.version), ("UNAVAILABLE", "not loaded"))
        return [
            {"name": name, "version": version, "state": state, "reason": reason}
            for (name, version), (state, reason) in sorted(rows.items(), key=lambda row: (row[0][0], int(row[0][1])))
        ]

    async def load(self, name: str) -> None:
        """Load a model, or load it again, with all its versions.

        Requests that have begun complete with the old model.  Versions that cannot be loaded again remain as they were.

        Raises
        ------
        UnknownModelError
            There is no such model in the folder.
        LoadError
            A version cannot be loaded, or the folder cannot be read.
        """
        async with self._changing:
            sources = [each for each in await self._found() if each.name == name]
            if not sources:
                raise UnknownModelError(f"no model {name[:200]} in {self._models}")
            failures = {}
            for source in sources:
                try:
                    model = await asyncio.to_thread(ServedModel, source, self._settings)
                except Exception as error:
                    failures[source.version] = _reason(source, error)
                else:
                    self._start(model)
                    old = self._served.get(name, {}).get(source.version)
                    self._add(model)
                    if old is not None:
                        await old.close()
            for version in set(self.versions(name)) - {each.version for each in sources}:
                await self._remove(name, version, "its file was removed")
            for version, reason in failures.items():
                if version not in self._served.get(name, {}):
                    self._reasons[name, version] = reason
            if failures:
                raise LoadError("; ".join(f"version {version}: {reason}" for version, reason in failures.items()))

    async def unload(self, name: str) -> None:
        """Unload all versions of a model.  Return when their requests have been answered.

        Raises
        ------
        UnknownModelError
            There is no such model.
        """
        async with self._changing:
            if name not in self._served and name not in {known for known, _ in self._reasons}:
                raise UnknownModelError(f"no model {name[:200]}{near_matches(name[:200], self._served)}")
            for version in self.versions(name):
                await self._remove(name, version, "unloaded")

    def _start(self, model: ServedModel) -> None:
        name, version = model.name, model.version  # a reference to `model` itself would create a reference cycle
        model.start(lambda rows: self._on_batch(name, version, rows))

    def _add(self, model: ServedModel) -> None:
        self._served.setdefault(model.name, {})[model.version] = model
        self._reasons.pop((model.name, model.version), None)

    async def _remove(self, name: str, version: str, reason: str) -> None:
        model = self._served[name].pop(version)
        if not self._served[name]:
            del self._served[name]
        self._reasons[name, version] = reason
        await model.close()

    async def _found(self) -> list[Source]:
        try:
            return await asyncio.to_thread(self._find)
        except OSError as error:
            raise LoadError(str(error)) from None

    def _find(self) -> list[Source]:
        if isinstance(self._models, Mapping):
            return [Source(name, "1", executable) for name, executable in self._models.items()]
        return find_models(self._models)


def _reason(source: Source, error: Exception) -> str:
    if isinstance(error, OSError | UnicodeDecodeError | RelvmError):
        return str(error)
    logging.getLogger("serve").error("model %s cannot be loaded", source.name, exc_info=error)
    return f"an internal error, which is in the log of the server: {type(error).__name__}"


# ---- folders ----


def find_models(path: Path) -> list[Source]:
    """Return the models in a folder, or the model in a file.

    A folder contains `NAME.onnx`, `NAME/model.onnx`, or `NAME/VERSION/model.onnx`; VERSION is a positive integer.  The
    other suffixes are .rvm, .relvm and .so.  Names that begin with a dot are ignored.

    Raises
    ------
    OSError
        The folder cannot be read.
    """
    if not path.is_dir():
        return [Source(path.stem, "1", path)]
    found: dict[str, list[Source]] = {}
    for entry in _entries(path):
        if entry.is_dir():
            found.setdefault(entry.name, []).extend(_in_folder(entry))
        elif entry.suffix in SUFFIXES:
            found.setdefault(entry.stem, []).append(Source(entry.stem, "1", entry))
    return [source for name, sources in found.items() for source in _distinct(name, sources)]


def _in_folder(folder: Path) -> list[Source]:
    name = folder.name
    sources = [Source(name, "1", each) for each in _model_files(folder)]
    versions = [each for each in _entries(folder) if each.is_dir() and _is_version(each.name)]
    sources += [Source(name, version.name, each) for version in versions for each in _model_files(version)]
    if not sources:
        expected = f"model{SUFFIXES[0]}, or a folder 1 with it (or {', '.join(SUFFIXES[1:])})"
        return [Source(name, "1", RelvmFormatError(f"{folder}: expected {expected}"))]
    return sources


def _distinct(name: str, sources: list[Source]) -> Iterator[Source]:
    for version in dict.fromkeys(each.version for each in sources):
        same = [each for each in sources if each.version == version]
        if len(same) == 1:
            yield same[0]
        else:
            files = ", ".join(str(each.content) for each in same)
            yield Source(name, version, RelvmFormatError(f"expected one file for version {version}, got {files}"))


def _entries(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not each.name.startswith("."))


def _model_files(folder: Path) -> list[Path]:
    return [each for each in _entries(folder) if each.stem == "model" and each.suffix in SUFFIXES and each.is_file()]


def _is_version(name: str) -> bool:
    return name.isascii() and name.isdecimal() and not name.startswith("0") and len(name) <= 18
