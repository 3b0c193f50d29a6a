"""Random programs of views, writes, hooks and backward passes: values, gradients and errors are PyTorch's."""

import random
import warnings

import numpy as np
import pytest
import torch

import rushlight

words = str.split

PROGRAMS = 1000
STATEMENTS = 20

UNARY = words("tanh sin cos sigmoid abs neg exp relu square atan sinh erf log1p sqrt reciprocal softplus sgn")
COMPLEX_UNARY = words("tanh sin cos abs neg exp square sinh sqrt reciprocal sgn real imag angle")
WRITES = words("tanh_ sin_ neg_ exp_ relu_ sigmoid_ abs_ zero_ square_ sqrt_ detach_")
BINARY = words("add sub mul div maximum minimum atan2 hypot")
COMPLEX_BINARY = ["add", "sub", "mul", "div"]
REDUCTIONS = words("sum mean prod amax logsumexp var cumsum cumprod std norm softmax log_softmax flip")
COMPLEX_REDUCTIONS = ["sum", "mean", "prod", "cumsum", "norm", "flip"]
SHAPES = ((), (1,), (3,), (4,), (1, 3), (4, 1), (2, 3), (4, 3), (2, 4, 3), (2, 1, 3), (0, 3))


class Program:
    """Statements that make sense for what the ones before computed, which PyTorch is asked for."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.scope = scope(torch)
        self.lines, self.names = [], []
        for _ in range(self.random.choice((2, 3))):
            self.leaf()
        for _ in range(STATEMENTS):
            self.random.choice(STATEMENT_KINDS)(self)

    def new(self, expression):
        name = f"v{len(self.names)}"
        if self.run(f"{name} = {expression}"):
            if isinstance(self.scope[name], torch.Tensor) and self.scope[name].numel() < 200:
                self.names.append(name)
            else:
                self.run(f"del {name}")

    def run(self, line):
        self.lines.append(line)
        return outcome(self.scope, line) is None

    def pick(self, fits=lambda t: True):
        names = [n for n in self.names if usable(self.scope[n]) and fits(self.scope[n])]
        return self.random.choice(names) if names else None

    def dim(self, name):
        n = max(self.scope[name].ndim, 1)
        return self.random.randrange(-n, n)

    def number(self):
        return round(self.random.uniform(-2, 2), 2)

    def beside(self, name):
        """A tensor that broadcasts with another."""

        def fits(t):
            try:
                torch.broadcast_shapes(t.shape, self.scope[name].shape)
            except RuntimeError:
                return self.random.random() < 0.02
            return True

        return self.pick(fits)

    def unary_names(self, name, real, complex_):
        return complex_ if self.scope[name].is_complex() else real

    # ---- kinds of statements

    def leaf(self):
        dtype = self.random.choice(("float64", "float64", "float64", "complex128"))
        shape, seed = self.random.choice(SHAPES), self.random.randrange(10**6)
        self.new(f"leaf({seed}, {shape}, '{dtype}', {self.random.random() < 0.8})")

    def unary(self):
        x = self.pick()
        name = self.random.choice(self.unary_names(x, UNARY, COMPLEX_UNARY))
        self.new(f"lib.nn.functional.softplus({x})" if name == "softplus" else f"lib.{name}({x})")

    def binary(self):
        x = self.pick()
        y = self.beside(x)
        names = COMPLEX_BINARY if any(self.scope[n].is_complex() for n in (x, y)) else BINARY
        self.new(f"lib.{self.random.choice(names)}({x}, {y})")

    def scalar(self):
        x = self.pick()
        self.new(self.random.choice((f"{x} * {self.number()}", f"{self.number()} - {x}", f"{x} ** 2", f"{x} ** 3.0")))

    def reduction(self):
        x = self.pick()
        name = self.random.choice(self.unary_names(x, REDUCTIONS, COMPLEX_REDUCTIONS))
        if name == "flip":
            return self.new(f"{x}.flip(({self.dim(x)},))")
        arguments = {"norm": "2, "}.get(name, "") + f"{self.dim(x)}"
        if name not in ("cumsum", "cumprod", "softmax", "log_softmax") and self.random.random() < 0.5:
            arguments += ", keepdim=True"
        self.new(f"{x}.sum()" if self.random.random() < 0.2 else f"{x}.{name}({arguments})")

    def view(self):
        x = self.pick()
        self.new(self.view_of(x))

    def view_of(self, x):
        t, d = self.scope[x], self.dim(x)
        size = t.shape[d] if t.ndim else 1
        start = self.random.randint(0, size)
        choices = [
            f"{x}[None]",
            f"{x}.unsqueeze({d})",
            f"{x}.squeeze({d})",
            f"{x}.reshape(-1)",
            f"{x}.flatten()",
            f"{x}.view({t.numel()})",
            f"{x}.expand(2, {'*' if t.ndim else ''}{tuple(t.shape) if t.ndim else 1})",
            f"{x}.transpose({d}, 0)",
            f"{x}.narrow({d}, {start}, {size - start})",
            f"{x}.select({d}, {self.random.randrange(max(size, 1))})",
            f"{x}.movedim({d}, 0)",
            f"{x}.detach()",
            f"{x}.view_as({x})",
            f"{x}.swapaxes({d}, 0)",
            f"{x}.squeeze()",
            f"{x}.ravel()",
            f"{x}.expand_as({x})",
            f"{x}[...]",
            f"lib.atleast_2d({x})",
            f"lib.broadcast_tensors({x}, {self.beside(x)})[0]",
        ]
        if t.ndim:
            choices += [
                f"{x}[{self.random.randrange(-size, size) if size else 0}]",
                f"{x}[{start}:]",
                f"{x}[..., ::2]",
                f"{x}[:, None]",
                f"{x}.unflatten({d}, ({size}, 1))",
                f"{x}.tensor_split(2, {d})[1]",
                f"{x}.unbind({d})[0]",
                f"{x}.split(2, {d})[-1]",
                f"{x}.chunk(2, {d})[0]",
                f"{x}.unfold({d}, {min(2, size)}, 1)",
                f"{x}.as_strided(({min(t.numel(), 2)},), (1,))",
            ]
        if t.ndim == 2:
            choices += [f"{x}.t()", f"{x}.diagonal()", f"{x}.T"]
        if t.is_complex():
            choices += [f"lib.view_as_real({x})", f"{x}.real", f"{x}.imag"] * 2
        elif t.numel() and t.shape[-1:] == (2,):
            choices += [f"lib.view_as_complex({x})"] * 3
        return self.random.choice(choices)

    def write(self):
        x = self.pick(lambda t: not t.is_inference())
        if x is None:
            return
        t = self.scope[x]
        y = self.beside(x)
        target = self.view_of(x) if self.random.random() < 0.4 else x
        name = self.random.choice(WRITES)
        choices = [
            f"{target}.{name}()",
            f"{target}.mul_({self.number()})",
            f"{target}.add_({y}, alpha={self.number()})",
            f"{target}.mul_({y})",
            f"{target}.copy_({y})",
            f"{target}.fill_({self.number()})",
            f"{target}.masked_fill_({y} != {y}.detach(), {self.number()})",
            f"{x}[...] = {y}",
            f"lib.tanh({x}, out={self.pick(lambda u: u.shape == t.shape)})",
        ]
        if t.ndim and t.shape[0]:
            choices += [
                f"{x}[{self.random.randrange(t.shape[0])}] = {self.number()}",
                f"{x}[0] = {y}",
                f"{x}[lib.tensor([0, {t.shape[0] - 1}])] = {self.number()}",
                f"{x}.index_add_(0, lib.tensor([0, 0]), {x}.detach()[:1].clone().expand(2, *{tuple(t.shape[1:])}))",
                f"{x}.index_fill_(0, lib.tensor([0]), {self.number()})",
            ]
        if not t.is_complex():
            choices += [f"{x}[{x} > 0] = {self.number()}", f"{target}.clamp_(-1, 1)"]
        if self.random.random() < 0.1:  # of tensors that have no views: PyTorch crashes with others
            for name in ("unsqueeze_(0)", "squeeze_()", f"transpose_(0, {self.dim(x)})"):
                self.new(f"{x}.clone().{name}")
        line = self.random.choice(choices)
        if self.random.random() < 0.15:
            line = f"with lib.no_grad(): {line}"
        self.run(line)

    def indexing(self):
        x = self.pick(lambda t: t.ndim and t.shape[0])
        if x is None:
            return
        t = self.scope[x]
        last = t.shape[0] - 1
        choices = [
            f"{x}[lib.tensor([0, {last}, 0])]",
            f"{x}.index_select(0, lib.tensor([{last}, 0]))",
            f"{x}.take(lib.tensor([0, {t.numel() - 1 if t.numel() else 0}]))",
            f"lib.cat([{x}, {x} * 2])",
            f"lib.stack([{x}, {self.pick(lambda u: u.shape == t.shape)}])",
            f"lib.where({x}.detach().abs() > 0.5, {x}, {self.beside(x)})",
            f"{x}.gather(0, lib.zeros({(1, *t.shape[1:])}, dtype=lib.int64))",
            f"{x}.roll(1, 0)",
            f"{x}.repeat(2, {'1, ' * (t.ndim - 1)})",
            f"{x}.clone()",
            f"{x}.contiguous()",
        ]
        if not t.is_complex():
            choices += [f"{x}[{x} > 0]", f"{x}.sort(0)[0]", f"{x}.max(0)[0]", f"{x}.topk(1, 0)[0]"]
        self.new(self.random.choice(choices))

    def product(self):
        x = self.pick(lambda t: 0 < t.ndim < 3)  # of others PyTorch may keep a copy, and not see writes
        y = self.pick(lambda t: 0 < t.ndim < 3 and x and t.dtype == self.scope[x].dtype)
        if y:
            self.new(
                f"lib.matmul({x}, {y})" if self.random.random() < 0.7 else f"lib.matmul({x}, {y}.transpose(-1, 0))"
            )

    def hook(self):
        x = self.pick(lambda t: not t._is_view())  # PyTorch crashes with some views
        if x is None:
            return
        self.run(
            self.random.choice(
                (
                    f"{x}.register_hook(lambda g: g * 2)",
                    f"{x}.register_hook(lambda g: log.append(g.detach().clone()))",
                    f"{x}.retain_grad()",
                    f"{x}.grad_fn.register_hook(lambda i, o: log.extend(g.detach().clone() for g in o))",
                    f"{x}.grad_fn.register_prehook(lambda o: tuple(None if g is None else g * 3 for g in o))",
                    f"{x}.register_post_accumulate_grad_hook(lambda t: log.append(t.grad.detach().clone()))",
                    f"{x}.grad = None",
                    f"{x}.grad.mul_(2)",
                )
            )
        )

    def special(self):
        x = self.pick(lambda t: not t.is_inference())
        if x is None:
            return
        self.new(
            self.random.choice(
                (
                    f"Cube.apply({x})",
                    f"Twice.apply({x})",
                    f"Overwrite.apply({x})",
                    f"packed(lambda: {x} * {self.beside(x)})",
                    f"lib.utils.checkpoint.checkpoint(lambda a: (a * a).sin(), {x}, use_reentrant=False)",
                    f"lib.utils.checkpoint.checkpoint(lambda a: (a * a).sin(), {x}, use_reentrant=True)",
                    f"no_grad(lambda: {x} * 2)",
                    f"no_grad(lambda: {self.view_of(x)})",
                    f"inference(lambda: {x} * 2)",
                )
            )
        )

    def backward(self):
        y = self.pick(lambda t: t.requires_grad) or self.pick()
        x = self.pick(lambda t: t.requires_grad) or self.pick()
        keep = self.random.choice(("", ", retain_graph=True", ", retain_graph=True", ", create_graph=True"))
        unused = self.random.choice(("", ", allow_unused=True", ", materialize_grads=True"))
        loss = f"{y}.abs().sum()"
        choices = [
            f"{loss}.backward({keep[2:]})",
            f"{y}.backward(lib.ones_like({y}){keep})",
            f"{y}.backward()",
            f"{loss}.backward(inputs=[{x}]{keep})",
        ]
        if self.random.random() < 0.4:
            self.run(self.random.choice(choices))
        else:
            self.new(f"lib.autograd.grad({loss}, {x}{keep}{unused})[0]")


STATEMENT_KINDS = (
    [Program.unary, Program.binary, Program.scalar, Program.reduction, Program.indexing, Program.product] * 2
    + [Program.view, Program.write] * 4
    + [Program.hook, Program.special] * 1
    + [Program.backward] * 3
    + [Program.leaf]
)


def scope(lib):
    """What a program may name."""

    def leaf(seed, shape, dtype, requires_grad):
        numbers = np.random.default_rng(seed)
        values = numbers.standard_normal(shape)
        if dtype == "complex128":
            values = values + 1j * numbers.standard_normal(shape)
        return lib.from_numpy(np.array(values)).clone().requires_grad_(requires_grad)

    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * (x * x).conj()

    class Twice(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            result = x * 2
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx, grad):
            ctx.saved_tensors  # noqa: B018 - raises where it was written to
            return grad * 2

    class Overwrite(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(3)

        @staticmethod
        def backward(ctx, grad):
            return grad * 3

    def packed(function):
        with lib.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t * 2):
            return function()

    def no_grad(function):
        with lib.no_grad():
            return function()

    def inference(function):
        with lib.inference_mode():
            return function()

    return locals() | {"log": []}


def usable(tensor):
    """Whether PyTorch lets it be read: not so a view that it cannot differentiate any more."""
    try:
        tensor.grad_fn  # noqa: B018 - raises
    except RuntimeError:
        return False
    return True


# Errors that only one of them has, for good reason: PyTorch's rules keep more, gradients may be
# views, it has bugs of its own and refuses writes to parts that came of one call. Ours sees overlap of any strides and
# dtypes, and what is overwritten has no gradient, where PyTorch's is zero.
THEIRS = (
    "has been modified by an inplace operation",
    "backward through the graph a second time",
    "of a function that returns multiple views",
    "created in no_grad mode",
    "Could this error message be improved?",
    "ZeroTensors are immutable",
    "some elements of the input tensor and the written-to tensor",
    "When use_reentrant=True",
)
OURS = "single memory location", "appears to not have been used in the graph", "NoneType"


def outcome(names, line):
    """What a statement raises, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(line, names)
    except Exception as error:
        return error
    return None


def state(tensor):
    """What a program can see of a tensor; no gradient is one of zeros."""
    if tensor is None:
        return None
    grad = tensor.grad if tensor.is_leaf or tensor.retains_grad else None
    values = [0 if t is None else t.detach().resolve_conj().clone().numpy() for t in (tensor, grad)]
    return tuple(tensor.shape), tensor.requires_grad, tensor.is_leaf, values


def same(ours, theirs):
    if ours is None or theirs is None:
        return ours is theirs or (ours is None and not np.any(theirs[3][0]))
    return ours[:3] == theirs[:3] and all(
        np.allclose(a, b, rtol=1e-7, atol=1e-9, equal_nan=True) for a, b in zip(ours[3], theirs[3], strict=True)
    )


def differences(seed):
    """What differs in a program, or None, and its text."""
    program = Program(seed)
    text = "\n".join(program.lines)
    ours, theirs = scope(rushlight), scope(torch)
    for line in program.lines:
        error, expected = outcome(ours, line), outcome(theirs, line)
        if expected is None and error is None:
            continue
        if "backward" in line and error is not None and isinstance(error, type(expected)):
            return None, text  # in the middle of a pass
        if (error is None and any(t in str(expected) for t in THEIRS)) or (
            expected is None and any(t in str(error) for t in OURS)
        ):
            return None, text
        if expected is None or error is None or not isinstance(error, type(expected)):
            return f"{line}: {error!r} where PyTorch has {expected!r}", text
    for name in program.names:
        if not usable(theirs[name]):
            continue
        a, b = state(ours[name]), state(theirs[name])
        if not same(a, b):
            return f"{name}: {a}\nwhere PyTorch has\n{b}", text
    if len(ours["log"]) != len(theirs["log"]):
        return f"{len(ours['log'])} calls of hooks, PyTorch has {len(theirs['log'])}", text
    for a, b in zip(ours["log"], theirs["log"], strict=True):
        if not same(state(a), state(b)):
            return f"a hook sees {a}, PyTorch's {b}", text
    return None, text


@pytest.mark.parametrize("seed", range(PROGRAMS))
@pytest.mark.filterwarnings("ignore")
def test_program(seed):
    difference, text = differences(seed)
    assert difference is None, f"{difference}\n\n{text}"
