# The extension's names are typed where they are re-exported.
from typing import Any

def __getattr__(name: str) -> Any: ...
