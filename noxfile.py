"""Everything that is run on rushlight: `nox` runs what CI runs, `nox -s NAME` one session, `nox -l` lists them.

The session `build` puts every wheel into dist/; the others install from there, so they test what users get.
PYTHONS="3.12 3.13" adds interpreters to the one that runs nox.
"""

import functools
import os
import platform
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nox
from packaging.requirements import Requirement

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "virtualenv"
nox.options.error_on_external_run = True

ROOT = Path(__file__).parent
DIST = ROOT / "dist"
PROJECTS = {path.parent.name: nox.project.load_toml(path) for path in sorted(ROOT.glob("packages/*/pyproject.toml"))}
AREAS = [name for name in PROJECTS if (ROOT / "packages" / name / "tests").is_dir()]
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
PYTHONS = list(dict.fromkeys([RUNNING, *os.environ.get("PYTHONS", "").split()]))
BUILT = f"build-{RUNNING}"
TORCH = "torch==2.13.0"
ARRAY_API_TESTS = "https://github.com/data-apis/array-api-tests"
WHEEL_LIMIT_MB = {"core": 5.0, "all": 12.0}


def tidy_session(**options: Any) -> Callable[[Callable[..., None]], Any]:
    """`nox.session`, which removes the environment of a session that passed: all of them together take 8 GB."""

    def decorate(function: Callable[..., None]) -> Any:
        @functools.wraps(function)
        def run(session: nox.Session, *arguments: Any, **named: Any) -> None:
            function(session, *arguments, **named)
            kept = getattr(session.virtualenv, "reuse_existing", True)  # `nox -r`, or no environment at all
            if not kept:
                shutil.rmtree(session.virtualenv.location)

        return nox.session(**options)(run)

    return decorate


def siblings(package: str) -> list[str]:
    """The packages of this repository that `package` depends on, dependencies first, then itself."""
    found: list[str] = []
    for requirement in map(Requirement, PROJECTS[package]["project"]["dependencies"]):
        if requirement.name.startswith("rushlight-"):
            found += [name for name in siblings(requirement.name.removeprefix("rushlight-")) if name not in found]
    return [*found, package]


def foreign_dependencies(*packages: str) -> list[str]:
    """The run-time dependencies of the packages that are not from this repository, sorted."""
    needed = {requirement for name in packages for requirement in PROJECTS[name]["project"]["dependencies"]}
    return sorted(requirement for requirement in needed if not requirement.startswith("rushlight"))


def built_wheels(package: str, python: str) -> list[Path]:
    """The wheels of `package` in dist/ that suit a Python version."""
    name = PROJECTS[package]["project"]["name"].replace("-", "_")
    tags = (f"-cp{python.replace('.', '')}-", "-py3-none-any")
    return [path for path in DIST.glob(f"{name}-*.whl") if any(tag in path.name for tag in tags)]


def wheel(package: str, python: str = RUNNING) -> Path:
    """The wheel of `package` in dist/ for a Python version."""
    found = built_wheels(package, python)
    if len(found) != 1:
        raise FileNotFoundError(f"dist/ has {len(found)} wheels of {package} for Python {python}: run `nox -s build`")
    return found[0]


def install_wheels(session: nox.Session, *packages: str) -> None:
    """Installs built wheels of the packages and of the siblings that they declare; the rest comes from the index."""
    python = session.python if isinstance(session.python, str) else RUNNING
    chosen = dict.fromkeys(sibling for package in packages for sibling in siblings(package))
    session.install(*(str(wheel(package, python)) for package in chosen))


def test_requirements(*packages: str) -> list[str]:
    """What the tests of the packages need beside the wheels (their dependency group `test`)."""
    needed: dict[str, None] = {}
    for package in packages:
        needed |= dict.fromkeys(nox.project.dependency_groups(PROJECTS[package], "test"))
    return list(needed)


def install_build_tools(session: nox.Session) -> None:
    """Installs the build requirements of all wheels, and CMake and Ninja where the system has none."""
    needed = {requirement for project in PROJECTS.values() for requirement in project["build-system"]["requires"]}
    tools = [tool for tool in ("cmake", "ninja") if shutil.which(tool) is None]
    session.install(*sorted(name for name in needed if not name.startswith("rushlight")), *tools)
    if shutil.which("ccache"):
        session.env["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
        session.env.update(CCACHE_BASEDIR=str(ROOT), CCACHE_NOHASHDIR="1")


@tidy_session(python=PYTHONS)
def build(session: nox.Session) -> None:
    """Build every wheel into dist/; installing dist/*.whl into an empty environment gives all of rushlight."""
    install_build_tools(session)
    for name in PROJECTS:
        for stale in built_wheels(name, str(session.python)):
            stale.unlink()
    folders = [f"./packages/{name}" for name in PROJECTS]
    session.run("pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", "dist", *folders)
    for path in sorted(DIST.glob("*.whl")):
        session.log(f"{path.stat().st_size / 1e6:6.2f} MB  {path.name}")


@tidy_session(python=PYTHONS, requires=["build-{python}"])
@nox.parametrize("package", AREAS)
def tests(session: nox.Session, package: str) -> None:
    """Run a package's tests against its wheel and its declared dependencies, with nothing else of ours installed."""
    install_wheels(session, package)
    session.install(*test_requirements(package))
    session.run("pytest", "-q", f"packages/{package}/tests", *session.posargs)


@tidy_session(requires=[BUILT])
def together(session: nox.Session) -> None:
    """Run the tests of all packages in one process, with every wheel there: one wheel's checks cover another's ops."""
    install_wheels(session, *PROJECTS)
    session.install(*test_requirements(*AREAS))
    session.run("pytest", "-q", *(f"packages/{name}/tests" for name in AREAS), *session.posargs)


@tidy_session(requires=[BUILT])
@nox.parametrize("package", list(PROJECTS))
def isolation(session: nox.Session, package: str) -> None:
    """Install a wheel alone with its declared dependencies, check them, and run the examples of its README."""
    install_wheels(session, package)
    session.run("pip", "check")
    session.run("python", "tools/run_examples.py", f"packages/{package}/README.md")


@tidy_session(requires=[BUILT])
def editable(session: nox.Session) -> None:
    """Import every area from wheels, from editable installs, and from both mixes of them."""
    install_build_tools(session)
    native = [name for name in PROJECTS if (ROOT / "packages" / name / "src").is_dir()]
    others = [name for name in native if name != "core"]
    session.install(*foreign_dependencies(*native))
    code = "import rushlight; " + "; ".join(f"import rushlight.{name}" for name in others)
    for editables in (native, ["core"], others, []):
        for name in native:
            source = ["-e", f"./packages/{name}"] if name in editables else [str(wheel(name))]
            session.install("-q", "--no-deps", "--no-build-isolation", "--force-reinstall", *source)
        session.log(f"editable: {', '.join(editables) or 'none'}")
        session.chdir(session.create_tmp())
        session.run("python", "-W", "error", "-c", code)
        session.chdir(ROOT)


@tidy_session(requires=[BUILT])
def plugins(session: nox.Session) -> None:
    """Build the third-party backends of examples/ as a stranger would, and run the conformance suite on toy."""
    install_wheels(session, *PROJECTS)
    session.install(*test_requirements("core"))
    session.install("hatchling")
    for folder in sorted(ROOT.glob("examples/backends/*")):
        session.install("--no-deps", "--no-build-isolation", f"./{folder.relative_to(ROOT)}")
    session.run("python", "-m", "rushlight", "plugins")
    for tests_folder in sorted(ROOT.glob("examples/backends/*/tests")):
        session.run("pytest", "-q", "-W", "ignore:plugin 'toy_broken'", str(tests_folder.relative_to(ROOT)))
    session.run("pytest", "-q", "--pyargs", "rushlight.testing.conformance", "--device=toy", *session.posargs)


@tidy_session(requires=[BUILT])
def new_plugin(session: nox.Session) -> None:
    """Generate a plugin of each kind, install it as a stranger would, and run its own tests."""
    install_wheels(session, "core", "autograd")
    session.install("hatchling>=1.26", *test_requirements("core"))
    parent = Path(session.create_tmp())
    for kind in ("backend", "collectives", "ops", "rendezvous"):
        folder = parent / f"rushlight-example_{kind}"
        shutil.rmtree(folder, ignore_errors=True)
        session.run("rushlight", "new-plugin", f"example_{kind}", "--kind", kind, "--into", str(parent))
        session.install("--no-deps", "--no-build-isolation", str(folder))
        with session.chdir(folder):
            session.run("pytest", "-q", *session.posargs)


@tidy_session(requires=[BUILT])
def wheels(session: nox.Session) -> None:
    """Check the wheels together: no path in two of them, sizes, and what the tree promises (tests/)."""
    owner: dict[str, str] = {}
    sizes: dict[str, float] = {}
    for package in PROJECTS:
        path = wheel(package)
        sizes[package] = path.stat().st_size / 1e6
        for name in zipfile.ZipFile(path).namelist():
            if name in owner:
                session.error(f"{name} is in the wheels of {owner[name]} and {package}")
            owner[name] = package
    sizes["all"] = sum(sizes.values())
    for package, size in sizes.items():
        limit = WHEEL_LIMIT_MB.get(package)
        session.log(f"{size:6.2f} MB  {package}" + (f" (limit {limit} MB)" if limit else ""))
        if limit and size > limit:
            session.error(f"wheel size: at most {limit} MB, got {package}={size:.2f} MB")
    install_wheels(session, *PROJECTS)
    session.install(*test_requirements(*AREAS))
    session.run("pytest", "-q", "tests")


@tidy_session(requires=[BUILT])
def minimal(session: nox.Session) -> None:
    """Install core alone: absent areas name their wheel, and `import rushlight` costs what README says."""
    install_wheels(session, "core")
    session.run("python", "-W", "error", "-c", "import rushlight; rushlight.ones(2) + 1")
    session.run("python", "-m", "rushlight", "doctor")
    session.run("python", "benchmarks/import_cost.py", "--check")


@tidy_session(requires=[BUILT])
def ptx(session: nox.Session) -> None:
    """Compile the kernels that the CUDA backend generates to PTX for sm_70 to sm_90, and run them on the host."""
    install_wheels(session, *PROJECTS)
    try:
        session.install("nvidia-cuda-nvrtc-cu12>=12.6,<13", *test_requirements("core"))
    except nox.command.CommandFailed:
        session.skip("NVRTC cannot be installed here: it has no wheel for this system")
    session.run("pytest", "-q", "-rs", "packages/core/tests/test_cuda.py", *session.posargs)


@tidy_session(requires=[BUILT])
def cuda(session: nox.Session) -> None:
    """Run the conformance suite and a benchmark on a GPU; skipped where there is none."""
    if shutil.which("nvidia-smi") is None:
        session.skip("no CUDA device: nvidia-smi is not on PATH")
    install_wheels(session, *PROJECTS)
    session.install("cupy-cuda13x[ctk]>=14", *test_requirements("core"))
    session.run("pytest", "-q", "--pyargs", "rushlight.testing.conformance", "--device=cuda", *session.posargs)
    session.run("python", "benchmarks/gpu.py")


def install_opencl(session: nox.Session) -> None:
    """Installs the OpenCL backend of examples/ over PoCL; skips the session where that cannot be had."""
    session.install("hatchling")
    try:
        session.install("--no-build-isolation", "./examples/backends/opencl[pocl]")
    except nox.command.CommandFailed:
        session.skip("no OpenCL platform can be installed here: pyopencl or PoCL has no wheel for this system")


@tidy_session(requires=[BUILT], default=False)
def opencl(session: nox.Session) -> None:
    """Test the OpenCL backend of examples/ and write its table of operators; kernels compile for minutes at first."""
    install_wheels(session, *PROJECTS)
    session.install(*test_requirements("core"))
    install_opencl(session)
    session.run("pytest", "-q", "examples/backends/opencl/tests")
    chosen = session.posargs or ["-k", "float32 or int64 or bool"]
    table = "--capabilities=examples/backends/opencl/capabilities.md"
    session.run("pytest", "-q", "--pyargs", "rushlight.testing.conformance", "--device=opencl", table, *chosen)


@tidy_session(requires=[BUILT], default=False)
def arrayapi(session: nox.Session) -> None:
    """Run the conformance suite on devices of array-api-strict and dpnp; dpnp's take ten minutes."""
    install_wheels(session, *PROJECTS)
    session.install("hatchling", *test_requirements("core"))
    try:
        session.install("--no-build-isolation", "./examples/backends/arrayapi[strict,dpnp]")
    except nox.command.CommandFailed:
        session.skip("dpnp cannot be installed here: it has no wheel for this system")
    opencl_of_processor = Path(session.virtualenv.location) / "lib" / "libintelocl.so"
    if opencl_of_processor.exists():
        session.env["OCL_ICD_FILENAMES"] = str(opencl_of_processor)
    session.run("pytest", "-q", "examples/backends/arrayapi/tests")
    chosen = session.posargs or ["-k", "float32 or int64 or bool"]
    for device in ("strict", "dpnp"):
        session.run("pytest", "-q", "--pyargs", "rushlight.testing.conformance", f"--device={device}", *chosen)


@tidy_session()
def lint(session: nox.Session) -> None:
    """Check the style of Python (ruff) and C++ (clang-format)."""
    session.install("ruff~=0.17.0", "clang-format~=23.1.0")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    native = [*ROOT.glob("packages/*/csrc/**/*.cpp"), *ROOT.glob("packages/*/csrc/**/*.h")]
    native += ROOT.glob("packages/*/include/**/*.h")
    session.run("clang-format", "--dry-run", "-Werror", *(str(path.relative_to(ROOT)) for path in sorted(native)))


@tidy_session()
def types(session: nox.Session) -> None:
    """Check the annotations with mypy, area by area as installed."""
    session.install("mypy~=2.4.0", "pytest", *foreign_dependencies(*PROJECTS))
    session.run("mypy")


@tidy_session(requires=[BUILT])
def docs(session: nox.Session) -> None:
    """Run the examples of docstrings, README and docs/, plugins that the guide builds included."""
    install_wheels(session, *PROJECTS)
    session.install(*test_requirements(*AREAS))
    install_build_tools(session)
    session.run("python", "tools/hooks_reference.py", "--check")
    pages = map(str, sorted(Path("docs").rglob("*.md")))
    session.run("python", "tools/run_examples.py", "--docstrings", "--commands", "README.md", *pages)


@tidy_session()
def sanitize(session: nox.Session) -> None:
    """Build the C++ tests with AddressSanitizer and UndefinedBehaviorSanitizer, warnings as errors, and run them."""
    if platform.system() == "Windows":
        session.skip("MSVC has no UndefinedBehaviorSanitizer")
    install_build_tools(session)
    session.env["ASAN_OPTIONS"] = "allocator_may_return_null=1"  # the tests ask for absurd sizes
    options = ["-GNinja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DPython_EXECUTABLE={session.bin}/python"]
    options += ["-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1"]
    options += ["-DRL_TESTS=ON", "-DRL_WERROR=ON", "-DRL_SANITIZE=address,undefined"]
    for tests_folder in sorted(ROOT.glob("packages/*/csrc/tests")):
        package = tests_folder.parents[1].name
        folder = f"{session.create_tmp()}/{package}"
        session.run("cmake", "-S", f"packages/{package}", "-B", folder, *options, external=True, silent=True)
        session.run("cmake", "--build", folder, "--target", "rushlight_tests", external=True, silent=True)
        session.run("ctest", "--test-dir", folder, "--output-on-failure", "--no-tests=error", external=True)


@tidy_session(requires=[BUILT])
def leaks(session: nox.Session) -> None:
    """Repeat every operator and check that memory stays flat; `-- --seconds 5` for longer."""
    if platform.system() != "Linux":
        session.skip("the memory that a process holds is read from /proc")
    install_wheels(session, *PROJECTS)
    session.install(*test_requirements(*AREAS))
    session.run("python", "tests/leaks.py", *(session.posargs or ["--seconds", "0.05"]))


@tidy_session(requires=[BUILT])
def ecosystem(session: nox.Session) -> None:
    """Hand tensors to pandas, SciPy, matplotlib, scikit-learn and array-api-compat."""
    install_wheels(session, "linalg")
    session.install(
        *test_requirements("core"), "array-api-compat", "array-api-extra", "matplotlib", "pandas", "scikit-learn"
    )
    session.env["SCIPY_ARRAY_API"] = "1"
    session.run("pytest", "-q", "packages/core/tests/test_ecosystem.py", *session.posargs)


@tidy_session(requires=[BUILT], default=False)
def array_api(session: nox.Session) -> None:
    """Run the public test suite of the array API standard; `ARRAY_API_TESTS` names a checkout, else it is fetched."""
    suite = Path(os.environ.get("ARRAY_API_TESTS", ROOT / "build" / "array-api-tests"))
    if not suite.is_dir():
        fetch = ["git", "clone", "-q", "--depth=1", "--recurse-submodules", ARRAY_API_TESTS, str(suite)]
        if subprocess.run(fetch, env={**os.environ, "GIT_TERMINAL_PROMPT": "0"}).returncode:
            session.skip("the test suite cannot be fetched: set ARRAY_API_TESTS to a checkout of it")
    install_wheels(session, *PROJECTS)
    session.install("-r", str(suite / "requirements.txt"))
    session.env.update(ARRAY_API_TESTS_MODULE="rushlight.array_api", ARRAY_API_TESTS_VERSION="2024.12")
    options = ["--xfails-file", str(ROOT / "tests" / "array_api_xfails.txt"), *session.posargs]
    with session.chdir(suite):
        session.run("pytest", "-q", "array_api_tests", *options)


@tidy_session(requires=[BUILT], default=False)
def fuzz(session: nox.Session) -> None:
    """Call every operator with random arguments: nothing may crash or hang; `-- --seed 1 --rounds 1000` for more."""
    install_wheels(session, *PROJECTS)
    session.run("python", "tests/fuzz_ops.py", *session.posargs)


@tidy_session(default=False)
def valgrind(session: nox.Session) -> None:
    """Run the C++ tests under Valgrind's memcheck; skipped where it is not installed."""
    if shutil.which("valgrind") is None:
        session.skip("valgrind is not on PATH")
    install_build_tools(session)
    command = ["valgrind", "-q", "--error-exitcode=1", "--leak-check=full", "--errors-for-leak-kinds=definite"]
    command += [f"--suppressions={ROOT}/tests/valgrind.supp"]
    for tests_folder in sorted(ROOT.glob("packages/*/csrc/tests")):
        package = tests_folder.parents[1].name
        folder = f"build/valgrind/{package}"
        options = ["-GNinja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", f"-DPython_EXECUTABLE={session.bin}/python"]
        session.run("cmake", "-S", f"packages/{package}", "-B", folder, *options, "-DRL_TESTS=ON", external=True)
        session.run("cmake", "--build", folder, "--target", "rushlight_tests", external=True, silent=True)
        for source in sorted(tests_folder.glob("test_*.cpp")):
            # The oracle of these is in long double, which Valgrind computes as double.
            if source.stem not in ("test_pointwise", "test_reduce"):
                session.run(*command, f"{folder}/{source.stem}", *session.posargs, external=True)


@tidy_session(requires=[BUILT], default=False)
def bench(session: nox.Session) -> None:
    """Time rushlight and PyTorch side by side (benchmarks/README.md)."""
    install_wheels(session, *PROJECTS)
    session.install(TORCH)
    session.run("python", "benchmarks/compare.py", *session.posargs)


@tidy_session(requires=[BUILT], default=False)
def peer(session: nox.Session) -> None:
    """Compare every op with PyTorch on the op's own samples, and random streams bit by bit."""
    install_wheels(session, *PROJECTS)
    session.install(TORCH, *test_requirements(*AREAS))
    session.run("pytest", "-q", "benchmarks/peer", *session.posargs)


SMALL = {
    "char_lstm": ["--steps=5"],
    "dcgan": ["--epochs=1"],
    "digits": ["--epochs=1"],
    "gpt": ["--steps=5"],
    "reinforce": ["--episodes=10"],
    "resnet": ["--steps=2", "--width=8"],
    "super_resolution": ["--epochs=1"],
    "vae": ["--epochs=2"],
}
"""How each program of examples/ runs in seconds."""


@tidy_session(requires=[BUILT])
def examples(session: nox.Session) -> None:
    """Run the programs of examples/ at a small scale, pictures and all."""
    install_wheels(session, *PROJECTS)
    session.install("matplotlib")
    for name, options in SMALL.items():
        picture = Path(session.create_tmp()) / f"{name}.png"
        session.run("python", f"examples/{name}.py", *options, f"--picture={picture}")
        assert picture.stat().st_size, f"{name} saved no picture"


@tidy_session(requires=[BUILT], default=False)
def demo(session: nox.Session) -> None:
    """Install the needed wheels into a fresh environment and train a network on real images."""
    install_wheels(session, "nn")
    session.install("matplotlib")
    if "--device=opencl" in session.posargs:
        install_opencl(session)
    session.run("python", "examples/digits.py", *session.posargs)
