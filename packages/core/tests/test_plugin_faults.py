"""Plugins that misbehave: the error names plugin, wheel and fault, the process lives and other devices work."""

import pytest

HEAD = """
import time
import numpy as np
import rushlight
from rushlight.plugin import Available, Backend, Kernel, Op, Unavailable

def rushlight_register_backends():
    return [Device]
"""
DEVICE = (
    HEAD
    + """
class Device(Backend):
    name = "bad"
    xp = np
"""
)
GOOD = DEVICE.replace('"bad"', '"good"')
STATE = """
import rushlight, warnings
warnings.simplefilter("ignore")

def attempt(fn):
    try:
        print(fn())
    except Exception as error:
        print(type(error).__name__, error)
        for note in getattr(error, "__notes__", ()):
            print("note:", note)
"""
BAD = "device type 'bad' of plugin 'bad' (bad-wheel 2.0)"
OPS = """def rushlight_register_ops():
    good = Op("bad::good(Tensor self) -> Tensor", family=rushlight.plugin.pointwise()).array(lambda xp, x: x)
    return """
ALIVE = "\nprint((rushlight.ones(2, device='good') + 1).cpu().tolist(), (rushlight.ones(2) + 1).tolist())\n"


def run(site, bad, code, **env):
    """What a program prints beside a bad plugin of version 2.0 and a good one."""
    site.wheel("bad-wheel", bad, version="2.0", entry="bad")
    site.wheel("good-wheel", GOOD, entry="good")
    lines = site.run(STATE + code + ALIVE, **env).splitlines()
    assert lines[-1] == "[2.0, 2.0] [2.0, 2.0]"
    return lines[:-1]


def method(text):
    """The device with a method replaced."""
    return DEVICE + "\n".join(f"    {line}" for line in text.splitlines()) + "\n"


def kernels(text):
    """The device with one kernel."""
    return (
        DEVICE
        + f"""
def rushlight_register_kernels(device_type):
    return [Kernel({text})] if device_type == "bad" else []
"""
    )


@pytest.mark.parametrize("place", ["module", "hook"])
def test_hang_while_loading(site, place):
    bad = "import time\ntime.sleep(60)\n" if place == "module" else DEVICE.replace("return [Device]", "time.sleep(60)")
    out = run(site, bad, "attempt(lambda: rushlight.device('bad'))", RUSHLIGHT_PLUGIN_SECONDS="0.5")
    assert out == [
        "RuntimeError Expected one of cpu, cuda, good, meta device type at start of device string: bad",
        "Failed: plugin 'bad' (bad-wheel 2.0): PluginError: plugin 'bad' (bad-wheel 2.0) does not return in 0.5 s. "
        "Give it longer with RUSHLIGHT_PLUGIN_SECONDS=60, leave it out with RUSHLIGHT_PLUGINS, or uninstall it.",
    ]


def test_plugin_that_comes_too_late_is_not_registered(site):
    site.wheel("slow", GOOD + "time.sleep(0.6)\n")
    out = site.run(
        STATE
        + """
import time
attempt(lambda: rushlight.device("good").type)
time.sleep(1)
attempt(lambda: rushlight.device("good").type)
""",
        RUSHLIGHT_PLUGIN_SECONDS="0.2",
    )
    assert out.count("Expected one of cpu, cuda, meta device type") == 2


def test_plugin_whose_package_uses_its_own_device(site):
    site.wheel("own", DEVICE + "print(rushlight.ones(2, device='bad').cpu())\n")
    assert site.run("import own") == "tensor([1., 1.])\n"


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ("raise OSError('no driver')", "cannot be probed: OSError: no driver"),
        ("time.sleep(60)", "cannot be probed: PluginError: probe() of plugin 'bad' (bad-wheel 2.0) does not return in"),
        ("return True", "cannot be probed: probe() must return Available or Unavailable, got True"),
    ],
)
def test_probe(site, body, fault):
    bad = method(f"@classmethod\ndef probe(cls):\n    {body}")
    code = "attempt(lambda: rushlight.ones(2, device='bad'))\nprint(rushlight.testing.get_all_device_types())"
    error, devices = run(site, bad, code, RUSHLIGHT_PLUGIN_SECONDS="0.5")
    assert error.startswith(f"RuntimeError plugin 'bad' (bad-wheel 2.0) {fault}")
    assert error.endswith("; device type 'bad' is not available.")
    assert devices == "['cpu', 'good']"


@pytest.mark.parametrize("body", ["raise OSError('no driver')", "import module_that_was_uninstalled"])
def test_open(site, body):
    out = run(site, method(f"def open(self):\n    {body}"), "attempt(lambda: rushlight.ones(2, device='bad'))")
    fault = "OSError: no driver" if "raise" in body else "ModuleNotFoundError: No module named"
    assert out[0].startswith(f"PluginError {BAD} does not open: {fault}")


@pytest.mark.parametrize("place", ["open", "kernels"])
def test_hang_while_opening(site, place):
    bad = method("def open(self):\n    time.sleep(60)")
    if place == "kernels":
        bad = DEVICE + "def rushlight_register_kernels(device_type):\n    device_type == 'bad' and time.sleep(60)\n"
    code = "attempt(lambda: rushlight.ones(2, device='bad').cpu().tolist())\nprint(rushlight.plugin.load('bad').error)"
    first, error = run(site, bad, code, RUSHLIGHT_PLUGIN_SECONDS="0.5")
    late = "plugin 'bad' (bad-wheel 2.0) does not return in 0.5 s. Give it longer with RUSHLIGHT_PLUGIN_SECONDS=60,"
    if place == "kernels":  # the device works without them
        assert first == "[1.0, 1.0]"
        assert error.startswith(late)
    else:
        assert first.startswith(f"PluginError {BAD} does not open: PluginError: open() of {late}")
        assert error == "None"


def test_open_that_uses_another_device_and_another_wheel(site):
    body = "def open(self):\n    print(rushlight.plugin.load('late'), rushlight.ones(2, device='good').device)"
    site.wheel("late-wheel", "from rushlight.plugin import Format\n", entry="late")
    (out,) = run(site, method(body), "rushlight.ones(2, device='bad')")
    assert out.endswith(" good:0")


def test_threads_open_a_device_once(site):
    bad = method("def open(self):\n    time.sleep(0.2)\n    print('opened')")
    code = """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(4) as pool:
    print([x.cpu().tolist() for x in pool.map(lambda i: rushlight.full((1,), i, device="bad"), range(4))])
"""
    assert run(site, bad, code) == ["opened", "[[0], [1], [2], [3]]"]


def test_uninstalled_before_it_is_loaded(site):
    code = """
import pathlib, shutil
rushlight.plugin.plugins()
pathlib.Path("bad_wheel.py").unlink()
shutil.rmtree("bad_wheel-2.0.dist-info")
print(rushlight.plugin.load("bad").error)
"""
    assert run(site, DEVICE, code) == [
        "plugin 'bad' (bad-wheel 2.0) was uninstalled while this process runs. Restart it."
    ]


def test_uninstalled_while_in_use(site):
    code = """
import pathlib, shutil
x = rushlight.ones(2, device="bad")
pathlib.Path("bad_wheel.py").unlink()
shutil.rmtree("bad_wheel-2.0.dist-info")
print((x + 1).cpu().tolist(), rushlight.device("bad"))
"""
    assert run(site, DEVICE, code) == ["[2.0, 2.0] bad"]


@pytest.mark.parametrize(
    ("replacement", "use", "message"),
    [
        (
            "def wrap(self, array):\n    return array",
            "x.neg()",
            f"TypeError {BAD}: wrap() must return (buffer, dtype name, shape, "
            "strides, offset), got array([-1., -1.], dtype=float32); it was given an array of numpy.ndarray.",
        ),
        (
            "def wrap(self, array):\n    return array, 'float33', (2,), (4,), 0",
            "x.neg()",
            f"TypeError {BAD}: wrap() must return (buffer, dtype name, shape, "
            "strides, offset), got the unknown dtype 'float33'; it was given an array of numpy.ndarray.",
        ),
        (
            "def wrap(self, array):\n    return array, 'float32', (2,), (-4,), 0",
            "x.neg()",
            f"ValueError {BAD}: wrap() must return (buffer, dtype name, "
            "shape, strides, offset), in bytes, no size, stride or offset negative, strides of whole elements; it was "
            "given an array of numpy.ndarray.",
        ),
        (
            "def wrap(self, array):\n    return array, 'float32', (2**40, 2**40), (2**40, 4), 0",
            "x.neg()",
            f"ValueError {BAD}: wrap() must return (buffer, dtype name, "
            "shape, strides, offset), in bytes, no size, stride or offset negative, strides of whole elements; it was "
            "given an array of numpy.ndarray.",
        ),
        (
            "def to_host(self, array):\n    return np.ones((3, 1), 'float64')",
            "x.cpu()",
            f"RuntimeError {BAD}: to_host() must return an ndarray of shape "
            "[2] and dtype float32, got shape [3, 1] and dtype float64.",
        ),
        (
            "def allocate(self, nbytes, index):\n    if nbytes > 8: raise OSError('device lost')\n"
            "    return np.empty(nbytes, 'u1')",
            "rushlight.empty(3, device='bad')",
            f"OSError device lost\nnote: raised by {BAD}",
        ),
        (
            "def to_host(self, array):\n    raise OSError('device lost')",
            "x.tolist()",
            f"OSError device lost\nnote: raised by {BAD}",
        ),
        (
            "def current_device(self):\n    return 'first'",
            "rushlight.empty(2, device='bad').cpu() * 0",
            f"RuntimeError {BAD}: current_device() must return an index from 0 to 127, got 'first'.",
        ),
        (
            "def current_device(self):\n    return 1000",
            "rushlight.empty(2, device='bad').cpu() * 0",
            f"RuntimeError {BAD}: current_device() must return an index from 0 to 127, got 1000.",
        ),
    ],
)
def test_backend_breaks_its_contract(site, replacement, use, message):
    code = f"x = rushlight.ones(2, device='bad:0')\nattempt(lambda: {use})"
    assert "\n".join(run(site, method(replacement), code)) == message


@pytest.mark.parametrize(
    ("kernel", "use", "message"),
    [
        ("'neg', lambda x: 3", "x.neg()", "must return a tensor on bad:0, got a value of type int."),
        ("'neg', lambda x: None", "x.neg()", "must return a tensor on bad:0, got None."),
        ("'neg', lambda x: x.cpu()", "x.neg()", "must return a tensor on bad:0, got one on cpu."),
        (
            "'neg', lambda x: x[None]",
            "x.neg()",
            "must return shape [2] and dtype float32, got shape [1, 2] and dtype float32.",
        ),
        (
            "'neg', lambda x: x.double()",
            "x.neg()",
            "must return shape [2] and dtype float32, got shape [2] and dtype float64.",
        ),
        (
            "'max.dim', lambda x, dim, keepdim: x",
            "x.max(0)",
            "must return a tuple of 2 tensors on bad:0, got a value of",
        ),
        (
            "'max.dim', lambda x, dim, keepdim: (x,)",
            "x.max(0)",
            "must return a tuple of 2 tensors on bad:0, got a tuple of 1",
        ),
        (
            "'max.dim', lambda x, dim, keepdim: (x, x.cpu())",
            "x.max(0)",
            "must return a tuple of 2 tensors on bad:0, got one on cpu.",
        ),
    ],
)
def test_kernel_returns_something_else(site, kernel, use, message):
    name = kernel.split("'")[1]
    (error,) = run(site, kernels(kernel), f"x = rushlight.ones(2, device='bad')\nattempt(lambda: {use})")
    head = f"RuntimeError {name}: the kernel for {BAD} "
    assert error.startswith(head + message)


def test_kernel_raises(site):
    code = "x = rushlight.ones(2, device='bad')\nattempt(lambda: x.neg())"
    assert run(site, kernels("'neg', lambda x: 1 / 0"), code) == [
        "ZeroDivisionError division by zero",
        f"note: raised by {BAD}",
    ]


def test_array_kernel_of_wrong_shape(site):
    bad = (
        DEVICE
        + """
from rushlight.plugin import pointwise

def rushlight_register_ops():
    return [Op("bad::twice(Tensor self) -> Tensor", family=pointwise(), doc="Twice.").array(lambda xp, x: (x + x)[:1])]
"""
    )
    code = "attempt(lambda: rushlight.ops.bad.twice(rushlight.ones(2, device='bad')))"
    assert run(site, bad, "rushlight.plugin.load('bad')\n" + code) == [
        f"RuntimeError bad::twice: the kernel for {BAD} must return shape [2] "
        "and dtype float32, got shape [1] and dtype float32."
    ]


@pytest.mark.parametrize(
    ("hook", "fault"),
    [
        ("def rushlight_register_ops():\n    return 3", "rushlight_register_ops: returns something else than its"),
        ("def rushlight_register_ops():\n    raise KeyError('x')", "KeyError: 'x'"),
        ("def rushlight_register_ops():\n    return [Op('bad::f(Tensr self) -> Tensor')]", "bad::f"),
        ("def rushlight_register_kernels(device_type):\n    return [Kernel('neg', 3)]", "a kernel is a callable or"),
        (f"{OPS}[good, Op('bad::f(Tensor self) -> Tensor').grad(other='grad')]", "bad::f: grad() gives the rule of a"),
        (f"{OPS}[good, Op('bad::f(Tensor self) -> Tensor').grad(self='grad *')]", "bad::f: a gradient rule is an"),
        (f"{OPS}[good, Op('bad::f(Tensor self) -> Tensor').array(3)]", "bad::f: a kernel must be callable, got 3."),
        (f"{OPS}[good, Op('bad::f(Tensor self) -> Tensor').kernel('tpu', abs)]", "bad::f has a kernel for a device"),
        (f"{OPS}[good, Op('bad::good(Tensor self) -> Tensor')]", "'bad::good' is taken, bad-wheel registers it too."),
        (f"{OPS}[good, Op('add.Tensor(Tensor self) -> Tensor')]", "'add.Tensor' is taken, rushlight-core registers"),
    ],
)
def test_hook_is_wrong_and_nothing_of_the_plugin_is_there(site, hook, fault):
    code = """
attempt(lambda: rushlight.device('bad'))
attempt(lambda: rushlight._C.op_info('bad::good'))
print(rushlight.ones(2).neg().tolist())
"""
    *error, op, negated = run(site, DEVICE + hook + "\n", code)
    assert op == "KeyError 'bad::good: no such operator'"
    assert error[0] == "RuntimeError Expected one of cpu, cuda, good, meta device type at start of device string: bad"
    assert error[1].startswith("Failed: plugin 'bad' (bad-wheel 2.0): ")
    assert fault in error[1]
    assert negated == "[-1.0, -1.0]"


@pytest.mark.parametrize(
    ("rule", "fault"),
    [
        ("'nosuch(grad)'", "gradient rule of bad::f: there is no operator or function 'nosuch', got 'nosuch(grad)'."),
        ("'grad * other'", "gradient rule of bad::f: unknown name 'other'; the parameters are self, got"),
        ("'shape(self, grad)'", "gradient rule of bad::f: shape takes 1 positional arguments, got"),
        ("lambda grad, input: grad", "gradient rule of bad::f: unknown name 'input'; the parameters are self, got"),
    ],
)
def test_rule_names_something_unknown(site, rule, fault):
    pytest.importorskip("rushlight.autograd", exc_type=ImportError)
    bad = f"{DEVICE}{OPS}[good, Op('bad::f(Tensor self) -> Tensor', doc='Bad.').grad(self={rule})]\n"
    code = "plugin = rushlight.plugin.load('bad')\nprint(plugin.state, plugin.error)"
    (out,) = run(site, bad, code)
    assert out.startswith(f"failed {fault}")


@pytest.mark.parametrize("first", ["bad", "good"])
def test_rule_names_operators_of_its_plugin_and_of_another(site, first):
    autograd = pytest.importorskip("rushlight.autograd", exc_type=ImportError)
    assert autograd
    ops = {
        "bad": "Op('bad::f(Tensor self) -> Tensor', doc='F.').array(lambda xp, x: x).grad(self='good.g(h(grad))'), "
        "Op('bad::h(Tensor self) -> Tensor', doc='H.').array(lambda xp, x: x * 2)",
        "good": "Op('good::g(Tensor self) -> Tensor', doc='G.').array(lambda xp, x: x * 3)",
    }
    for name, text in ops.items():
        source = f"from rushlight.plugin import Op\ndef rushlight_register_ops():\n    return [{text}]\n"
        site.wheel(f"{name}-wheel", source, entry=name)
    out = site.run(
        f"""
        import rushlight
        print(rushlight.plugin.load("{first}").state, rushlight.plugin.load("bad").state)
        x = rushlight.ones(2, requires_grad=True)
        rushlight.ops.bad.f(x).sum().backward()
        print(x.grad.tolist())
        """
    )
    assert out == "loaded loaded\n[6.0, 6.0]\n"


@pytest.mark.parametrize("name", ["aaa", "zzz"])
def test_default_device_does_not_depend_on_what_is_installed(site, name):
    site.wheel(f"{name}-wheel", DEVICE.replace('"bad"', f'"{name}"'))
    out = site.run(
        f"""
        import rushlight
        rushlight.ones(2, device="{name}")
        print(rushlight.ones(2).device, rushlight.tensor(1).device, rushlight.device("cpu"))
        """
    )
    assert out == "cpu cpu cpu\n"


@pytest.mark.parametrize("first", ["rushlight", "bad_wheel"])
def test_order_of_imports(site, first):
    site.wheel("bad-wheel", DEVICE)
    out = site.run(
        f"import {first}\nimport rushlight, bad_wheel\nprint(rushlight.ones(2, device='bad').cpu().tolist())"
    )
    assert out == "[1.0, 1.0]\n"
