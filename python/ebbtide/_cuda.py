"""NVIDIA's run-time compiler, where it came with packages of Python."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
from typing import Optional


def packaged_compiler() -> Optional[str]:
    """The newest ``libnvrtc`` among the packages ``nvidia-cuda-nvrtc`` and their kin, which PyTorch and JAX bring."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        return None
    found: list[tuple[int, str]] = []
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        for library in pathlib.Path(folder).glob("*/lib/libnvrtc.so.*"):
            version = re.fullmatch(r"libnvrtc\.so\.(\d+)", library.name)
            if version:
                found.append((int(version[1]), str(library)))
    return max(found)[1] if found else None


def find_compiler() -> None:
    """Names the compiler of the packages to the engine, unless ``EBBTIDE_NVRTC`` names one."""
    if not os.environ.get("EBBTIDE_NVRTC"):
        library = packaged_compiler()
        if library is not None:
            os.environ["EBBTIDE_NVRTC"] = library
