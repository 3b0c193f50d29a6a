"""The legacy types of GPU tensors and storages, as `FloatTensor`."""

from __future__ import annotations

from .._tensor import legacy_types
from ..storage import legacy_storages

TYPES = legacy_types("cuda", "rushlight.cuda") | legacy_storages("cuda", "rushlight.cuda")
"""By name."""
