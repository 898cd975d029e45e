"""What a machine boots: everything it ever needs in one initramfs, which lives in its memory alone.

Its Python is a copy of the one that runs this, with the product of this checkout and what that imports. So
there is nothing to install, and the machine tests what every other test tests.
"""

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from importlib.metadata import distribution
from itertools import chain
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[3]
KERNEL = ROOT / ".cache" / "watchdog" / "kernel"  # of tests/setup/get_machines.sh
GUEST = Path(__file__).parent / "guest"
STDLIB = Path(sysconfig.get_path("stdlib"))
LEFT_OUT = ("test", "idlelib", "ensurepip", "lib2to3", "tkinter", "*-packages", "config-*", "*.a")
PROGRAMS = ("busybox", "sh", "cp", "mv", "sync")  # all but what the supervisor calls is of busybox


def make_image(folder: Path, *others: Path) -> Path:
    """Write the initramfs into this folder and return its path; ``others``: further programs that it has."""
    tree = folder / "tree"
    for name in ("bin", "dev", "etc", "proc", "sys", "run", "tmp", "modules", "product"):
        (tree / name).mkdir(parents=True)
    for program in GUEST.iterdir():
        shutil.copy(program, tree / "bin" / program.stem)
    (tree / "bin" / "init").rename(tree / "init")
    (tree / "etc" / "machine-id").write_text("c" * 32)  # one for all, as on cloned disks
    for module in KERNEL.glob("*.ko"):
        shutil.copy2(module, tree / "modules")
    shutil.copytree(STDLIB, _inside(tree, STDLIB), ignore=shutil.ignore_patterns(*LEFT_OUT))
    _add_product(tree / "product")
    _add_programs(tree, others)
    for disk in ("state.disk", "data.disk"):
        _said("mkfs.ext4", "-q", str(tree / disk), "8M")
    return _packed(tree, folder / "initramfs")


def _add_programs(tree: Path, others: Sequence[Path]) -> None:
    """Add Python and busybox, and each library that these and the modules of Python load."""
    python = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]
    programs = [python, *(Path("/bin", name) for name in PROGRAMS)]
    for file in {*programs, *chain.from_iterable(map(_libraries, [*programs, *others, *tree.rglob("*.so")]))}:
        _inside(tree, file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, _inside(tree, file))
    (tree / "bin" / "python3").symlink_to(python)
    for program in others:
        shutil.copy2(program, tree / "bin")
    for name in {*_said("busybox", "--list").split()} - {*PROGRAMS}:
        (tree / "bin" / name).symlink_to("busybox")


def _libraries(program: Path) -> Iterator[Path]:
    """Yield the shared libraries that this program or library loads."""
    said = _said("sh", "-c", 'ldd "$0" 2>/dev/null || true', str(program))  # which fails for a static program
    yield from (Path(word) for word in said.split() if word.startswith("/"))


def _add_product(folder: Path) -> None:
    shutil.copytree(ROOT / "supervisor", folder / "supervisor", symlinks=False)
    for name in sorted(_required("consul-supervisor") - {"consul-supervisor"}):
        installed = distribution(name)
        for file in installed.files or ():
            if ".." not in file.parts:
                (folder / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(Path(str(installed.locate_file(file))), folder / file)


def _required(name: str) -> set[str]:
    """Return this package and all that it requires, and so on."""
    wanted = [Requirement(text) for text in distribution(name).requires or ()]
    needed = {each.name for each in wanted if each.marker is None or each.marker.evaluate({"extra": ""})}
    return {name}.union(*map(_required, needed))


def _packed(tree: Path, image: Path) -> Path:
    names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
    with image.open("wb") as file:
        argv = ["cpio", "--quiet", "--create", "--format=newc", "--owner=+0:+0"]
        subprocess.run(argv, input=names.encode(), stdout=file, cwd=tree, check=True)
    shutil.rmtree(tree)
    return image


def _said(*argv: str) -> str:
    """Run a program of this machine, and return what it wrote."""
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout


def _inside(tree: Path, path: Path) -> Path:
    return tree / path.relative_to("/")
