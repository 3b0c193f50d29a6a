"""Public names of the installed wheels live where users import them from."""

import importlib
import inspect
import pkgutil

import pytest

import rushlight


def public_modules():
    found = ["rushlight"]
    for info in pkgutil.walk_packages(rushlight.__path__, "rushlight."):
        parts = info.name.split(".")
        # Modules of hooks are for the plugin manager, not for users.
        if not any(part.startswith("_") for part in parts) and parts[-1] not in ("conformance", "hooks"):
            found.append(info.name)
    return found


@pytest.mark.parametrize("name", public_modules())
def test_public_objects_name_a_public_module(name):
    if name.startswith("rushlight.utils.tensorboard"):
        pytest.importorskip("tensorboard")
    module = importlib.import_module(name)
    for public in getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")]):
        value = getattr(module, public)
        if not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        origin = value.__module__ or ""
        if origin.startswith("rushlight"):
            hidden = [part for part in origin.split(".") if part.startswith("_")]
            assert not hidden, f"{name}.{public} says that it lives in {origin}"
