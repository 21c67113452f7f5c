"""Drives the lab's BPF programs with made-up packets: libbpf loads them, and the kernel runs them once per packet."""

import ctypes
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tailcut.lab import programs

LOOKUP, UPDATE, TEST_RUN, NEXT_PROGRAM = 1, 2, 10, 11
SYSCALL = {"x86_64": 321, "aarch64": 280}.get(os.uname().machine)
CONTEXT = 192  # bytes of a struct __sk_buff
MARK = 8  # where its mark is
HEADERS = 54  # Ethernet, IP and TCP


def key(src: int, dst: int, port: int) -> bytes:
    """Returns the key by which programs identify a flow."""
    return struct.pack("=Q", src << 48 | dst << 32 | port << 16 | 5000)


def packet(src: int, dst: int, port: int, length: int = 1500, protocol: int = 6) -> bytes:
    """Returns a frame between hosts of the lab; ``length`` is that of the datagram in it."""
    ends = [struct.pack("!BBH", 10, 77, 1 + host) for host in (src, dst)]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, length, 0, 0, 64, protocol, 0, *ends)
    tcp = struct.pack("!HHIIHHHH", port, 5000, 0, 0, 0x5010, 64, 0, 0)
    return (b"\2" * 12 + b"\x08\0" + ip + tcp).ljust(14 + length, b"\0")


class Loaded:
    """A program that the kernel has loaded, and its maps."""

    def __init__(self, library: ctypes.CDLL, handle: int) -> None:
        self._library, self._handle = library, ctypes.c_void_p(handle)

    def _call(self, name: str, *arguments: object) -> int:
        function = getattr(self._library, name)
        function.restype = ctypes.c_void_p if "find" in name else ctypes.c_int
        return function(*arguments) or 0

    def descriptor(self, kind: str, name: str) -> int:
        found = self._call(f"bpf_object__find_{kind}_by_name", self._handle, name.encode())
        assert found, f"the program has no {kind} {name}"
        return self._call(f"bpf_{kind}__fd", ctypes.c_void_p(found))

    def set(self, name: str, key: bytes, value: bytes) -> None:
        places = [ctypes.create_string_buffer(one, len(one)) for one in (key, value)]
        attributes = struct.pack("=IxxxxQQQ", self.descriptor("map", name), *map(ctypes.addressof, places), 0)
        assert _ask(UPDATE, attributes) == 0

    def get(self, name: str, key: bytes, length: int) -> bytes:
        """Returns the value of a key, of ``length`` bytes."""
        wanted, place = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(length)
        attributes = struct.pack("=IxxxxQQQ", self.descriptor("map", name), *map(ctypes.addressof, (wanted, place)), 0)
        assert _ask(LOOKUP, attributes) == 0
        return place.raw

    def mark(self, frame: bytes) -> int:
        """Returns the mark that the program gives a packet."""
        data = ctypes.create_string_buffer(frame, len(frame))
        context = ctypes.create_string_buffer(CONTEXT)
        attributes = struct.pack(
            "=IIIIQQIIIIQQ",
            *(self.descriptor("program", "choose"), 0, len(frame), 0, ctypes.addressof(data), 0),
            *(1, 0, 0, CONTEXT, 0, ctypes.addressof(context)),
        )
        assert _ask(TEST_RUN, attributes) == 0
        (mark,) = struct.unpack_from("=I", context.raw, MARK)
        return int(mark)

    def marks(self, frame: bytes, count: int) -> list[int]:
        return [self.mark(frame) for _ in range(count)]

    def ways(self, to: int, count: int) -> None:
        """Sets the number of paths to a host."""
        self.set("ways", struct.pack("!BBH", 10, 77, 1 + to), struct.pack("=I", count))


def _ask(command: int, attributes: bytes | ctypes.Array[ctypes.c_char]) -> int:
    block = ctypes.create_string_buffer(attributes, 128) if isinstance(attributes, bytes) else attributes
    libc = ctypes.CDLL(None, use_errno=True)
    made: int = libc.syscall(SYSCALL, command, ctypes.byref(block), 128)
    return made


def in_kernel() -> set[int]:
    """Returns the numbers of all programs that the kernel has."""
    found, block = set(), ctypes.create_string_buffer(128)
    while _ask(NEXT_PROGRAM, block) == 0:
        (number,) = struct.unpack_from("=I", block.raw, 4)
        found.add(number)
        struct.pack_into("=I", block, 0, number)
    return found


@contextmanager
def loaded(name: str, settings: bytes, **entries: int) -> Iterator[Loaded]:
    """Loads one of the programs with its parameters; ``entries`` sets the sizes of maps by name."""
    library = ctypes.CDLL("libbpf.so.1")
    library.libbpf_set_print(None)
    library.bpf_object__open_mem.restype = ctypes.c_void_p
    compiled = (Path(programs.BUILT) / f"{name}.o").read_bytes()
    handle = library.bpf_object__open_mem(compiled, ctypes.c_size_t(len(compiled)), None)
    assert handle, f"{name} is no object"
    try:
        for of, count in entries.items():
            library.bpf_object__find_map_by_name.restype = ctypes.c_void_p
            found = library.bpf_object__find_map_by_name(ctypes.c_void_p(handle), of.encode())
            assert library.bpf_map__set_max_entries(ctypes.c_void_p(found), count) == 0
        assert library.bpf_object__load(ctypes.c_void_p(handle)) == 0
        done = Loaded(library, handle)
        done.set("settings", bytes(4), settings)
        yield done
    finally:
        library.bpf_object__close(ctypes.c_void_p(handle))
