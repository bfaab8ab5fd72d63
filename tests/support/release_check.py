"""A release as others would get it: an sdist and a wheel, built, checked, installed into a fresh environment and tried.

Everything happens in a temporary folder; with --out FOLDER the two files are left there. Nothing is published.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 2_000_000  # of a wheel
SHIPPED = "truerank/reliability/shipped/"  # aggregates of scenarios, whose terms NOTICE names
DATA = {".csv", ".tsv", ".parquet", ".npz", ".npy", ".dat", ".inter", ".xls", ".xlsx", ".zip", ".gz"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="a folder to leave the sdist and the wheel in")
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = built(folder)
        wheel = next(path for path in files if path.suffix == ".whl")
        problems = problems_of(wheel)
        print(f"{wheel.name}: {wheel.stat().st_size:,} bytes; {tried(str(wheel), folder / 'from-wheel')}")
        print(f"from a checkout: {tried('.', folder / 'from-checkout')}")
        if problems:
            sys.exit("\n".join(problems))
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            for path in files:
                shutil.copy(path, out)


def built(folder: Path) -> list[Path]:
    """An sdist, and a wheel made from it, that pass twine's check."""
    python = environment(folder / "build")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "build", "twine")
    run(python, "-m", "build", "--outdir", str(folder / "dist"), str(ROOT))
    files = sorted((folder / "dist").iterdir())
    run(python, "-m", "twine", "check", "--strict", *map(str, files))
    return files


def problems_of(wheel: Path) -> list[str]:
    """What a wheel must not be: large, or with data or anything but the package."""
    found = []
    if wheel.stat().st_size > MOST_BYTES:
        found.append(f"{wheel.name}: {wheel.stat().st_size:,} bytes; expected at most {MOST_BYTES:,}")
    for name in zipfile.ZipFile(wheel).namelist():
        own = name.startswith("truerank/") or ".dist-info/" in name
        if not own or (Path(name).suffix in DATA and not name.startswith(SHIPPED)):
            found.append(f"{wheel.name}: {name} does not belong there")
    return found


def tried(what: str, folder: Path) -> str:
    """How long it takes to install it into an environment of its own, and to run the demo there for the first time."""
    begin = _now()
    python = environment(folder / "environment")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir", what, at=ROOT)
    installed = _now()
    # not beside the source, so that what is installed is what runs
    run(str(Path(python).with_name("truerank")), "demo", "--quiet", at=folder)
    steps = {"installed": (begin, installed), "first demo": (installed, _now()), "in all": (begin, _now())}
    said = [
        f"{name} in {end[0] - start[0]:.0f} s ({end[1] - start[1]:.0f} s of processor time)"
        for name, (start, end) in steps.items()
    ]
    return "; ".join(said)


def _now() -> tuple[float, float]:
    """The clock, and the processor time of all that was run."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter(), used.ru_utime + used.ru_stime


def environment(folder: Path) -> str:
    run(sys.executable, "-m", "venv", str(folder))
    return str(folder / "bin" / "python")


def run(*words: str, at: Path = ROOT) -> None:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(words, check=True, cwd=at, env=clean, stdout=subprocess.DEVNULL if "demo" in words else None)


if __name__ == "__main__":
    main()
