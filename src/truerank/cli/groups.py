"""Groups of options as values: how files are read, what is scored, what is asked, how sure it is.

A value holds what was given and reads it when asked to; heavy modules load then, so that help pages stay light.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truerank.cli.options import files_of_command, named, numbers
from truerank.core.errors import InputError
from truerank.core.record import record

if TYPE_CHECKING:
    import polars as pl

    from truerank.core.estimator import Estimator
    from truerank.core.ids import Ids
    from truerank.core.log import Log
    from truerank.core.metric import Metric
    from truerank.core.progress import Progress
    from truerank.core.ranking import Scores
    from truerank.core.requirements import Requirement
    from truerank.core.values import Option
    from truerank.inference.intervals import Interval
    from truerank.io.log_schema import LogSchema
    from truerank.io.paths import FileVersion


@record
class InputFile:
    """A file that goes in: what it is read as, where it is, and the name of the model it belongs to.

    `versions` are taken before anything is read: of the file, or of all part files.
    """

    role: str
    path: Path
    name: str | None = None
    versions: tuple[FileVersion, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", self._versions())

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """Refuse the file if it, or any part, is not what it was before anything was read."""
        from truerank.io.paths import changed_input

        yield
        if self._versions() != self.versions:
            raise changed_input(self.path)

    def _versions(self) -> tuple[FileVersion, ...]:
        from truerank.io.paths import files_of, versions_of

        try:
            return versions_of(files_of(self.path))
        except InputError:
            return ()  # what reads it reports why


def input_files(**files: Path | None) -> list[InputFile]:
    """The files of options that are used, by their role."""
    return [InputFile(role, path) for role, path in files.items() if path is not None]


@record(kw_only=True)
class Reading:
    """How files are read: names of columns, which values are positive, which users and items there are."""

    columns: str | None = None
    positive: str | None = None
    population: Path | None = None
    items: Path | None = None
    n_items: int | None = None
    also: Mapping[str, str] = field(default_factory=dict)  # columns that other options name
    role: str = ""  # of the file that is read, as its option is called; none for the argument of the command

    def files(self) -> list[InputFile]:
        return input_files(items=self.items, population=self.population)

    def for_file(self, role: str) -> Reading:
        """How the file of an option is read: by column names of that file where `--columns` has them."""
        return replace(self, role=role)

    def mapping(self, *, ranked: bool = False) -> dict[str, str]:
        """This library's names of columns and the files': `user=user_id,scores.item=video_id`."""
        from truerank.io.columns import KEYS, RANKED_KEYS

        names = (*KEYS, *RANKED_KEYS) if ranked else KEYS
        mapping: dict[str, str] = {}
        of_this_file: dict[str, str] = {}
        seen: set[str] = set()
        for part in filter(str.strip, (self.columns or "").split(",")):
            key, _, name = (side.strip() for side in part.partition("="))
            file, _, kind = key.rpartition(".")
            wrong = ""
            if not (key and name):
                wrong = f"{part!r} is not NAME=COLUMN, as in user=user_id,item=video_id."
            elif kind not in names:
                wrong = f"{kind!r} is not known; expected one of {', '.join(names)}."
            elif key in seen:
                wrong = f"{key!r} is named twice; expected one column for it."
            elif file and file not in files_of_command():
                wrong = f"{file!r} is no file of this command; expected one of {', '.join(files_of_command())}."
            if wrong:
                raise InputError(f"--columns {self.columns!r}: {wrong}")
            seen.add(key)
            if not file:
                mapping[kind] = name
            elif file == (self.role or files_of_command()[0]):
                of_this_file[kind] = name
        return mapping | of_this_file | dict(self.also)

    def ids(self, path: Path | None, kind: str) -> pl.Series | None:
        """A file's column `user`, `item` or `session`, in the order of its rows; one column alone needs no name."""
        if path is None:
            return None
        from truerank.core.ids import as_ids
        from truerank.io.batches import LazyTable
        from truerank.io.columns import table_columns

        names = LazyTable.of(path).columns
        rows = table_columns(path, {kind: names[0]} if len(names) == 1 else self.mapping(), (kind,))
        ids = rows.get(kind)
        return as_ids(ids, where=f"{rows.where}, column {ids.name!r}")

    def catalogue(self) -> pl.Series | None:
        """The items that are declared, in their order."""
        return self.for_file("items").ids(self.items, "item")

    def users(self) -> Ids | None:
        """The users that are declared."""
        from truerank.core.ids import Ids

        everyone = self.for_file("population").ids(self.population, "user")
        return None if everyone is None else Ids.of(everyone)

    def groups(self, path: Path, kind: str) -> pl.DataFrame:
        """A table of users or items, and the group of each."""
        from truerank.core.ids import as_ids
        from truerank.io.columns import table_columns

        rows = table_columns(path, self.mapping(ranked=True), (kind,))
        ids = rows.get(kind)
        column = as_ids(ids, where=f"{rows.where}, column {ids.name!r}").alias("id")
        return column.to_frame().with_columns(group=rows.get("group"))

    def log(self, path: Path, **more: Any) -> Log:
        """All rows of a file."""
        from truerank.io.read import read

        return read(path, columns=self.mapping(), **{"positive": self.positive, **more})

    def pairs(self, path: Path | None) -> Log | None:
        """Users and items of a file, whatever values it has."""
        return None if path is None else self.log(path, positive=None, values=False)

    def scan(self, path: Path, *, progress: Progress | None, **more: Any) -> LogSchema:
        """What a file holds, to be read in chunks."""
        from truerank.io.read import scan

        return scan(path, columns=self.mapping(), progress=progress, **{"positive": self.positive, **more})

    def scan_pairs(self, path: Path | None, *, progress: Progress | None) -> LogSchema | None:
        return None if path is None else self.scan(path, progress=progress, positive=None, values=False)


@record(kw_only=True)
class Scoring:
    """What models say, and which items compete."""

    scores: tuple[str, ...] = ()
    users: Path | None = None
    exclude: Path | None = None
    overlap: str = "drop"
    lists: str | None = None
    candidates: Path | None = None

    def paths(self) -> dict[str, Path]:
        return {name: Path(path) for name, path in named(self.scores, "--scores").items()}

    def files(self) -> list[InputFile]:
        models = [InputFile("scores", path, name) for name, path in self.paths().items()]
        return [*models, *input_files(users=self.users, exclude=self.exclude, candidates=self.candidates)]

    def check(self) -> None:
        if self.users is not None and not any(path.suffix in (".npy", ".npz") for path in self.paths().values()):
            raise InputError(
                "--users names the rows of .npy and .npz scores without ids; "
                "to declare the users that count, say --population."
            )

    def read(self, path: Path, reading: Reading, *, items: pl.Series | None) -> Scores:
        """The scores of a file; `items` names the columns of a matrix without ids."""
        from truerank.ranking.scores.files import read_scores

        users = reading.for_file("users").ids(self.users, "user")
        return read_scores(path, columns=reading.for_file("scores").mapping(), users=users, items=items)

    def models(self, reading: Reading, *, items: pl.Series | None) -> dict[str, Scores]:
        return {name: self.read(path, reading, items=items) for name, path in self.paths().items()}


@record(kw_only=True)
class RequestOptions:
    """What is asked: metrics or rewards, estimators with their options, clips of weights."""

    metrics: tuple[str, ...] = ()
    estimators: tuple[str, ...] = ()
    clips: tuple[str, ...] = ()
    reward_model: str | None = None
    ties: str = "expected"
    item_groups: Path | None = None
    judge: Path | None = None
    assist: Path | None = None
    rewards: tuple[str, ...] = ()
    reward_range: str | None = None
    normaliser: str = "session"

    def chosen_metrics(self) -> tuple[Metric, ...] | None:
        """The metrics that are asked for, None for the defaults."""
        from truerank.core.language import as_values
        from truerank.metrics import METRICS

        return as_values(self.metrics, METRICS) if self.metrics else None

    def chosen_range(self) -> tuple[float, float] | None:
        """What every reward lies between, where it was declared."""
        if self.reward_range is None:
            return None
        ends = numbers(self.reward_range, "--reward-range") or []
        if len(ends) != 2:
            raise InputError(f"--reward-range {self.reward_range!r}; expected two numbers, as 0,5.")
        return ends[0], ends[1]

    def chosen_clips(self, *, auto: bool = False) -> Any:
        """Limits of weights between commas; of an option that is repeated all of them. `auto` alone, where allowed."""
        if not self.clips:
            return None
        text = ",".join(self.clips)
        words = [part.strip().lower() for part in text.split(",")]
        if auto and words == ["auto"]:
            from truerank.inference.clipping import AutoClip

            return AutoClip()
        if "auto" in words:
            hint = "numbers, or auto alone, which chooses one" if auto else "numbers, as 1,8,inf"
            raise InputError(
                f"--clip {text!r}: auto chooses the clip of a ranked log (truerank offpolicy); expected {hint}."
            )
        try:
            clips = tuple(map(float, words))
        except ValueError:
            clips = (0.0,)
        if not all(clip > 0 for clip in clips):
            raise InputError(f"--clip {text!r}; expected positive numbers, as 1,2,8,inf, or auto.")
        return clips

    def chosen_estimators(self, scoring: Scoring, reading: Reading, *, items: Any) -> list[Estimator] | None:
        """The estimators that are asked for, with the reward model where one takes it; None for the defaults."""
        from truerank import estimators
        from truerank.core.values import options_of

        chosen: list[Any] = [estimators.parse(text) for text in self.estimators]
        if self.reward_model is None:
            return chosen or None
        takes = [name for name, cls in estimators.catalogue().items() if "reward" in options_of(cls)]
        able = [estimator for estimator in chosen if estimator.info.name in takes]
        if not able:
            raise InputError(f"--reward-model is for --estimator {' or '.join(takes)}; add it.")
        model = self._rewards(options_of(type(able[0]))["reward"], scoring, reading, items=items)
        return [replace(estimator, reward=model) if estimator in able else estimator for estimator in chosen]

    def _rewards(self, option: Option, scoring: Scoring, reading: Reading, *, items: Any) -> Any:
        """The reward model of a name, or the predictions in a file."""
        from truerank.core.language import kind_held
        from truerank.estimators.predictions import GivenRewards

        text, models = self.reward_model or "", kind_held(option)
        if models is not None and text.partition("(")[0].strip().lower() in models.catalogue():
            return models.parse(text)
        return GivenRewards(scoring.read(Path(text), reading, items=items))

    def predictions(self, scoring: Scoring, reading: Reading, *, items: Any) -> dict[str, Any]:
        """What predicts labels that nobody has: what a judge says, and the scores of a recommender."""
        from truerank.evaluation.label_facts import read_judge

        judge = None if self.judge is None else read_judge(self.judge, columns=reading.for_file("judge").mapping())
        scores = None if self.assist is None else scoring.read(self.assist, reading, items=items)
        return {"judge": judge, "assist": scores}

    def files(self) -> list[InputFile]:
        """The groups of items, and the files of what is predicted."""
        path = Path(self.reward_model or "")
        predicted = path if self.reward_model and path.is_file() else None
        return input_files(item_groups=self.item_groups, reward_model=predicted, judge=self.judge, assist=self.assist)


@record(kw_only=True)
class Inference:
    """How sure results are, what is compared with what, and what is drawn."""

    interval: str = "population"
    bootstrap: int | None = None
    level: float = 0.95
    adjust: str = "estimand"
    requirements: tuple[str, ...] = ()
    baseline: str | None = None
    seed: int = 0
    threads: int | None = None
    engine: str = "local"

    def arguments(self, *names: str) -> dict[str, Any]:
        """Options that a function of the library takes under the same names."""
        return {name: getattr(self, name) for name in names}

    def required(self, models: Iterable[str]) -> list[Requirement]:
        """What must be shown, checked against the names of models."""
        from truerank.core.requirements import Requirement

        rules = [Requirement.parse(text) for text in self.requirements]
        for rule in rules:
            rule.check(list(models))
        return rules

    def chosen_interval(self) -> Interval | None:
        from truerank.inference.intervals import Bootstrap, Design

        if self.bootstrap is None:
            return Design() if self.interval == "design" else None
        if self.interval == "design":
            raise InputError("--bootstrap redraws users; it goes with --interval population.")
        if self.bootstrap < 2:
            raise InputError(f"--bootstrap {self.bootstrap}; expected at least 2 samples, better 1000.")
        return Bootstrap(self.bootstrap, self.seed)

    def check(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise InputError(f"--threads {self.threads}; expected a whole number from 1.")
        from truerank.engines.named import as_engine

        as_engine(self.engine)
