"""Who keeps which C object alive.

Python finalises the objects of a dead cycle in any order and on any thread, so no C object is destroyed by the
finaliser of one Python object alone: an executable counts its users, and a machine the references that Python holds
to its objects.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from relvm.errors import RelvmTypeError
from relvm.vm.runtime._native import ffi, lib


class Shared:
    """A C object with a count of its users, destroyed by the last release.

    keep: what must live as long as the C object does.
    """

    def __init__(self, pointer: Any, destroy: Callable[[Any], None], keep: Any) -> None:
        self.pointer = pointer
        self.users = 1
        self._destroy = destroy
        self._keep = keep
        self._lock = threading.RLock()  # re-entrant: a finaliser may run at any point

    def retain(self) -> None:
        with self._lock:
            self.users += 1

    def release(self) -> None:
        with self._lock:
            self.users -= 1
            last = self.users == 0
        if last:
            self._destroy(self.pointer)
            self._keep = None


class Objects(ABC):
    """The references that Python holds to the objects of one machine, and the lock that whoever touches them holds.

    Reference counts in C are not atomic, so a reference is dropped only under the lock: at once where the lock is
    free or this thread's own, else by its holder when it is done.
    """

    def __init__(self, machine: Any, executable: Shared) -> None:
        executable.retain()
        self.machine = machine
        self.users = 0  # how many references there are
        self.lock = threading.RLock()
        self.exception: BaseException | None = None  # raised in a callback, on its way to the caller
        self._executables = [executable]  # that the machine runs code of
        self._dropped: deque[tuple[int, int]] = deque()

    @abstractmethod
    def invoke(self, callee: Reference, arguments: Sequence[Any]) -> Any:
        """Call a function or closure of this machine."""

    @abstractmethod
    def print(self, *values: Any) -> None:
        """What vm.builtin.print does."""

    @abstractmethod
    def instrument(self, index: int, before: bool, result: Any, arguments: Sequence[Any]) -> Any:
        """Tell the instrument of a call of function `index`; what the instrument returns."""

    @abstractmethod
    def poll(self) -> None:
        """What is done now and then while the machine runs."""

    def drop(self, tag: int, address: int) -> None:
        """Give back one reference; the machine goes with the last."""
        self._dropped.append((tag, address))
        self.release_dropped()

    def unlock(self) -> None:
        self.lock.release()
        if self._dropped:
            self.release_dropped()

    def release_dropped(self) -> None:
        # A drop that finds the lock taken leaves its entry to the holder, who looks again after it has let go.
        while self._dropped and self.lock.acquire(False):
            try:
                while self._dropped:
                    words = ffi.new("int64_t[2]", self._dropped.popleft())
                    lib.rvm_value_release(ffi.cast("rvm_value *", words))
                    self.users -= 1
                self._close_if_unused()
            finally:
                self.lock.release()

    def _close_if_unused(self) -> None:
        if self.users == 0 and self.machine is not None:
            machine, self.machine = self.machine, None
            lib.rvm_machine_release(machine)
            for executable in self._executables:
                executable.release()


class Reference:
    """One reference to an object of a machine, taken over from whoever made this."""

    __slots__ = ("__weakref__", "address", "objects", "tag")

    def __init__(self, objects: Objects, tag: int, address: int) -> None:
        objects.users += 1
        self.objects = objects
        self.tag = tag
        self.address = address

    def __del__(self) -> None:
        self.objects.drop(self.tag, self.address)

    def __reduce_ex__(self, protocol: int) -> Any:
        raise RelvmTypeError(f"a {type(self).__name__} cannot be copied or pickled; np.array(tensor) copies a tensor")


class Active(threading.local):
    """objects: of the machine that this thread is running, innermost; None: it runs none."""

    objects: Objects | None = None


ACTIVE = Active()
