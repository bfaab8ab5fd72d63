"""One report of each kind, from the files of the demo, and what a browser shows of it; the reports are left in build/reports."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from docs.making.steps import ROOT

PLACE = ROOT / "build" / "reports"
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking")
MODELS = ("ease", "item-knn", "popularity")
REPORTS = {
    "evaluation": [
        "evaluate", "demo/random.parquet", "--positive", ">3", "--exposure", "random", "--exclude", "demo/train.parquet",
        *(part for name in MODELS for part in ("--scores", f"{name}=demo/scores/{name}.npz")),
        "--metric", "Recall@{5,10,20,50}", "--metric", "Precision@10", "--report", "evaluation.html", "--out", "table.txt",
    ],
    "off-policy": [
        "offpolicy", "demo/feed/log.parquet", "--target", "new=demo/feed/better.parquet", "--target",
        "old=demo/feed/worse.parquet", "--target", "log=@position", "--baseline", "log", "--position", "fit:yule",
        "--clip", "1,2,4,8,16,inf", "--report", "off-policy.html", "--out", "table.txt",
    ],
    "study": ["report", "study", "--out", "study.html"],
}  # fmt: skip
STUDY = [
    "study", "reliability", "demo/truth.parquet", "--positive", ">3", "--train", "demo/train.parquet", "--out", "study",
    *(part for name in MODELS for part in ("--scores", f"{name}=demo/scores/{name}.npz")),
    "--loggers", "uniform,popularity", "--sparsities", "0,0.5,0.9,0.95", "--sizes", "1,3,10,30,100,300", "--metric", "nDCG@10",
    "--repetitions", "2",
]  # fmt: skip
# picture: report, width, height, colours, what is at the top
PICTURES = {
    "evaluation": ("evaluation", 1100, 900, "light", None),
    "differences": ("evaluation", 1100, 900, "light", "differences"),
    "users": ("evaluation", 1100, 800, "light", "units"),
    "phone": ("evaluation", 360, 800, "dark", None),
    "off-policy": ("off-policy", 1100, 900, "dark", None),
    "clips": ("off-policy", 1100, 620, "dark", "clips"),
    "study": ("study", 1240, 620, "light", "figures"),
}


def made() -> dict[str, bytes]:
    shutil.rmtree(PLACE, ignore_errors=True)  # those of an earlier time
    PLACE.mkdir(parents=True)
    write(PLACE)
    return {f"figures/report/{name}.png": content for name, content in shown(PLACE).items()}


def write(place: Path) -> None:
    """The demo and the reports, as a reader would make them."""
    for arguments in (["demo", "--out", "demo", "--force"], STUDY, *REPORTS.values()):
        subprocess.run([sys.executable, "-m", "truerank", *arguments], cwd=place, check=True, stdout=subprocess.DEVNULL)


def shown(place: Path) -> dict[str, bytes]:
    """Pictures of the reports, as Debian's browser shows them."""
    from playwright.sync_api import sync_playwright

    found = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(FLAGS))
        for name, (report, width, height, scheme, section) in PICTURES.items():
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto((place / f"{report}.html").as_uri())
            page.wait_for_selector("html[data-ready=yes]", timeout=120_000)
            if section is not None:
                page.evaluate("name => document.getElementById(name).scrollIntoView({behavior: 'instant'})", section)
            found[name] = page.screenshot()
            page.close()
        browser.close()
    return found
