"""The figures of a reliability study show every value of its results, and nothing is lost on the way to the picture."""

from __future__ import annotations

import math
import re
import shutil
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import polars as pl
import pytest
from small_study import SPARSITIES, small_grid, small_scores, small_train, small_world

from truerank.core.errors import InputError
from truerank.io.atomic_write import seal
from truerank.metrics.ndcg import NDCG
from truerank.metrics.recall import Recall
from truerank.reliability import study
from truerank.reliability.studied import KIND
from truerank.report.charts import COLOURS, PictureFormat, picture, text_width
from truerank.report.reliability_charts import Figure, chart, described, draw
from truerank.report.reliability_frames import (
    COLUMNS,
    SIZED,
    SIZELESS,
    Finished,
    Panel,
    PanelLayout,
    StudyQuestion,
    Tau,
    placed,
    styles,
    tau_axis,
    tie_axis,
)

SVG = "{http://www.w3.org/2000/svg}"
SAMPLERS = (*SIZELESS, *SIZED)
LOGGERS = ("uniform", "popularity", "positivity")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("figures") / "study"
    world = small_world()
    grid = replace(small_grid(), metrics=(NDCG(100), Recall(3)))
    study(small_scores(world), world, out, grid=grid, train=small_train(), resamples=20)
    return out


@pytest.fixture(scope="module")
def drawn(folder: Path) -> dict[StudyQuestion, bytes]:
    paths = draw(folder)
    assert list(paths.values()) == [folder / "figures" / f"{each}.svg" for each in StudyQuestion]
    return {question: path.read_bytes() for question, path in paths.items()}


def results_of(folder: Path, question: StudyQuestion, metric: str = "nDCG@100") -> pl.DataFrame:
    whole = pl.read_parquet(folder / "results.parquet")
    return whole.filter((pl.col("question") == question.value) & (pl.col("metric") == metric))


def another(folder: Path, place: Path, results: pl.DataFrame) -> Path:
    """A study with the same note and other results."""
    place.mkdir()
    shutil.copy(folder / "study.json", place)
    results.write_parquet(place / "results.parquet")
    seal(place, kind=KIND, names=("study.json", "results.parquet"))
    return place


def svg_of(figure: Figure) -> bytes:
    return picture(chart(figure), PictureFormat.SVG)


def words(svg: bytes) -> str:
    """All text of a picture, lines joined."""
    return " ".join(" ".join(each.itertext()) for each in ET.fromstring(svg).iter(f"{SVG}text"))


def labels(svg: bytes) -> list[str]:
    """What each mark says of itself: its panel, sampler, size and value."""
    return [
        each.attrib["aria-label"]
        for each in ET.fromstring(svg).iter()
        if each.attrib.get("role") == "graphics-symbol"
        and each.attrib.get("aria-roledescription") in {"point", "rule mark"}
    ]


@pytest.mark.parametrize("metric", ["nDCG@100", "Recall@3"])
@pytest.mark.parametrize("tau", list(Tau))
def test_every_value_of_the_results_is_there_point_by_point(folder: Path, tau: Tau, metric: str) -> None:
    figures = described(folder, tau=tau, metric=metric)
    for question, each in figures.items():
        rows = results_of(folder, question, metric)
        columns = COLUMNS[Tau.LEFT_OUT if question is StudyQuestion.RESOLUTION else tau]
        assert len(each.marks) == len(rows) == 3 * 3 * (3 + 6 * 3)
        assert each.marks.select("logger", "sparsity", "sampler", "size").equals(
            rows.select("logger", "sparsity", "sampler", "size")
        )
        for name, column in zip(("value", "low", "high"), columns, strict=True):
            if column in rows.columns:
                assert each.marks[name].equals(rows[column].fill_nan(None).alias(name))
            else:
                assert each.marks[name].is_null().all()
        marks = each.marks.with_columns(
            expected=pl.when(pl.col("value") > 0).then("value").otherwise(each.axis.zero or pl.col("value"))
        )
        defined = marks.filter(pl.col("value").is_not_null())
        assert defined["at"].to_list() == defined["expected"].to_list()
        assert marks["at"].is_between(each.axis.low, each.axis.high).all()


def test_zero_tie_rates_stand_on_a_line_of_their_own(folder: Path) -> None:
    figure = described(folder)[StudyQuestion.RESOLUTION]
    zeros = int((results_of(folder, StudyQuestion.RESOLUTION)["value"] == 0).sum())
    assert zeros > 0
    assert figure.axis.zero == figure.axis.low == figure.axis.ticks[0]
    assert figure.marks.filter(pl.col("state") == "zero")["at"].to_list() == [figure.axis.zero] * zeros
    assert f"The lowest line of the axis is 0: {zeros} of 189 tie rates are 0." in figure.subtitle


@pytest.mark.parametrize("question", list(StudyQuestion))
def test_a_picture_has_all_panels_samplers_and_points(
    folder: Path, drawn: dict[StudyQuestion, bytes], question: StudyQuestion
) -> None:
    text = words(drawn[question])
    for logger in LOGGERS:
        for sparsity in SPARSITIES:
            assert f"{logger}, {100 * sparsity:g} % hidden" in text
    for sampler in SAMPLERS:
        assert re.search(rf"(^| ){re.escape(sampler)}( |$)", text)
    for said in ("nDCG@100", "11 users", "2 repetitions", "95 % intervals", "20 resamples", "4 models",
                 "number of sampled negatives per user", "log axis"):  # fmt: skip
        assert said in text
    rows = results_of(folder, question)
    marks = labels(drawn[question])
    assert len(marks) == len(rows)
    for sampler in SAMPLERS:
        wanted = rows.filter(pl.col("sampler") == sampler)
        assert sum(re.search(rf"; {re.escape(sampler)}[,:]", each) is not None for each in marks) == len(wanted)


@pytest.mark.parametrize("question", list(StudyQuestion))
def test_each_mark_is_a_row_of_the_results(
    folder: Path, drawn: dict[StudyQuestion, bytes], question: StudyQuestion
) -> None:
    """Panel, sampler, size, value and interval, as the picture tells them to those who cannot see it."""
    said = re.compile(r"(.+), (.+) % hidden; ([^,:]+)(?:, (\d+) negatives)?: (\S+) \((\S+) to (\S+)\)")
    found = {}
    for label in labels(drawn[question]):
        match = said.fullmatch(label)
        assert match is not None
        logger, hidden, sampler, size, *values = match.groups()
        found[logger, float(hidden), sampler, None if size is None else int(size)] = [float(each) for each in values]
    rows = results_of(folder, question).select("logger", "sparsity", "sampler", "size", "value", "low", "high").rows()
    assert len(found) == len(rows)
    for logger, sparsity, sampler, size, *values in rows:
        assert found[logger, 100 * sparsity, sampler, size] == pytest.approx(values, rel=1e-5)


def test_points_stand_at_the_height_of_their_values(folder: Path, drawn: dict[StudyQuestion, bytes]) -> None:
    """The vertical place of each point, in pixels from the top of its panel."""
    for question in (StudyQuestion.RESOLUTION, StudyQuestion.PREDICTIVE_POWER):
        figure = described(folder)[question]
        axis, height = figure.axis, figure.layout.panel_height
        marks = {(p.title, s, n): at for (p, s, n, at) in (
            (Panel(logger, sparsity), sampler, size, at)
            for logger, sparsity, sampler, size, at in figure.marks.select(
                "logger", "sparsity", "sampler", "size", "at").rows())}  # fmt: skip
        n_seen = 0
        for each in ET.fromstring(drawn[question]).iter(f"{SVG}path"):
            if each.attrib.get("aria-roledescription") != "point":
                continue
            title, _, rest = each.attrib["aria-label"].partition("; ")
            sampler, size = re.match(r"(\S+), (\d+) negatives", rest).groups()  # type: ignore[union-attr]
            at = marks[title, sampler, int(size)]
            share = (at - axis.low) / (axis.high - axis.low)
            if axis.log:
                share = math.log(at / axis.low) / math.log(axis.high / axis.low)
            place = float(re.match(r"translate\(\S+,(\S+)\)", each.attrib["transform"])[1])  # type: ignore[index]
            assert place == pytest.approx(height * (1 - share), abs=0.01)
            n_seen += 1
        assert n_seen == 9 * 18


def test_the_same_study_gives_the_same_bytes(folder: Path, drawn: dict[StudyQuestion, bytes], tmp_path: Path) -> None:
    for question, path in draw(folder, tmp_path / "again").items():
        assert path.read_bytes() == drawn[question]
    one = described(folder, loggers=["popularity"], sparsities=[0.5])
    small = chart(one[StudyQuestion.FIDELITY])
    for form, start in ((PictureFormat.PNG, b"\x89PNG\r\n\x1a\n"), (PictureFormat.PDF, b"%PDF-")):
        content = picture(small, form)
        assert content.startswith(start)
        if form is PictureFormat.PNG:  # a PDF has its parts in any order
            assert content == picture(small, form)
            width, height = struct.unpack(">II", content[16:24])
            assert 700 < width < 1200
            assert 600 < height < 1600


def test_undefined_values_are_crosses_and_break_lines(folder: Path, tmp_path: Path) -> None:
    gone = pl.col("sampler").is_in(["WTD", "Skew"]) & (pl.col("size") == 3) | (pl.col("sampler") == "Exposed")
    lost = [pl.when(gone).then(float("nan")).otherwise(pl.col(each)).alias(each) for each in ("value", "low", "high")]
    place = another(folder, tmp_path / "gone", pl.read_parquet(folder / "results.parquet").with_columns(lost))
    figure = described(place)[StudyQuestion.FIDELITY]
    crosses = figure.marks.filter(pl.col("state") == "undefined")
    assert len(crosses) == 9 * 3
    assert f"× at the bottom: 27 of {len(figure.marks)} values are not defined: all models tie." in figure.subtitle
    one = figure.marks.filter((pl.col("logger") == "uniform") & (pl.col("sparsity") == 0.5))
    assert one.filter(pl.col("state") == "undefined")["at"].n_unique() == 2  # those at one size above each other
    skew = one.filter(pl.col("sampler") == "Skew")
    assert skew["line"].to_list() == [0, 1, 1]
    assert skew["bar"].to_list() == [True, False, True]  # the intervals left and right of the gap are no band
    said = labels(svg_of(described(place, loggers=["uniform"])[StudyQuestion.FIDELITY]))
    assert len(said) == len(figure.marks) // 3
    assert sum(each.endswith(": undefined") for each in said) == 9


def test_tau_of_means_has_bands_where_the_study_has_them(folder: Path, tmp_path: Path) -> None:
    results = pl.read_parquet(folder / "results.parquet")
    bounds = ("tau_of_means_low", "tau_of_means_high")
    without = another(folder, tmp_path / "without", results.drop(bounds, strict=False))
    figure = described(without, tau=Tau.OF_MEANS)[StudyQuestion.ROBUSTNESS]
    assert figure.marks["bottom"].is_null().all()
    assert any(line.startswith("No intervals.") for line in figure.subtitle)
    columns = {bounds[0]: pl.col("tau_of_means") - 0.1, bounds[1]: pl.col("tau_of_means") + 0.1}
    given = another(folder, tmp_path / "with", results.with_columns(**columns))
    figure = described(given, tau=Tau.OF_MEANS)[StudyQuestion.ROBUSTNESS]
    assert figure.marks["bottom"].to_list() == figure.marks["low"].to_list()
    assert figure.marks["bottom"].is_not_null().all()
    assert described(given, tau=Tau.OF_MEANS)[StudyQuestion.RESOLUTION].marks["low"].is_not_null().all()


def test_a_sampler_looks_the_same_in_every_figure_and_part(folder: Path) -> None:
    whole, part = described(folder), described(folder, samplers=["WTD", "Full"])
    assert len({tuple(each.styles.items()) for each in whole.values()}) == 1
    for each in part.values():
        assert list(each.styles) == ["Full", "WTD"]
        assert all(each.styles[name] == whole[StudyQuestion.FIDELITY].styles[name] for name in each.styles)
        assert set(each.marks["sampler"]) == {"Full", "WTD"}
    many = styles({f"sampler {at}": True for at in range(20)} | {"Full": False, "Random": True})
    assert len(set(many.values())) == 22
    assert many["Random"].colour == COLOURS[0]


@pytest.mark.parametrize(("n_loggers", "n_sparsities"), [(1, 1), (1, 2), (3, 8), (5, 11), (5, 12), (2, 50)])
def test_any_number_of_panels_has_a_layout(n_loggers: int, n_sparsities: int) -> None:
    loggers = [f"logger {at}" for at in range(n_loggers)]
    sparsities = [at / n_sparsities for at in range(n_sparsities)]
    layout = PanelLayout.arranged(loggers, sparsities)
    assert [(each.logger, each.sparsity) for line in layout.lines for each in line] == [
        (logger, sparsity) for logger in loggers for sparsity in sparsities
    ]
    assert all(len({each.logger for each in line}) == 1 for line in layout.lines)
    assert layout.width <= 1000
    assert layout.is_open_below(len(layout.lines) - 1)
    for line in layout.lines:
        for each in line:
            heading = layout.heading(each)
            assert " ".join(heading) == each.title
            assert all(text_width(part) <= layout.panel_width for part in heading)


def test_open_axes_are_drawn(folder: Path, tmp_path: Path) -> None:
    """No sizes at all, one size, names of any length, and more sparsities than fit a line."""
    results = pl.read_parquet(folder / "results.parquet").filter(pl.col("metric") == "nDCG@100")
    one = results.filter((pl.col("sparsity") == 0.5) & (pl.col("logger") == "uniform"))
    many = [
        one.with_columns(logger=pl.lit(f"uniform(item_seed={seed}, and=more)"), sparsity=pl.lit(at / 11))
        for seed in (1, 2) for at in range(11)
    ]  # fmt: skip
    cases = {
        "sizeless": one.filter(pl.col("size").is_null()),
        "one size": one.filter(pl.col("size").is_null() | (pl.col("size") == 3)),
        "many": pl.concat(many),
    }
    for name, frame in cases.items():
        place = another(folder, tmp_path / name, frame)
        svg = svg_of(described(place)[StudyQuestion.RESOLUTION])
        assert len(labels(svg)) == len(frame) // 5
        assert "uniform" in words(svg)


def test_charts_are_valid(folder: Path) -> None:
    """Drawing leaves this check out."""
    for question, figure in described(folder, loggers=["popularity"]).items():
        assert sum(map(len, chart(figure).to_dict()["datasets"].values())) > len(results_of(folder, question)) // 3


def test_axes() -> None:
    def frame(*values: float | None) -> pl.DataFrame:
        return pl.DataFrame({each: pl.Series(values, dtype=pl.Float64) for each in ("value", "low", "high")})

    assert tie_axis(frame(1.0, 1.0)).high == 1.0
    assert tie_axis(frame(1.0)).low < 1.0
    assert tie_axis(frame(None)).zero is not None
    assert tie_axis(frame(0.0)).zero is not None
    assert tie_axis(frame(1e-9, 1.0)).low == 1e-9
    assert len(tie_axis(frame(1e-9, 1.0)).ticks) <= 6
    assert tau_axis(frame(None)).ticks == (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    assert tau_axis(frame(-0.45, 0.9)).ticks == (-0.5, 0.0, 0.5, 1.0)
    assert tau_axis(frame(-0.9, 0.9)).low == -1.0
    assert tau_axis(frame(-0.4)).low == -0.4


def test_what_cannot_be_drawn_is_refused(folder: Path, tmp_path: Path) -> None:
    unfinished, broken = tmp_path / "unfinished", tmp_path / "broken"
    unfinished.mkdir()
    shutil.copy(folder / "study.json", unfinished)
    broken.mkdir()
    (broken / "study.json").write_text("[")
    other = tmp_path / "other"
    other.mkdir()
    (other / "study.json").write_bytes(msgspec.json.encode({"study": "tuning"}))
    old = another(folder, tmp_path / "old", pl.DataFrame({"logger": ["uniform"]}))
    file = tmp_path / "file"
    file.touch()
    cases: list[tuple[str, Callable[[], object]]] = [
        ("is no folder of a study", lambda: draw(tmp_path)),
        ("is no folder of a study", lambda: draw(tmp_path / "absent")),
        ("not complete.*`truerank study reliability`; the command that began it goes on", lambda: draw(unfinished)),
        ("is no note of a study", lambda: draw(broken)),
        ("is no note of a study", lambda: draw(other)),
        ("lacks the column", lambda: draw(old)),
        ("'AUC' is not in the study; it has nDCG@100, Recall@3", lambda: draw(folder, metric="AUC")),
        ("logger x is not in the study; it has uniform, ", lambda: draw(folder, loggers=["x"])),
        ("sparsity 0.3 is not in the study; it has 0, 0.5, 0.8", lambda: draw(folder, sparsities=[0.3])),
        ("sampler Best is not in the study; it has Full, ", lambda: draw(folder, samplers=["Best"])),
        ("no sampler is asked for", lambda: draw(folder, samplers=[])),
        ("is a file; expected the name of a folder", lambda: draw(folder, file)),
    ]
    for message, call in cases:
        with pytest.raises(InputError, match=message):
            call()


def test_the_preferred_metric_or_else_the_last(folder: Path) -> None:
    finished = Finished.read(folder)
    assert finished.metric() == "nDCG@100"
    part = replace(finished, results=finished.results.filter(pl.col("metric") != "nDCG@100"))
    assert part.metric() == "Recall@3"


@pytest.mark.parametrize("library", ["altair", "vl_convert"])
def test_a_missing_library_is_named_with_what_to_install(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=rf"needs {library}, which .*pip install '\.\[report\]'"):
        draw(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert len(described(folder)) == 4  # what is shown can be looked at without them


def test_describing_and_the_commands_do_not_load_altair() -> None:
    code = (
        "import sys, truerank.cli.study, truerank.report.reliability_charts;"
        "print(sorted({'altair', 'vl_convert'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_placing_checked_by_hand() -> None:
    frame = pl.DataFrame(
        {"logger": "a", "sparsity": 0.0, "sampler": "Random", "size": [1, 2, 5], "value": [0.5, None, 0.0],
         "low": [0.25, None, 0.0], "high": [1.0, None, 0.5]}
    )  # fmt: skip
    found = placed(frame, tie_axis(frame))
    zero = 0.2 / 2
    assert found["state"].to_list() == ["value", "undefined", "zero"]
    assert found["at"].to_list() == pytest.approx([0.5, 0.1 * 10**0.03, zero])
    assert found["bottom"].to_list() == [0.25, None, zero]
    assert found["top"].to_list() == [1.0, None, 0.5]
    assert found["bar"].to_list() == [True, False, True]
