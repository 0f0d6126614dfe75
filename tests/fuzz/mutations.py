"""Ways to spoil a file: bytes, JSON values, arrays, archives. All take the generator that decides."""

from __future__ import annotations

import io
import json
import pickle
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HUGE = "9" * 400
WORDS = (
    "",
    " ",
    "\x00",
    "\x1b[31m",
    "☃",
    "\ud800",
    "../..",
    "/dev/null",
    "nan",
    "-1",
    "1e999",
    HUGE,
    "%s{0}",
    "x" * 9000,
)
NUMBERS = (
    0,
    -1,
    1,
    2**31,
    2**63,
    2**64,
    10**40,
    -(10**40),
    0.5,
    -0.0,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
)


class Bomb:
    """A pickle that makes a folder when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        import os

        return os.mkdir, (self.path,)


def spoil_bytes(rng: random.Random, data: bytes) -> bytes:
    """Flip bits, cut, double, insert, overwrite, swap parts, or replace all by something foreign."""
    raw = bytearray(data)
    place = rng.randrange(len(raw) + 1)
    kind = rng.randrange(9)
    if kind <= 1:
        for _ in range(rng.choice((1, 1, 2, 8, 64))):
            if raw:
                raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    elif kind == 2:
        del raw[place:]
    elif kind == 3:
        raw += bytes(raw)
    elif kind == 4:
        raw[place:place] = rng.randbytes(rng.choice((1, 4, 100)))
    elif kind == 5:
        raw[place : place + 8] = rng.choice((b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7))
    elif kind == 6:
        other = rng.randrange(len(raw) + 1)
        low, high = sorted((place, other))
        raw = raw[high:] + raw[low:high] + raw[:low]
    elif kind == 7:
        del raw[: rng.choice((1, 2, place))]
    else:
        return foreign(rng)
    return bytes(raw)


def foreign(rng: random.Random) -> bytes:
    """Files of other kinds, and the beginnings of some."""
    return rng.choice(
        (
            b"",
            b"\0",
            b"PK\x03\x04",
            b"PK\x05\x06" + b"\0" * 18,
            b"PAR1PAR1",
            b"\x93NUMPY\x01\x00v\x00",
            b"%PDF-1.7\n",
            b"\x89PNG\r\n\x1a\n",
            b"\xff\xfe{\x00}\x00",
            b"<html></html>",
            b"null",
            b"[]",
            b"{}",
            b"0",
            HUGE.encode() * 20,
            rng.randbytes(200),
            "☃\n".encode() * 5,
        )
    )


def spoil_json(rng: random.Random, value: Any) -> bytes:
    """Change a value somewhere inside, or the text: nesting, huge numbers, keys that stand twice, NaN."""
    text = json.dumps(value)
    kind = rng.randrange(8)
    if kind == 0:
        return spoil_bytes(rng, text.encode())
    if kind == 1:
        depth = rng.choice((500, 3000, 200_000))
        return (rng.choice(("[", '{"a":')) * depth).encode()
    if kind == 2 and text.startswith("{") and len(text) > 2:
        return ("{" + text[1:-1] + "," + text[1:]).encode()
    if kind == 3:
        depth = rng.choice((400, 990, 5000))
        return json.dumps(put(rng, value, "NEST")).replace('"NEST"', "[" * depth + "]" * depth).encode()
    return json.dumps(put(rng, value, strange(rng))).encode("utf-8", "surrogatepass")


def strange(rng: random.Random) -> Any:
    """A value that is hardly ever right."""
    return rng.choice((None, True, [], {}, [[]], {"": 0}, rng.choice(WORDS), rng.choice(NUMBERS)))


def put(rng: random.Random, value: Any, new: Any) -> Any:
    """A copy with `new` somewhere inside: in place of a value, or beside it under another key."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(sorted(value))
        choice = rng.random()
        if choice < 0.1:
            return {name: item for name, item in value.items() if name != key}
        if choice < 0.2:
            return value | {str(rng.choice(WORDS)): new}
        return value | {key: put(rng, value[key], new)}
    if isinstance(value, list) and value and rng.random() < 0.9:
        place = rng.randrange(len(value))
        return [*value[:place], put(rng, value[place], new), *value[place + 1 :]]
    return new


def spoil_array(rng: random.Random, value: np.ndarray, canary: Path) -> np.ndarray:
    """Another shape or type, numbers out of range, or a pickle inside; as it is where that cannot be."""
    try:
        return _spoiled(rng, value, canary)
    except (ValueError, TypeError, OverflowError):  # text does not become a number, say
        return value


def _spoiled(rng: random.Random, value: np.ndarray, canary: Path) -> np.ndarray:
    kind = rng.randrange(10)
    if kind == 0:
        out = np.array(value, dtype=float)
        if out.size:
            out.flat[rng.randrange(out.size)] = rng.choice(
                (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, 1e154, 1e-170)
            )
        return out
    if kind == 1:
        return value.astype(rng.choice(("f2", "f4", "c16", "i8", "u1", "U3", "S2", ">f8", "?")))
    if kind == 2:
        return np.array([Bomb(canary)] * max(1, min(value.size, 4)), dtype=object)
    if kind == 3:
        return np.asarray(value.reshape(-1)[:1].reshape(()) if value.size else 0.0)
    if kind == 4:
        return value[..., :0] if value.ndim else np.zeros(0)
    if kind == 5:
        return np.expand_dims(value, 0)
    if kind == 6:
        return np.concatenate([np.atleast_1d(value)] * 2)
    if kind == 7:
        return np.zeros_like(value)
    if kind == 8:
        return np.array(rng.choice(("text", "datetime64", 3)), dtype=rng.choice((None, object)))
    return np.asarray(np.swapaxes(value, 0, -1) if value.ndim > 1 else value[::-1] if value.ndim else value)


def archive(arrays: dict[str, np.ndarray], *, compression: int = zipfile.ZIP_STORED) -> bytes:
    """The bytes of an .npz, pickles and all."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as file:
        for name, value in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(value), allow_pickle=True)
            file.writestr(name + ".npy", member.getvalue())
    return stream.getvalue()


def claiming(shape: str, descr: str = "'<f8'", body: bytes = b"") -> bytes:
    """An .npy that claims a shape, whatever follows."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin-1") + body


def spoil_archive(rng: random.Random, arrays: dict[str, np.ndarray], canary: Path) -> bytes:
    """An archive with one thing wrong, sometimes two."""
    arrays = dict(arrays)
    names = sorted(arrays)
    name = rng.choice(names)
    kind = rng.randrange(12)
    if kind <= 4:
        for _ in range(rng.choice((1, 1, 2))):
            name = rng.choice(names)
            arrays[name] = spoil_array(rng, arrays[name], canary)
    elif kind == 5:
        other = rng.choice(names)
        arrays[name], arrays[other] = arrays[other], arrays[name]
    elif kind == 6:
        del arrays[name]
    elif kind == 7:
        arrays[rng.choice(("extra", "a/b", "../up", "☃", "x" * 3000, ""))] = np.zeros(3)
    elif kind == 8:
        return spoil_bytes(rng, archive(arrays))
    elif kind == 9:
        return pickle.dumps(Bomb(canary))
    else:
        return _claims(rng, arrays, name, canary)
    return archive(arrays, compression=rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def _claims(rng: random.Random, arrays: dict[str, np.ndarray], name: str, canary: Path) -> bytes:
    """An archive whose member claims what it is not, or stands twice, or is packed in another way."""
    member: Callable[[], bytes] = rng.choice(
        (
            lambda: claiming("(1000000, 1000000, 1000)"),
            lambda: claiming("(4000000000,)", body=b"\0" * 64),
            lambda: claiming("(-1,)"),
            lambda: claiming("(" * 3000),
            lambda: claiming("(3,)", "'|O'", pickle.dumps([Bomb(canary)])),
            lambda: claiming("(2,)", "[('a', '|O'), ('b', '<f8')]", pickle.dumps([Bomb(canary)])),
            lambda: claiming("()", "'<U1000000000'"),
            lambda: claiming("(True,)"),
            lambda: claiming("__import__('os').mkdir(" + repr(str(canary)) + ")"),
            lambda: claiming("(2L,)", body=b"\0" * 16),
            lambda: b"not an array",
            lambda: b"",
        )
    )
    stream = io.BytesIO()
    packed = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(stream, "w", packed) as file:
        for key, value in arrays.items():
            whole = io.BytesIO()
            np.lib.format.write_array(whole, value)
            file.writestr(key + ".npy", member() if key == name else whole.getvalue())
        if rng.random() < 0.2:
            import warnings

            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                file.writestr(name + ".npy", member())
    return stream.getvalue()


def zip_bomb(path: Path, size: int, *, names: tuple[str, ...] = ("tokens",)) -> None:
    """Write a small .npz whose arrays inflate to `size` bytes each, honestly declared."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in names:
            with file.open(name + ".npy", "w", force_zip64=True) as stream:
                stream.write(claiming(f"({size // 8},)"))
                block = bytes(1 << 22)
                for _ in range(size // len(block)):
                    stream.write(block)
