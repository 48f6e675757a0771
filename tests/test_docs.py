"""The documentation is executed and compared with the code: examples run, names exist, tables match.

Fences: "python run" is executed, "python file=x" and "toml file=x" are written first (a test_*.py among them is run by pytest);
all of one page share a folder. Other python blocks must compile and their imports must resolve. Shell lines of `sh` fences are
run where that is safe and quick; of the others the command and its options must exist.
"""
import ast
import contextlib
import functools
import importlib
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from venus_edge import cli
from venus_edge.paths import root
from venus_edge.settings import PROCESS_VARIABLES, Settings

ROOT = root()
PAGES = sorted(p for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
PACKAGES = ("venus_edge", "device_sdk", "harness", "skills_automotive", "skills_glasses", "cloud_core", "trt_engines", "simulators")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SECRET = "s" * 32

FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```", re.M | re.S)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
MADE_AT_RUN_TIME = re.compile(r"^(\.venv|\.cache|out)/|<|^(venus\.toml|recording\.wav|mic\.wav|speaker\.wav|timeline\.jsonl|summary\.json|report\.html"
                              r"|wording\.toml|pyproject\.toml|valhalla/bin)$")
OF_OTHERS = re.compile(r"^(lib[\w.-]+|_valhalla.*|[\w-]+\.libs|ENABLE_\w+=\w+|asyncio_mode = .*|readelf -d|nm -D|import valhalla)$")
"""What third parties' parts are called."""


def fences(text: str) -> list[tuple[str, str]]:
    """(info string, content) of every fenced block."""
    return [(info.strip(), body) for info, body in FENCE.findall(text)]


def prose(text: str) -> str:
    return FENCE.sub("", text)


@functools.cache
def sources() -> str:
    """All text of ours in which a name may be defined."""
    kinds = ("*.py", "*.toml", "*.yaml", "*.proto")
    files = [f for p in PACKAGES for kind in kinds for f in (ROOT / p).rglob(kind)]
    files += [ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / "models.lock", ROOT / "requirements/lock.txt"]
    return "\n".join(f.read_text(encoding="utf-8") for f in files)


@functools.cache
def words() -> frozenset[str]:
    return frozenset(re.findall(r"\w+", sources()))


@functools.cache
def file_names() -> frozenset[str]:
    folders = [ROOT / p for p in (*PACKAGES, "docs", "tests", "requirements")]
    return frozenset(f.name for folder in folders for f in folder.rglob("*")) | frozenset(f.name for f in ROOT.iterdir())


def resolves(name: str) -> bool:
    """Whether a dotted name of ours is a module or something in one."""
    parts = name.split(".")
    for n in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:n]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[n:]:
            fields = getattr(thing, "__dataclass_fields__", None) or getattr(thing, "model_fields", {})
            if not hasattr(thing, attribute) and attribute not in fields:
                return False
            thing = getattr(thing, attribute, None)
        return True
    return False


@functools.cache
def help_of(command: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        cli.main([*command.split("."), "--help"])
    return out.getvalue()


def command_complaints(line: str) -> list[str]:
    """What is wrong with one `venus …` line: no such command, or no such option."""
    argv = [a for a in shlex.split(line, comments=True) if not re.match(r"^VENUS_\w+=", a)][1:]
    known = cli.commands()
    if not argv or argv[0].startswith("-") or argv[0] == "…":
        return []
    name = next((n for n in (".".join(argv[:2]), argv[0]) if n in known), None)
    if name is None:
        return [] if any(n.startswith(argv[0] + ".") for n in known) and len(argv) == 1 else [f"no command: venus {' '.join(argv[:2])}"]
    options = [a.split("=")[0] for a in argv if a.startswith("--")]
    return [f"venus {name} has no {option}" for option in options if option not in help_of(name)]


def name_complaints(code: str) -> list[str]:
    """What is wrong with one name in backticks; [] where it exists or is no name of ours."""
    if OF_OTHERS.match(code):
        return []
    if code.startswith("venus ") or re.match(r"^VENUS_\w+=\S* venus ", code):
        return command_complaints(code)
    if match := re.match(r"^make ([\w-]+)$", code):
        return [] if re.search(rf"^{match[1]}:", (ROOT / "Makefile").read_text(), re.M) else [f"no make target: {match[1]}"]
    if match := re.match(r"^python -m ([\w.]+)", code):
        return [] if resolves(match[1]) else [f"no module: {match[1]}"]
    if re.match(r"^VENUS_[A-Z_]+$", code):
        known = code in PROCESS_VARIABLES or code[6:].lower() in Settings.model_fields or code in words()
        return [] if known else [f"no variable: {code}"]
    if match := re.match(r"^venus_[a-z_]+_\*?$", code):
        return [] if code.rstrip("*") in sources() else [f"no metric: {code}"]
    dotted = re.match(r"^([a-z_]\w*(?:\.\w+)+)(?:\(.*\))?$", code)
    if dotted and dotted[1].split(".")[0] in PACKAGES and not dotted[1].endswith(".py"):
        return [] if resolves(dotted[1]) else [f"no such name: {dotted[1]}"]
    if re.match(r"^[\w.*<>-]*(/[\w.*<>-]+)*/?$", code) and ("/" in code or re.search(r"\.(py|md|toml|yaml|lock|json|proto|txt|wav|pbf)$", code)):
        if MADE_AT_RUN_TIME.search(code) or code.startswith("/"):
            return []
        if "/" in code.rstrip("/"):
            return [] if any(ROOT.glob(code.rstrip("/"))) else [f"no such file: {code}"]
        return [] if code.rstrip("/") in file_names() else [f"no such file: {code}"]
    plain = re.match(r"^([A-Za-z_]\w*)(?:\([^)]*\))?$", code)
    if plain and ("_" in plain[1] or re.match(r"^[A-Z]\w*[a-z]\w*[A-Z]", plain[1])):
        return [] if plain[1] in words() else [f"no source has the name {plain[1]}"]
    return []


def link_complaints(page: Path, text: str) -> list[str]:
    targets = [t.split("#")[0] for t in LINK.findall(prose(text)) if not re.match(r"^[a-z]+:", t)]
    return [f"dead link: {t}" for t in targets if t and not (page.parent / t).exists()]


def machine_complaints(text: str) -> list[str]:
    """Traces of one machine, and what was left to fill in."""
    found = re.findall(r"(?<![\w.}>])/(?:home|root|work|Users|tmp|mnt|workspace|opt)/[\w.-]*|[A-Z]:\\\w+|@@\w+@@|\bTODO\b|\bFIXME\b", text)
    return [f"left over: {f}" for f in found]


def shell_lines(text: str) -> list[str]:
    lines = [line.strip() for info, body in fences(text) if info.split(" ")[0] in ("sh", "bash", "shell") for line in body.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def shell_complaints(line: str) -> list[str]:
    bare = re.sub(r"^(VENUS_\w+=\S+ )+", "", line)
    if bare.startswith("venus "):
        variables = [v for v in re.findall(r"(VENUS_\w+)=", line)]
        return command_complaints(line) + [c for v in variables for c in name_complaints(v)]
    if bare.startswith("make "):
        return name_complaints(" ".join(shlex.split(bare, comments=True)[:2]))
    if bare.startswith("pip install"):
        named = set(re.findall(r"venus-edge\[([\w,-]+)\]", bare))
        extras = {extra for group in named for extra in group.split(",")}
        return [f"no extra: {e}" for e in extras - set(PROJECT["optional-dependencies"])]
    return [f"unknown kind of shell line: {line}"]


def python_complaints(body: str) -> list[str]:
    """A block that need not run must still compile, and what it imports of ours must exist."""
    wrong = []
    for node in ast.walk(ast.parse(body)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            wrong += [f"no such name: {node.module}.{a.name}" for a in node.names if not resolves(f"{node.module}.{a.name}")]
    return wrong


def complaints(page: Path, text: str) -> list[str]:
    found = link_complaints(page, text) + machine_complaints(text)
    found += [c for code in CODE.findall(prose(text)) for c in name_complaints(code)]
    found += [c for line in shell_lines(text) for c in shell_complaints(line)]
    found += [c for info, body in fences(text) if info.startswith("python") for c in python_complaints(body)]
    return sorted(set(found))


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_everything_a_page_names_exists(page):
    """Links, files, commands, options, settings, variables, modules and identifiers are those of this version."""
    assert complaints(page, page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("text, complaint", [
    ("[x](nowhere.md)", "dead link"), ("see `venus_edge/nothing.py`", "no such file"), ("`no_such_file.toml`", "no such file"),
    ("`venus dance`", "no command"), ("`venus token --colour red`", "has no --colour"), ("`VENUS_COLOUR`", "no variable"),
    ("`harness.skill.Nothing`", "no such name"), ("`frobnicate_all`", "no source has"), ("`make tea`", "no make target"),
    ("`venus_worker_nonsense_`", "no metric"), ("lies in /home/someone/x", "left over"), ("@@FIGURES@@", "left over"),
    ("```sh\npip install 'venus-edge[moon]'\n```", "no extra"), ("```sh\nvenus up --colour\n```", "has no --colour"),
    ("```sh\ncurl x\n```", "unknown kind"), ("```python\nfrom harness.skill import Nothing\n```", "no such name"),
])  # fmt: skip
def test_the_checks_find_what_is_wrong(text, complaint):
    """A check that can't fail is a defect."""
    assert any(complaint in c for c in complaints(ROOT / "docs" / "x.md", text))


RUN = [p for p in PAGES if any(" run" in info or "file=" in info for info, _ in fences(p.read_text(encoding="utf-8")))]


@pytest.mark.parametrize("page", RUN, ids=named)
def test_the_examples_run(page, tmp_path):
    """What a reader copies works as it stands, assertions included."""
    blocks = fences(page.read_text(encoding="utf-8"))
    env = {k: v for k, v in os.environ.items() if not k.startswith("VENUS_")} | {"PYTHONPATH": str(tmp_path)}
    if cache := os.environ.get("VENUS_CACHE"):
        env["VENUS_CACHE"] = cache

    def run(*argv):
        done = subprocess.run([sys.executable, *argv], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{named(page)}: {argv}\n{done.stdout}\n{done.stderr}"

    for info, body in blocks:
        if match := re.search(r"file=(\S+)", info):
            target = tmp_path / match[1]
            assert tmp_path in target.resolve().parents
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(body, encoding="utf-8")
    for number, (info, body) in enumerate(blocks):
        if info == "python run":
            script = tmp_path / f"example_{number}.py"
            script.write_text(body, encoding="utf-8")
            run(script.name)
    if any(tmp_path.glob("test_*.py")):
        run("-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "asyncio_mode=auto", ".")


def safe(line: str) -> bool:
    """Quick, touches nothing: help, settings, tokens."""
    bare = re.sub(r"^(VENUS_\w+=\S+ )+", "", line)
    return bare.split("#")[0].strip() == "venus --help" or bare.startswith(("venus config ", "venus token "))


def test_safe_shell_lines_run(tmp_path):
    """`venus config …` and `venus token …` lines do what the pages say, from any folder, without a running system."""
    lines = sorted({line for page in PAGES for line in shell_lines(page.read_text(encoding="utf-8")) if safe(line)} | {"venus --help"})
    assert len(lines) >= 4
    clean = {k: v for k, v in os.environ.items() if not k.startswith("VENUS_")}
    for line in lines:
        words_ = shlex.split(line, comments=True)
        variables = dict(w.split("=", 1) for w in words_ if re.match(r"^VENUS_\w+=", w))
        argv = [w for w in words_ if not re.match(r"^VENUS_\w+=", w)][1:]
        env = clean | {"PYTHONPATH": str(ROOT), "VENUS_LIVEKIT_SECRET": SECRET} | variables
        done = subprocess.run([sys.executable, "-m", "venus_edge.cli", *argv], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0 and done.stdout.strip(), f"{line}\n{done.stderr}"
        assert SECRET not in done.stdout, line


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table whose header row begins with `heading`."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(heading))
    table = []
    for line in lines[start + 2:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return table


def test_the_operators_table_is_the_settings():
    """Every setting is described once, with its real default."""
    described = {}
    for cell, defaults, _ in rows("docs/operators.md", "| setting | default"):
        fields = CODE.findall(cell)
        values = [v.strip().strip("`") for v in defaults.split(",")]
        described |= dict(zip(fields, values * len(fields) if len(values) == 1 else values, strict=False))
    assert set(described) == set(Settings.model_fields)
    for name, shown in described.items():
        default = str(Settings.model_fields[name].default)
        assert shown in ({"empty", "random", "random per run"} if default == "" else {default}), name


def events_in_code() -> tuple[set[str], set[str]]:
    """(names, beginnings) of every trace event that the code emits."""
    names, beginnings = set(), set()
    for file in (f for p in PACKAGES for f in (ROOT / p).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "event" and node.args):
                continue
            if "trace" not in ast.unparse(node.func.value).lower():
                continue
            if isinstance(node.args[0], ast.JoinedStr):
                beginnings.add(node.args[0].values[0].value)
            else:
                names |= {n.value for n in ast.walk(node.args[0]) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return names, beginnings


def test_the_trace_table_is_what_the_code_traces():
    """Every event in the code is in the table, and every name in the table occurs in the code."""
    described = {name for _, names, _ in rows("docs/architecture.md", "| src | ev") for name in CODE.findall(names)}
    names, beginnings = events_in_code()
    assert len(names) > 15 and names <= described, names - described
    for name in described - names:
        dynamic = any(name.startswith(b) for b in beginnings) or name.split(".")[0] == "task"
        assert dynamic or f'"{name}"' in sources(), name


@pytest.mark.parametrize("page", ["PROTOCOL.md", "docs/architecture.md"])
def test_the_message_tables_are_the_models(page):
    """Every `venus.ctl` type has a row that names each of its fields."""
    from device_sdk.wire import CTL_TYPES, ctl

    described = {}
    for types, _, fields in rows(page, "| type | from | fields"):
        described |= {t.strip().strip("`"): fields for t in types.split("/")}
    assert set(described) == set(CTL_TYPES)
    for kind in CTL_TYPES:
        for field in set(getattr(ctl, kind.capitalize()).model_fields) - {"v", "type"}:
            assert re.search(rf"\b{field}\b", described[kind]), f"{page}: {kind}.{field}"


def test_every_dependency_and_model_has_its_licence():
    """docs/licences.md names each direct dependency and each wheel of models.lock."""
    page = (ROOT / "docs/licences.md").read_text(encoding="utf-8")
    listed = [*PROJECT["dependencies"], *(d for group in PROJECT["optional-dependencies"].values() for d in group)]
    wanted = {re.match(r"[\w.-]+", d)[0] for d in listed} - {PROJECT["name"]}
    wheels = set(tomllib.loads((ROOT / "models.lock").read_text(encoding="utf-8"))["wheel"])
    parts = {w for w in wheels if re.search(r"-model-[23]$", w)}  # written as a range
    missing = {n for n in wanted | wheels - parts if f"`{n}`" not in page}
    assert missing == set()


def test_device_states_and_errors_are_all_described():
    """docs/device.md has a row for every state and every error code of the SDK."""
    from device_sdk import errors
    from device_sdk.states import DeviceState

    page = (ROOT / "docs/device.md").read_text(encoding="utf-8")
    codes = {c.code for c in vars(errors).values() if isinstance(c, type) and c.__module__ == errors.__name__}
    assert {n for n in codes | {str(s) for s in DeviceState} if f"`{n}`" not in page} == set()
