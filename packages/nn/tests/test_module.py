"""Module: its members, calls, hooks, state dicts and printed form."""

import copy
import gc
import pickle
import weakref
from collections import OrderedDict

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.modules import module as module_file


class Scale(nn.Module):
    """One parameter, one buffer."""

    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = nn.Parameter(torch.full((3,), factor))
        self.register_buffer("count", torch.zeros(()))

    def forward(self, x, bias=0):
        return x * self.factor + bias


class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = Scale()
        self.right = nn.Sequential(Scale(3.0), nn.ReLU())

    def forward(self, x):
        return self.right(self.left(x))


# -- members


def test_assignment_registers_by_type():
    m = Scale()
    assert list(m._parameters) == ["factor"]
    assert list(m._buffers) == ["count"]
    m.child = nn.ReLU()
    m.plain = torch.ones(2)
    assert list(m._modules) == ["child"]
    assert "plain" in m.__dict__
    m.extra = nn.Buffer(torch.ones(1), persistent=False)
    assert "extra" in m._buffers
    assert "extra" not in m.state_dict()


def test_a_name_moves_between_the_kinds():
    m = Scale()
    m.factor = None
    assert m._parameters == {"factor": None}
    m.factor = nn.Parameter(torch.ones(1))
    del m.factor
    assert not hasattr(m, "factor")
    m.factor = nn.ReLU()
    assert list(m._modules) == ["factor"]
    m.count = torch.ones(2)
    assert m._buffers["count"].shape == (2,)
    m.later = 3
    m.later = nn.Parameter(torch.ones(1))
    assert "later" not in m.__dict__
    assert m.later is m._parameters["later"]


@pytest.mark.parametrize(("name", "what"), [("factor", "parameter"), ("count", "buffer"), ("child", "child module")])
def test_assignment_of_another_type_is_refused(name, what):
    m = Scale()
    m.child = nn.ReLU()
    with pytest.raises(TypeError, match=f"cannot assign 'int' as {what} '{name}'"):
        setattr(m, name, 3)


def test_members_need_init_first():
    class Early(nn.Module):
        def __init__(self):
            self.weight = nn.Parameter(torch.ones(1))

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__\(\) call"):
        Early()
    for kind in (nn.Parameter(torch.ones(1)), nn.ReLU(), nn.Buffer(torch.ones(1))):
        with pytest.raises(AttributeError, match="before Module"):
            nn.Module.__new__(nn.Module).x = kind


@pytest.mark.parametrize("register", ["register_parameter", "register_buffer", "add_module"])
def test_names_are_checked(register):
    m = Scale()
    with pytest.raises(KeyError, match=r'can.*t contain "."'):
        getattr(m, register)("a.b", None)
    with pytest.raises(KeyError, match="be empty string"):
        getattr(m, register)("", None)
    with pytest.raises(TypeError, match="should be a string"):
        getattr(m, register)(3, None)
    with pytest.raises(KeyError, match="already exists"):
        getattr(m, register)("forward", None)


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="'Scale' object has no attribute 'weights'"):
        _ = Scale().weights
    with pytest.raises(AttributeError, match="weights"):
        del Scale().weights


def test_getattr_of_a_subclass_reaches_members_through_super():
    class Wrapper(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.module, name)

    wrapped = Wrapper(Scale())
    assert wrapped.factor is wrapped.module.factor
    with pytest.raises(AttributeError):
        _ = wrapped.nothing


def test_setattr_of_a_subclass_reaches_registration_through_super():
    seen = []

    class Watch(nn.Module):
        def __setattr__(self, name, value):
            seen.append(name)
            super().__setattr__(name, value)

    m = Watch()
    m.weight = nn.Parameter(torch.ones(1))
    assert "weight" in seen
    assert list(m._parameters) == ["weight"]


def test_properties_and_slots_of_subclasses_work():
    class WithProperty(Scale):
        @property
        def doubled(self):
            return self._doubled

        @doubled.setter
        def doubled(self, value):
            self._doubled = 2 * value

    m = WithProperty()
    m.doubled = 4
    assert m.doubled == 8


def test_init_subclass_of_mixins_runs():
    made = []

    class Registry:
        def __init_subclass__(cls, key, **kwargs):
            super().__init_subclass__(**kwargs)
            made.append(key)

    class Layer(nn.Module, Registry, key="layer"):
        pass

    class Generic(nn.Module):
        def __class_getitem__(cls, item):
            return cls

    assert made == ["layer"]
    assert isinstance(Generic[int](), nn.Module)


def test_dir_lists_members():
    names = dir(Tree())
    assert {"left", "right", "forward", "training"} <= set(names)
    assert "0" not in dir(nn.Sequential(nn.ReLU()))


def test_registered_tensor_must_be_a_leaf():
    x = nn.Parameter(torch.ones(1))
    with pytest.raises(TypeError, match=r"torch.nn.Parameter or None required"):
        nn.Module().register_parameter("x", x * 2)


# -- lookup and walks


def test_paths():
    m = Tree()
    assert m.get_submodule("right.0") is m.right[0]
    assert m.get_submodule("") is m
    assert m.get_parameter("right.0.factor") is m.right[0].factor
    assert m.get_buffer("left.count") is m.left.count
    for call, path in ((m.get_submodule, "right.5"), (m.get_parameter, "left.count"), (m.get_buffer, "left.factor")):
        with pytest.raises(AttributeError):
            call(path)
    m.set_submodule("right.1", nn.Tanh())
    assert isinstance(m.right[1], nn.Tanh)
    with pytest.raises(ValueError, match="without a target"):
        m.set_submodule("", nn.Tanh())


def test_walks_visit_parents_first_and_each_once():
    shared = Scale()
    m = nn.Sequential(shared, nn.Sequential(shared, nn.ReLU()))
    assert [name for name, _ in m.named_modules()] == ["", "0", "1", "1.1"]
    assert [name for name, _ in m.named_modules(remove_duplicate=False)] == ["", "0", "1", "1.0", "1.1"]
    assert [name for name, _ in m.named_parameters()] == ["0.factor"]
    assert [name for name, _ in m.named_parameters("net", remove_duplicate=False)] == ["net.0.factor", "net.1.0.factor"]
    assert [name for name, _ in m.named_buffers()] == ["0.count"]
    assert list(m.parameters(recurse=False)) == []
    assert [name for name, _ in m.named_children()] == ["0", "1"]
    assert len(list(m.modules())) == 4


def test_apply_goes_bottom_up():
    seen = []
    m = Tree()
    assert m.apply(lambda module: seen.append(type(module).__name__)) is m
    assert seen == ["Scale", "Scale", "ReLU", "Sequential", "Tree"]


def test_train_and_eval_reach_all():
    m = Tree().eval()
    assert not any(module.training for module in m.modules())
    m.train()
    assert all(module.training for module in m.modules())
    with pytest.raises(ValueError, match="training mode is expected to be boolean"):
        m.train(1)


def test_requires_grad_and_zero_grad():
    m = Tree()
    m(torch.ones(3)).sum().backward()
    assert all(p.grad is not None for p in m.parameters())
    m.zero_grad(set_to_none=False)
    assert all(p.grad.tolist() == [0, 0, 0] for p in m.parameters())
    m.zero_grad()
    assert all(p.grad is None for p in m.parameters())
    assert not any(p.requires_grad for p in m.requires_grad_(False).parameters())


def test_casts_keep_the_parameter_objects():
    m = Scale()
    factor = m.factor
    m.factor.grad = torch.ones(3)
    m.register_buffer("number", torch.tensor(3))
    assert m.double() is m
    assert m.factor is factor
    assert m.factor.dtype == m.factor.grad.dtype == m.count.dtype == torch.float64
    assert m.number.dtype == torch.int64
    assert m.to(torch.float16).factor.dtype == torch.float16
    assert m.to("cpu", torch.float32).factor.dtype == torch.float32
    assert m.to(torch.zeros(1, dtype=torch.float64)).factor.dtype == torch.float64
    assert m.to("meta").factor.device.type == "meta"
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        m.to(torch.int64)
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        m.to(object())


# -- calls and hooks


def test_call_runs_forward_with_all_arguments():
    m = Scale()
    assert m(torch.ones(3), 1).tolist() == [3, 3, 3]
    assert m(torch.ones(3), bias=1).tolist() == [3, 3, 3]
    with pytest.raises(NotImplementedError, match='missing the required "forward"'):
        nn.Module()(1)


def test_forward_may_be_replaced_on_the_instance():
    m = Scale()
    m.forward = lambda x: x + 1
    assert m(torch.ones(1)).tolist() == [2]

    class Many(nn.Module):
        def forward(self, *args):
            return args

    assert Many()(*range(20)) == tuple(range(20))


def test_forward_hooks_run_in_order_and_may_replace():
    m = Scale()
    order = []
    first = m.register_forward_pre_hook(lambda mod, args: order.append("pre") or (args[0] + 1,))
    m.register_forward_hook(lambda mod, args, out: order.append("post") or out * 10)
    m.register_forward_hook(lambda mod, args, out: order.append("front"), prepend=True)
    assert m(torch.zeros(3)).tolist() == [20, 20, 20]
    assert order == ["pre", "front", "post"]
    first.remove()
    assert m(torch.zeros(3)).tolist() == [0, 0, 0]


def test_hooks_with_keywords():
    m = Scale()
    m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {"bias": 5}), with_kwargs=True)
    m.register_forward_hook(lambda mod, args, kwargs, out: out + kwargs["bias"], with_kwargs=True)
    assert m(torch.zeros(3), bias=0).tolist() == [10, 10, 10]
    m.register_forward_pre_hook(lambda mod, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        m(torch.zeros(3))


def test_always_called_hooks_run_when_forward_raises():
    class Broken(nn.Module):
        def forward(self, x):
            raise KeyError("broken")

    m, seen = Broken(), []
    m.register_forward_hook(lambda mod, args, out: seen.append(out), always_call=True)
    m.register_forward_hook(lambda mod, args, out: seen.append("not reached"))
    with pytest.raises(KeyError):
        m(1)
    assert seen == [None]


def test_hooks_put_into_the_dict_by_hand_run():
    m, seen = Scale(), []
    m._forward_hooks = OrderedDict({0: lambda mod, args, out: seen.append(1)})
    m(torch.ones(3))
    assert seen == [1]
    m._forward_hooks.clear()
    m(torch.ones(3))
    assert seen == [1]


def test_global_hooks_see_every_module():
    seen = []
    handles = [
        module_file.register_module_forward_pre_hook(lambda mod, args: seen.append(type(mod).__name__)),
        module_file.register_module_forward_hook(lambda mod, args, out: seen.append("done")),
    ]
    try:
        nn.Sequential(nn.ReLU())(torch.ones(1))
    finally:
        for handle in handles:
            handle.remove()
    assert seen == ["Sequential", "ReLU", "done", "done"]
    nn.ReLU()(torch.ones(1))
    assert len(seen) == 4


def test_registration_hooks():
    seen = []
    handles = [
        getattr(module_file, f"register_module_{kind}_registration_hook")(lambda mod, name, value: seen.append(name))
        for kind in ("parameter", "buffer", "module")
    ]
    try:
        nn.Sequential(Scale())
    finally:
        for handle in handles:
            handle.remove()
    assert seen == ["factor", "count", "0"]


def test_full_backward_hooks_see_and_replace_gradients():
    m, seen = Scale(2.0), {}
    m.register_full_backward_pre_hook(lambda mod, grad_output: (grad_output[0] * 10,))

    def hook(mod, grad_input, grad_output):
        seen["in"], seen["out"] = grad_input[0].tolist(), grad_output[0].tolist()
        return (grad_input[0] + 1,)

    handle = m.register_full_backward_hook(hook)
    x = torch.ones(3, requires_grad=True)
    m(x).sum().backward()
    assert seen == {"in": [20, 20, 20], "out": [10, 10, 10]}
    assert x.grad.tolist() == [21, 21, 21]
    assert m.factor.grad.tolist() == [10, 10, 10]
    handle.remove()
    with pytest.raises(RuntimeError, match="Cannot use both"):
        m.register_backward_hook(hook)


def test_full_backward_hook_without_gradients_of_inputs():
    m, seen = Scale(), []
    m.register_full_backward_hook(
        lambda mod, grad_input, grad_output: seen.append((grad_input, grad_output[0].tolist()))
    )
    m(torch.ones(3)).sum().backward()
    assert seen == [((None,), [1, 1, 1])]


def test_backward_hook_with_a_wrong_number_of_gradients():
    m = Scale()
    m.register_full_backward_hook(lambda mod, grad_input, grad_output: (None, None))
    with pytest.raises(RuntimeError, match="invalid number of grad_input, got 2, but expected 1"):
        m(torch.ones(3, requires_grad=True)).sum().backward()


# -- state dicts


def test_state_dict_shares_memory_and_knows_versions():
    m = Tree()
    state = m.state_dict()
    assert list(state) == ["left.factor", "left.count", "right.0.factor", "right.0.count"]
    assert state["left.factor"].data_ptr() == m.left.factor.data_ptr()
    assert not state["left.factor"].requires_grad
    assert m.state_dict(keep_vars=True)["left.factor"] is m.left.factor
    assert state._metadata["right.0"] == {"version": 1}
    assert next(iter(m.state_dict(prefix="net."))) == "net.left.factor"


def test_state_dict_asks_modules_that_have_their_own():
    class Own(Scale):
        def _save_to_state_dict(self, destination, prefix, keep_vars):
            destination[prefix + "own"] = torch.ones(1)

    class Whole(Scale):
        def state_dict(self, *args, destination=None, prefix="", keep_vars=False):
            destination[prefix + "whole"] = torch.ones(1)

    hooked = Scale()
    hooked.register_state_dict_post_hook(lambda mod, state, prefix, meta: state.__delitem__(prefix + "count"))
    m = nn.Sequential(nn.Sequential(Own(), Whole()), hooked, None)
    m[1].register_buffer("hidden", torch.ones(1), persistent=False)
    assert list(m.state_dict()) == ["0.0.own", "0.1.whole", "1.factor"]
    assert list(m.state_dict()._metadata) == ["", "0", "0.0", "1"]


def test_load_state_dict_copies():
    a, b = Tree(), Tree()
    with torch.no_grad():
        a.left.factor.fill_(7)
    assert str(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    assert b.left.factor.tolist() == [7, 7, 7]
    a.left.factor.data.fill_(8)
    assert b.left.factor.tolist() == [7, 7, 7]


def test_load_state_dict_lists_all_that_is_wrong():
    m = Tree()
    state = m.state_dict()
    del state["left.count"]
    state["right.0.nothing"] = torch.ones(1)
    state["right.0.factor"] = torch.ones(4)
    state["left.factor"] = [1, 2, 3]
    with pytest.raises(RuntimeError) as error:
        m.load_state_dict(state)
    text = str(error.value)
    assert text.startswith("Error(s) in loading state_dict for Tree:\n\t")
    assert 'Missing key(s) in state_dict: "left.count". ' in text
    assert 'Unexpected key(s) in state_dict: "right.0.nothing". ' in text
    assert "size mismatch for right.0.factor: copying a param with shape torch.Size([4])" in text
    assert "expected torch.Tensor or Tensor-like object from checkpoint but received <class 'list'>" in text
    del state["right.0.factor"], state["left.factor"]
    result = m.load_state_dict(state, strict=False)
    assert result.missing_keys == ["left.factor", "left.count", "right.0.factor"]
    assert result.unexpected_keys == ["right.0.nothing"]
    with pytest.raises(TypeError, match="to be dict-like"):
        m.load_state_dict([1])


def test_load_state_dict_may_assign():
    m = Scale()
    given = {"factor": torch.ones(3), "count": torch.ones(())}
    m.load_state_dict(given, assign=True)
    assert isinstance(m.factor, nn.Parameter)
    assert m.factor.data_ptr() == given["factor"].data_ptr()
    assert m.count is given["count"]


def test_extra_state():
    class Counter(nn.Module):
        steps = 0

        def get_extra_state(self):
            return {"steps": self.steps}

        def set_extra_state(self, state):
            self.steps = state["steps"]

    a, b = nn.Sequential(Counter()), nn.Sequential(Counter())
    a[0].steps = 5
    state = a.state_dict()
    assert state == {"0._extra_state": {"steps": 5}}
    b.load_state_dict(state)
    assert b[0].steps == 5
    with pytest.raises(RuntimeError, match="Missing key"):
        b.load_state_dict({})


def test_state_dict_hooks():
    m = Scale()
    m.register_state_dict_pre_hook(lambda mod, prefix, keep_vars: mod.count.fill_(4))
    m.register_state_dict_post_hook(lambda mod, state, prefix, meta: state.update({prefix + "more": torch.ones(1)}))
    state = m.state_dict()
    assert state["count"].item() == 4
    assert "more" in state
    seen = []
    m.register_load_state_dict_pre_hook(lambda mod, state, *rest: seen.append(mod) or state.pop("more"))
    m.register_load_state_dict_post_hook(lambda mod, keys: seen.append(keys.missing_keys))
    m.load_state_dict(state)
    assert seen == [m, []]
    m.register_state_dict_post_hook(lambda *args: 3)
    with pytest.raises(RuntimeError, match="must return None"):
        m.state_dict()


# -- copies, memory, printed form


def test_copies_and_pickles_are_whole_and_apart():
    m = Tree()
    m.left.register_forward_hook(double_output)
    for other in (copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert list(other.state_dict()) == list(m.state_dict())
        assert other.left.factor.data_ptr() != m.left.factor.data_ptr()
        assert isinstance(other.left.factor, nn.Parameter)
        assert other.left.factor.requires_grad
        assert other(torch.ones(3)).tolist() == m(torch.ones(3)).tolist() == [12, 12, 12]
    shallow = copy.copy(m)
    assert shallow.left is m.left


def double_output(module, args, output):
    return output * 2


def test_shared_parameters_stay_shared_in_copies():
    m = nn.Sequential(Scale(), Scale())
    m[1].factor = m[0].factor
    other = copy.deepcopy(m)
    assert other[0].factor is other[1].factor


def test_a_module_is_freed_without_the_collector():
    gc.disable()
    try:
        m = Tree()
        ref = weakref.ref(m)
        m(torch.ones(3))
        del m
        assert ref() is None
    finally:
        gc.enable()


def test_printed_form():
    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.ReLU(), nn.Flatten())
            self.head = nn.ModuleList([nn.Tanh(), nn.Tanh(), nn.ReLU(inplace=True)])

    assert repr(Named()) == (
        "Named(\n"
        "  (body): Sequential(\n"
        "    (0): ReLU()\n"
        "    (1): Flatten(start_dim=1, end_dim=-1)\n"
        "  )\n"
        "  (head): ModuleList(\n"
        "    (0-1): 2 x Tanh()\n"
        "    (2): ReLU(inplace=True)\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Module()) == "Module()"


def test_errors_name_the_layer_and_its_input():
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(5, 4))
    with pytest.raises(RuntimeError, match=r"\(2x4 and 5x4\) \[Linear\(in_features=5, .* was given float32 \[2, 4\]\]"):
        net(torch.ones(2, 3))
    with pytest.raises(RuntimeError, match=r"Linear\(in_features=3, .* was given float64 \[2, 3\]"):
        net(torch.ones(2, 3, dtype=torch.float64))

    class Own(torch.nn.Module):
        def forward(self, x):
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError) as error:
        Own()(1)
    assert str(error.value) == "mine"


def test_a_module_that_was_never_initialised_explains_nothing():
    class Bare(nn.Linear):
        def __init__(self):
            pass

    with pytest.raises(AttributeError, match="has no attribute 'weight'"):
        Bare()(torch.ones(1))
