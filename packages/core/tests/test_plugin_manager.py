"""Loading of plugins: what loads when, and what happens when something is wrong."""

import pytest

BACKEND = """
from rushlight.plugin import Backend

class Device(Backend):
    name = {name!r}

def rushlight_register_backends():
    return [Device]
"""
ASK = """
import rushlight
try:
    rushlight.device({device!r})
except RuntimeError as error:
    print(error)
    print("because", repr(error.__cause__))
"""


def test_import_does_not_depend_on_what_is_installed(site):
    code = "import rushlight, sys; print(sorted(sys.modules))"
    bare = site.run(code)
    for i in range(20):
        site.wheel(f"plugin-{i}", BACKEND.format(name=f"device{i}"))
    assert site.run(code) == bare
    assert "pluggy" not in bare
    assert "importlib.metadata" not in bare
    for wheel in ("scipy", "cupy", "ml_dtypes", "rushlight.autograd", "rushlight.linalg", "rushlight.nn"):
        assert f"'{wheel}'" not in bare


def test_a_device_of_a_plugin_is_found(site):
    site.wheel("alpha-wheel", BACKEND.format(name="alpha"))
    assert site.run("import rushlight; print(rushlight.device('alpha:1'))") == "alpha:1\n"


def test_names_are_matched_whole(site):
    site.wheel("long", BACKEND.format(name="cpux"))
    assert (
        site.run("import rushlight; print(rushlight.device('cpux').type, rushlight.device('cpu').type)") == "cpux cpu\n"
    )


def test_plugin_may_be_imported_first(site):
    site.wheel("alpha", BACKEND.format(name="alpha"))
    assert site.run("import alpha, rushlight; print(rushlight.device('alpha'))") == "alpha\n"


def test_broken_plugin_costs_one_warning_and_nothing_else(site):
    site.wheel("a-good", BACKEND.format(name="first"))
    site.wheel("b-broken", "raise OSError('no driver')")
    site.wheel("c-exits", "import sys; sys.exit(3)")
    site.wheel("d-good", BACKEND.format(name="last"))
    out = site.run(
        """
        import rushlight, warnings
        from rushlight.plugin import PluginWarning
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            print(rushlight.device("first"), rushlight.device("last"))
            try:
                rushlight.device("b_broken")
            except RuntimeError as error:
                print(error)
                print("because", repr(error.__cause__))
        for warning in caught:
            print(warning.category is PluginWarning, warning.filename, warning.message)
        """
    )
    assert out.splitlines() == [
        "first last",
        "Expected one of cpu, cuda, first, last, meta device type at start of device string: b_broken",
        "Failed: plugin 'b_broken' (b-broken 1.0): OSError: no driver",
        "Failed: plugin 'c_exits' (c-exits 1.0): SystemExit: 3",
        "because OSError('no driver')",
        "True <string> plugin 'b_broken' (b-broken 1.0) failed, all else works: OSError: no driver",
        "True <string> plugin 'c_exits' (c-exits 1.0) failed, all else works: SystemExit: 3",
    ]


def test_variable_limits_loading(site):
    site.wheel("alpha-wheel", BACKEND.format(name="alpha"))
    site.wheel("beta-wheel", BACKEND.format(name="beta"))
    out = site.run(ASK.format(device="alpha"), RUSHLIGHT_PLUGINS="beta_wheel")
    first, second, *_ = out.splitlines()
    assert first == "Expected one of beta, cpu, cuda, meta device type at start of device string: alpha"
    assert second.startswith("Installed but not active: plugin 'alpha_wheel' (alpha-wheel 1.0). Add alpha_wheel to")
    out = site.run(ASK.format(device="beta"), RUSHLIGHT_PLUGINS="none")
    assert out.startswith("Expected one of cpu, cuda, meta device type")
    assert site.run("import rushlight; print(rushlight.device('alpha'))", RUSHLIGHT_PLUGINS="alpha_wheel, beta_wheel")


def test_wheel_of_the_project_that_is_left_out(site):
    site.wheel("rushlight-linalg", "", entry="linalg")
    out = site.run(
        """
        import rushlight
        try:
            rushlight.inverse
        except AttributeError as error:
            print(error)
        """,
        RUSHLIGHT_PLUGINS="none",
    )
    assert out == (
        "rushlight.inverse needs the plugin 'linalg' (rushlight-linalg 1.0); RUSHLIGHT_PLUGINS=none leaves it out.\n"
    )


def test_other_api_version_is_refused_before_its_code_runs(site):
    site.wheel("native", "print('its code runs')", version="3.1", api="v99")
    out = site.run(ASK.format(device="x"), warnings="ignore")
    assert "its code runs" not in out
    assert "plugin 'native' (native 3.1) is built for v99 of the plugin API, but rushlight-core" in out


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ("alpha", "alpha", "b-two: device type 'alpha' is taken, a-one registers it too."),
        ("alpha", "cpu", "b-two: device type 'cpu' is taken, rushlight-core registers it too."),
        ("alpha", "Not a name", "b-two: a device type has a lower-case identifier as name, got name='Not a name'."),
    ],
)
def test_device_types_are_unique_identifiers(site, first, second, message):
    site.wheel("a-one", BACKEND.format(name=first))
    site.wheel("b-two", BACKEND.format(name=second))
    assert message in site.run(ASK.format(device="x"), warnings="ignore")


def test_entry_points_of_one_name(site):
    site.wheel("a-one", BACKEND.format(name="alpha"), entry="same")
    site.wheel("b-two", BACKEND.format(name="beta"), entry="same")
    out = site.run(ASK.format(device="beta"), warnings="ignore")
    assert "plugin 'same' (b-two 1.0) has the name of plugin 'same' (a-one 1.0). Uninstall one of them." in out


def test_plugin_is_wholly_there_or_not_at_all(site):
    site.wheel(
        "half",
        """
        from rushlight.plugin import Backend, Op

        class Device(Backend):
            name = "half"

        def rushlight_register_backends():
            return [Device]

        def rushlight_register_ops():
            return [Op("half::fine(Tensor self) -> Tensor"), Op("mul.Tensor(Tensor self, Tensor other) -> Tensor")]
        """,
    )
    out = site.run(ASK.format(device="half"), warnings="ignore")
    assert out.startswith("Expected one of cpu, cuda, meta device type")
    assert "half: operator 'mul.Tensor' is taken, rushlight-core registers it too." in out


def test_hook_that_returns_something_else(site):
    site.wheel("wrong", "def rushlight_register_backends():\n    return [3]\n")
    out = site.run(ASK.format(device="x"), warnings="ignore")
    assert "rushlight_register_backends: returns something else than its declaration says, got 3." in out


def test_unknown_hook(site):
    site.wheel("wrong", "def rushlight_register_opps():\n    return []\n")
    out = site.run(ASK.format(device="x"), warnings="ignore")
    assert "unknown hook rushlight_register_opps. The hooks are rushlight_addhooks, rushlight_check_op," in out


def test_hook_with_unknown_argument(site):
    site.wheel("wrong", "def rushlight_register_kernels(device):\n    return []\n")
    assert "PluginValidationError" in site.run(ASK.format(device="x"), warnings="ignore")


@pytest.mark.parametrize("names", [("a-owner", "b-user"), ("b-owner", "a-user")])
def test_hooks_of_a_plugin_in_either_order(site, names):
    owner, user = names
    site.wheel(
        owner,
        """
        import sys, pluggy

        @pluggy.HookspecMarker("rushlight")
        def rushlight_owned(x): ...

        def rushlight_addhooks(manager):
            manager.add_hookspecs(sys.modules[__name__])
        """,
    )
    site.wheel(user, "def rushlight_owned(x):\n    return x + 1\n")
    out = site.run(
        """
        from rushlight import _registry
        manager = _registry.manager()
        manager.load_all()
        print(manager.hook.rushlight_owned(x=1))
        """
    )
    assert out == "[2]\n"


def test_kernels_come_with_the_device(site):
    site.wheel(
        "alpha",
        """
        import numpy as np
        from rushlight.plugin import Backend, Kernel

        class Device(Backend):
            name = "alpha"
            xp = np

        def rushlight_register_backends():
            return [Device]

        def rushlight_register_kernels(device_type):
            print("asked for", device_type)
            return [Kernel("neg", lambda x: x * 0 - 7)] if device_type == "alpha" else []
        """,
    )
    site.wheel(
        "beta",
        """
        from rushlight.plugin import Kernel

        def rushlight_register_kernels(device_type):
            return [Kernel("neg", lambda x: 1)] if device_type == "alpha" else None
        """,
    )
    out = site.run(
        """
        import rushlight
        rushlight.device("alpha")
        print("not yet open")
        x = rushlight.ones(2, device="alpha")
        print(rushlight.neg(x).cpu())
        print(*(plugin.error for plugin in rushlight.plugin.plugins() if plugin.name == "beta"))
        """,
        warnings="ignore",
    )
    assert out.splitlines() == [
        "asked for cpu",
        "asked for meta",
        "not yet open",
        "asked for alpha",
        "tensor([-7., -7.])",
        "beta: neg has a kernel on 'alpha', alpha registers it too. Pass override=True to replace it.",
    ]


def test_device_that_is_not_available(site):
    site.wheel(
        "alpha",
        """
        from rushlight.plugin import Backend, Unavailable

        class Device(Backend):
            name = "alpha"

            @classmethod
            def probe(cls):
                return Unavailable("no board is plugged in")

        def rushlight_register_backends():
            return [Device]
        """,
    )
    out = site.run(
        """
        import rushlight
        try:
            rushlight.ones(2, device="alpha")
        except RuntimeError as error:
            print(error)
        """
    )
    assert out == "no board is plugged in; device type 'alpha' is not available.\n"


def test_threads_that_ask_at_once(site):
    site.wheel("alpha", "import time\ntime.sleep(0.2)\n" + BACKEND.format(name="alpha"))
    out = site.run(
        """
        import rushlight
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(4) as pool:
            print({str(d) for d in pool.map(rushlight.device, ["alpha"] * 4)})
        """
    )
    assert out == "{'alpha'}\n"


def test_the_cpu_stands_in_where_a_backend_allows_it(site):
    site.wheel(
        "alpha",
        """
        import numpy as np
        from rushlight.plugin import Backend, Op

        class Device(Backend):
            name = "alpha"
            xp = np

        def rushlight_register_backends():
            return [Device]

        def rushlight_register_ops():
            op = Op("alpha::host_only(Tensor self, Tensor[] more) -> Tensor")
            return [op.kernel("cpu", lambda x, more: x + more[0])]
        """,
    )
    out = site.run(
        """
        import rushlight, warnings
        x = rushlight.ones(2, device="alpha")
        op = rushlight.ops.alpha.host_only
        try:
            op(x, [x])
        except NotImplementedError as error:
            print(error)
        rushlight.plugin.backend("alpha").fallback = True
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            y = op(op(x, [x]), [x])
        print(y.device, y._array(), *(warning.message for warning in caught))
        """
    )
    assert out.splitlines() == [
        "alpha::host_only: no kernel for device type 'alpha', got a call on alpha:0. "
        "A plugin gives one through rushlight_register_kernels('alpha').",
        "alpha:0 [3. 3.] alpha::host_only: device type 'alpha' has no kernel for it, "
        "the CPU stands in through a copy each way.",
    ]
