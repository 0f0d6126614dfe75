"""Reading .npz files that may be anything: no pickles, and no more memory than there is."""

from __future__ import annotations

import io
import math
import os
import warnings
import zipfile
from typing import Any

import numpy as np

from numerics import _room
from numerics.errors import InputError
from numerics.files import read_bytes


def read_arrays(path: str | os.PathLike[str]) -> dict[str, np.ndarray]:
    """All arrays of an .npz file, pickles refused. Raises InputError, one line naming the file.

    What the arrays would take as float64 is known from their headers and must fit into free memory before
    any is read: a small archive may claim, or inflate to, any size.
    """
    name = os.fspath(path)
    if os.path.isdir(path):
        raise InputError(f"{name}: is a directory, not an .npz file")
    content = read_bytes(path, limit=_room.free_memory() // 2)
    if content[:2] != b"PK":
        raise InputError(f"{name}: is not an .npz file")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _members(name, archive)
    except InputError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy's header parser raise a dozen types on damaged files
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{name}: cannot be read as an .npz without pickles ({reason})") from None


def finite_numbers(value: np.ndarray, shape: tuple[int, ...]) -> bool:
    """Whether an array holds finite floats, in this shape."""
    return value.dtype.kind == "f" and value.shape == shape and bool(np.isfinite(value).all())


def _members(name: str, archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    infos = archive.infolist()
    if len({info.filename for info in infos}) < len(infos):
        raise InputError(f"{name}: is not an .npz file, two of its members have one name")
    numbers = 0
    for info in infos:
        key, suffix = info.filename[:-4], info.filename[-4:]
        if suffix != ".npy" or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(f"{name}: is not an .npz file, its member {info.filename} is no array")
        with archive.open(info) as stream:
            shape, dtype = _header(stream)
            start = stream.tell()
        if dtype.hasobject:
            raise InputError(f"{name}: cannot be read as an .npz without pickles ({key} holds objects)")
        if start + math.prod(shape) * dtype.itemsize != info.file_size:
            raise InputError(f"{name}: cannot be read as an .npz ({key} is not as long as its header says)")
        numbers += max(math.prod(shape), info.file_size // 8)
    _room.require(f"{name}: to read it", 2 * 8 * numbers)
    arrays = {}
    for info in infos:
        with archive.open(info) as stream:
            arrays[info.filename[:-4]] = np.lib.format.read_array(stream, allow_pickle=False)
            stream.read(1)  # past the end the checksum is verified
    return arrays


def _header(stream: Any) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type of the array whose .npy stands in the stream; a warning about an old one refuses it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):  # later ones are for structured types
            raise ValueError(f"an array of format {version}")
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(stream)
    return shape, dtype
