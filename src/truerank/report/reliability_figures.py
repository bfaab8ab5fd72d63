"""The four figures of a reliability study, from its folder (paper 5, figures 2 to 5)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from truerank.core.errors import InputError
from truerank.data.files import whole_file
from truerank.report.reliability_charts import PictureFormat, altair, chart, picture
from truerank.report.reliability_frames import Finished, StudyQuestion, Tau
from truerank.report.reliability_layout import Figure, figure

WHO = "drawing figures"


def described(
    folder: str | Path,
    *,
    metric: str | None = None,
    tau: Tau = Tau.LEFT_OUT,
    loggers: Sequence[str] | None = None,
    sparsities: Sequence[float] | None = None,
    samplers: Sequence[str] | None = None,
) -> dict[StudyQuestion, Figure]:
    """What each figure of a finished study shows, before it is drawn; needs no other library."""
    every = Finished.read(Path(folder))
    asked = every.metric(metric)
    part = every.only("logger", loggers).only("sparsity", sparsities).only("sampler", samplers)
    return {each: figure(part, each, metric=asked, tau=Tau(tau), every=every) for each in StudyQuestion}


def charts(figures: dict[StudyQuestion, Figure]) -> dict[StudyQuestion, Any]:
    """The figures as altair charts, to change or to combine."""
    altair(WHO)
    return {question: chart(each) for question, each in figures.items()}


def draw(
    folder: str | Path,
    out: str | Path | None = None,
    *,
    form: PictureFormat = PictureFormat.SVG,
    metric: str | None = None,
    tau: Tau = Tau.LEFT_OUT,
    loggers: Sequence[str] | None = None,
    sparsities: Sequence[float] | None = None,
    samplers: Sequence[str] | None = None,
) -> dict[StudyQuestion, Path]:
    """Write the four figures of a finished study into `out` (`figures` in its folder) and tell where they are.

    Panels are loggers x sparsities; in each, resolution (share of pairs of models that tie), fidelity, robustness or
    predictive power (Kendall's τ-b) of one metric against the number of sampled negatives, a line with its interval for
    each sampler. `loggers`, `sparsities` and `samplers` choose a part; a sampler looks the same in every part. Nothing
    is written unless all four could be drawn; the same study gives the same bytes (SVG, PNG).
    """
    altair(WHO)
    form = PictureFormat(form)
    figures = described(
        folder, metric=metric, tau=tau, loggers=loggers, sparsities=sparsities, samplers=samplers
    )  # fmt: skip
    place = Path(folder) / "figures" if out is None else Path(out)
    if place.exists() and not place.is_dir():
        raise InputError(f"{place}: is a file; expected a folder for the figures. Choose another place.")
    made = {question: picture(each, form, who=WHO) for question, each in charts(figures).items()}
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{place}: cannot be made a folder ({error.strerror}). Choose another place.") from None
    paths = {question: place / f"{question.value}.{form.value}" for question in made}
    for question, path in paths.items():
        with whole_file(path) as temporary:
            temporary.write_bytes(made[question])
    return paths
