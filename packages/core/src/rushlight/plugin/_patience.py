"""Calls into plugins that may never return."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from .interface import PluginError

VARIABLE = "RUSHLIGHT_PLUGIN_SECONDS"
DEFAULT = 5.0

T = TypeVar("T")


def within_limit(fn: Callable[[], T], what: str, module: str = "") -> T:
    """What `fn` returns or raises. It runs in a thread, which is left behind where it exceeds the limit.

    Args:
        fn: Imports a plugin, asks its hooks, or probes or opens its device.
        what: Named in the error, as "plugin 'toy' (rushlight-toy 1.0)".
        module: Whose functions it calls. While the package of that is being imported, `fn` runs in this thread:
            another would wait for the import lock that this one may hold.

    Raises:
        PluginError: It has not returned in RUSHLIGHT_PLUGIN_SECONDS, 5 by default.
    """
    package = sys.modules.get(module.partition(".")[0])
    if getattr(getattr(package, "__spec__", None), "_initializing", False):
        return fn()
    seconds = float(os.environ.get(VARIABLE, DEFAULT))
    results: list[T] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            results.append(fn())
        except BaseException as error:  # raised below, in the thread that asked
            errors.append(error)

    thread = threading.Thread(target=work, name=f"rushlight: {what}", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise PluginError(
            f"{what} does not return in {seconds:g} s. Give it longer with {VARIABLE}=60, leave it out with "
            "RUSHLIGHT_PLUGINS, or uninstall it."
        )
    return results[0]
