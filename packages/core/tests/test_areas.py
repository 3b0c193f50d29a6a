"""Names that other wheels bring, where those are absent."""

import textwrap

import pytest

import rushlight
from rushlight import _areas

HIDE = """
import sys
import importlib.metadata
import rushlight
from rushlight import _areas

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.removeprefix("rushlight.") in _areas.MODULES:
            sys.meta_path[-1].find_spec(name)

sys.meta_path.insert(0, Hide())
importlib.metadata.entry_points = lambda **_: ()
"""


@pytest.fixture
def bare(site):
    """Programs that see the core alone."""
    return lambda code: site.run(HIDE + textwrap.dedent(code))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("rushlight.linalg", "rushlight.linalg needs the wheel rushlight-linalg (pip install rushlight-linalg)"),
        ("rushlight.optim", "rushlight.optim needs the wheel rushlight-nn (pip install rushlight-nn)"),
        ("rushlight.utils.data", "rushlight.utils.data needs the wheel rushlight-nn (pip install rushlight-nn)"),
        ("rushlight.erf", "rushlight.erf needs the wheel rushlight-special (pip install rushlight-special)"),
        ("rushlight.Tensor.erf", "Tensor.erf needs the wheel rushlight-special (pip install rushlight-special)"),
        ("rushlight.ones(2).erf", "Tensor.erf needs the wheel rushlight-special (pip install rushlight-special)"),
        ("rushlight.no_such_name", "module 'rushlight' has no attribute 'no_such_name'"),
    ],
)
def test_attribute_of_an_absent_wheel(bare, expression, message):
    code = f"""
    import rushlight.utils
    try:
        {expression}
    except AttributeError as error:
        print(error)
    """
    assert bare(code) == message + "\n"


@pytest.mark.parametrize(
    "statement", ["import rushlight.nn", "from rushlight import nn", "from rushlight.nn import Module"]
)
def test_import_of_an_absent_wheel(bare, statement):
    code = f"""
    try:
        {statement}
    except ModuleNotFoundError as error:
        print(error)
    """
    assert bare(code) == "rushlight.nn needs the wheel rushlight-nn (pip install rushlight-nn)\n"


def test_every_name_leads_to_a_known_wheel():
    for table in (_areas.MODULES, _areas.FUNCTIONS, _areas.METHODS):
        assert set(table.values()) <= _areas.WHEELS


def test_hasattr_is_false_for_what_is_absent():
    assert not hasattr(rushlight, "mobile")
    assert not hasattr(rushlight, "no_such_name")
