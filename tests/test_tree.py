"""What the tree promises: which way imports point, what each package folder holds, and what its files are called."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = sorted(path for path in (ROOT / "packages").iterdir() if path.is_dir())
PROJECTS = {path.parent.name: tomllib.loads(path.read_text()) for path in ROOT.glob("packages/*/pyproject.toml")}
SOURCES = sorted(ROOT.glob("packages/*/src/rushlight/**/*.py"))

# Each package may import those of the rows before its own.
LAYERS = [
    {"core"},
    {"autograd", "linalg", "special", "profiler", "package"},
    {"nn"},
    {"jit", "distributed", "vision"},
    {"mobile"},
    {"rushlight"},
]
LAYER = {package: number for number, row in enumerate(LAYERS) for package in row}

# Import name under rushlight -> package; whatever is not here is core's.
OWNER = {
    entry.stem: path.parent.name
    for path in ROOT.glob("packages/*/src")
    if path.parent.name != "core"
    for entry in (path / "rushlight").iterdir()
}


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[1]


def imported_packages(path: Path) -> Iterator[tuple[int, str]]:
    """Line and package of every absolute import of rushlight in a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            first, *rest = name.split(".")
            if first == "rushlight":
                yield node.lineno, OWNER.get(rest[0], "core") if rest else "core"


def declared_siblings(package: str) -> set[str]:
    requirements = PROJECTS[package]["project"]["dependencies"]
    return {match[1] for text in requirements if (match := re.match(r"rushlight-([a-z]+)", text))}


@pytest.mark.parametrize("package", sorted(PROJECTS))
def test_dependencies_point_to_earlier_layers(package):
    later = {other for other in declared_siblings(package) if LAYER[other] >= LAYER[package]}
    assert not later, f"{package} depends on {sorted(later)}"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "packages")))
def test_imports_are_declared_dependencies(path):
    package = package_of(path)
    allowed = {package, *declared_siblings(package)}
    wrong = [f"{path.name}:{line} imports {other}" for line, other in imported_packages(path) if other not in allowed]
    assert not wrong, "\n".join(wrong)


def test_only_core_has_the_package_init():
    assert [package_of(p) for p in ROOT.glob("packages/*/src/rushlight/__init__.py")] == ["core"]


def test_no_path_is_in_two_packages():
    owner: dict[str, str] = {}
    for path in ROOT.glob("packages/*/src/rushlight/**/*"):
        if path.is_file() and "__pycache__" not in path.parts:
            relative = path.relative_to(ROOT).parts[3:]
            assert owner.setdefault("/".join(relative), package_of(path)) == package_of(path)


def test_versions_are_equal():
    version = PROJECTS["core"]["project"]["version"]
    for name, project in PROJECTS.items():
        assert project["project"]["version"] == version, name
        texts = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
        for extra in project["project"].get("optional-dependencies", {}).values():
            texts += extra
        for text in texts:
            if text.startswith("rushlight"):
                assert text.endswith(f"~={version}"), f"{name} requires {text}"


def test_metapackage_names_every_package():
    extras = PROJECTS["rushlight"]["project"]["optional-dependencies"]
    areas = sorted(set(PROJECTS) - {"core", "rushlight"})
    assert set(areas) <= set(extras)
    assert sorted(text.split("~=")[0] for text in extras["all"]) == [f"rushlight-{area}" for area in areas]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_package_folder(folder):
    assert folder.name in LAYER, f"{folder.name} has no place in the order of imports"
    name = folder.name if folder.name == "rushlight" else f"rushlight-{folder.name}"
    assert (folder / "README.md").read_text().startswith(f"# {name}\n")
    if folder.name not in PROJECTS:
        assert [path.name for path in folder.iterdir()] == ["README.md"], "an area without code ships no empty module"


@pytest.mark.parametrize("package", sorted(set(PROJECTS) - {"core", "rushlight"}))
def test_area_is_one_word_three_times(package):
    project = PROJECTS[package]["project"]
    assert project["name"] == f"rushlight-{package}"
    assert (ROOT / "packages" / package / "src" / "rushlight" / package).is_dir()
    assert project["entry-points"]["rushlight.plugins"] == {package: f"rushlight.{package}.hooks"}


def test_native_wheels_declare_the_c_api_version():
    header = (ROOT / "packages/core/include/rushlight/api.h").read_text()
    interface = (ROOT / "packages/core/src/rushlight/plugin/interface.py").read_text()
    version = re.search(r"RL_ABI = (\d+);", header)[1]
    assert re.search(r"^PLUGIN_API = (\d+)$", interface, re.MULTILINE)[1] == version
    for package in sorted(set(PROJECTS) - {"core"}):
        if (ROOT / "packages" / package / "csrc").is_dir():
            assert PROJECTS[package]["project"]["entry-points"]["rushlight.plugin_api"] == {package: f"v{version}"}


def test_file_names_say_an_idea():
    pytorch = {("modules", "utils.py"), ("distributions", "utils.py"), ("distributions", "studentT.py")}
    for path in SOURCES:
        if path.parts[-2:] not in pytorch:  # whose paths are public, as torch.nn.modules.utils
            assert re.fullmatch(r"[a-z_][a-z0-9_]*\.py", path.name), path
            assert path.stem not in {"utils", "util", "helpers", "misc", "common"}, path


@pytest.mark.parametrize("package", sorted(PROJECTS))
def test_every_cpp_source_is_listed(package):
    folder = ROOT / "packages" / package
    sources = {str(path.relative_to(folder)) for path in folder.glob("csrc/**/*.cpp")}
    if sources:
        listed = set(re.findall(r"csrc/\S+\.cpp", (folder / "CMakeLists.txt").read_text()))
        assert listed == sources
