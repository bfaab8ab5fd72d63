"""What a call reads: its files, by the names of their options; models, estimators. Heavy modules load late."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from truerank.cli.options import Call, files_of_command, named, numbers
from truerank.core.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from truerank.core.ids import Ids
    from truerank.core.metric import Metric
    from truerank.core.ranking import Scores
    from truerank.core.requirements import Requirement
    from truerank.inference.intervals import Interval
    from truerank.io.paths import FileVersion

EXPOSURE = "exposure:"
PAIRS = {"positive": None, "values": False}  # how a file is read of which only users and items count
# the options that name files, in the order of the provenance
FILES = (
    "labels", "log", "pilot", "scores", "target", "logger", "sessions", "users", "exclude", "candidates", "items",
    "population", "random", "user_features", "item_features", "design", "item_groups", "reward_model", "judge",
    "assist", "within",
)  # fmt: skip


class InputFile(NamedTuple):
    """A file that goes in: what it is read as, where it is, and the name of the model it belongs to.

    `versions` are those before anything is read: of the file, or of all part files.
    """

    role: str
    path: Path
    name: str | None
    versions: tuple[FileVersion, ...]

    def check_unchanged(self) -> None:
        """Refuse the file if it, or any part, is not what it was before anything was read."""
        from truerank.io.paths import changed_input

        if _versions(self.path) != self.versions:
            raise changed_input(self.path)


def input_files(call: Call) -> list[InputFile]:
    """The files of all options that are used."""
    return [InputFile(role, path, name, _versions(path)) for role, path, name in _paths(call)]


def _paths(call: Call) -> Iterator[tuple[str, Path, str | None]]:
    for role in FILES:
        value = call.values.get(role)
        if role == "scores":
            yield from ((role, path, name) for name, path in score_files(call).items())
        elif role in ("target", "logger"):
            tables = policies(call, role).items()
            yield from ((role, path, name) for name, path in tables if isinstance(path, Path))
        elif role == "within":
            if value is not None and not is_count(value):
                yield "groups", Path(value), None
        elif value and (role != "reward_model" or Path(value).is_file()):
            yield role, Path(value, "shown.parquet") if role == "design" else Path(value), None


def _versions(path: Path) -> tuple[FileVersion, ...]:
    from truerank.io.paths import files_of, versions_of

    try:
        return versions_of(files_of(path))
    except InputError:
        return ()  # what reads it reports why


def is_count(text: str) -> bool:
    return text.strip().lstrip("+-").isdecimal()


# ------------------------------------------------------------------------------------------------------------- columns


def column_names(call: Call, role: str = "", *, ranked: bool = False) -> dict[str, str]:
    """This library's names of columns and those of the file of an option: `user=user_id,scores.item=video_id`.

    Without an option, of the first file of the command.
    """
    from truerank.io.columns import KEYS, RANKED_KEYS

    names = (*KEYS, *RANKED_KEYS) if ranked else KEYS
    everywhere: dict[str, str] = {}
    here: dict[str, str] = {}
    seen: set[str] = set()
    for part in filter(str.strip, (call.columns or "").split(",")):
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
            raise InputError(f"--columns {call.columns!r}: {wrong}")
        seen.add(key)
        if file in ("", role or files_of_command()[0]):
            (here if file else everywhere)[kind] = name
    propensity: dict[str, str] = call.values.get("propensity_column", {})
    return everywhere | here | propensity


def read_ids(call: Call, role: str, kind: str) -> pl.Series | None:
    """A file's column `user`, `item` or `session`, in the order of its rows; one column alone needs no name."""
    if (path := call.values.get(role)) is None:
        return None
    from truerank.core.ids import as_ids
    from truerank.io.batches import LazyTable
    from truerank.io.columns import table_columns

    columns = LazyTable.of(path).columns
    rows = table_columns(path, {kind: columns[0]} if len(columns) == 1 else column_names(call, role), (kind,))
    ids = rows.get(kind)
    return as_ids(ids, where=f"{rows.where}, column {ids.name!r}")


def declared(call: Call, role: str, kind: str) -> Ids | None:
    """The items or users that a file declares."""
    from truerank.core.ids import Ids

    ids = read_ids(call, role, kind)
    return None if ids is None else Ids.of(ids)


def read_groups(call: Call, role: str, kind: str) -> pl.DataFrame | None:
    """A table of users or items, and the group of each."""
    if getattr(call, role) is None:
        return None
    from truerank.core.ids import as_ids
    from truerank.io.columns import table_columns

    rows = table_columns(Path(getattr(call, role)), column_names(call, role, ranked=True), (kind,))
    ids = rows.get(kind)
    column = as_ids(ids, where=f"{rows.where}, column {ids.name!r}").alias("id")
    return column.to_frame().with_columns(group=rows.get("group"))


def read_log(call: Call, role: str, **settings: Any) -> Any:
    """All rows of the file of an option, None where it is not used."""
    from truerank.io.read import read

    path = getattr(call, role)
    settings = {"positive": call.positive, **settings}
    return None if path is None else read(path, columns=column_names(call, role), **settings)


def scan_log(call: Call, role: str, **settings: Any) -> Any:
    """What the file of an option holds, to be read in chunks."""
    from truerank.io.read import scan

    path = getattr(call, role)
    settings = {"positive": call.positive, **settings}
    return None if path is None else scan(path, columns=column_names(call, role), **settings)


# -------------------------------------------------------------------------------------------------------------- models


def score_files(call: Call) -> dict[str, Path]:
    return {name: Path(path) for name, path in named(call.scores, "--scores").items()}


def check_users(call: Call) -> None:
    if call.users is not None and not any(path.suffix in (".npy", ".npz") for path in score_files(call).values()):
        raise InputError(
            "--users names the rows of .npy and .npz scores without ids; to declare the users that count, say "
            "--population."
        )


def score_reader(call: Call) -> Callable[[Path], Scores]:
    """What reads scores; the catalogue names the columns of a matrix without ids."""
    from truerank.ranking.scores.files import read_scores

    users, items = read_ids(call, "users", "user"), read_ids(call, "items", "item")
    return partial(read_scores, columns=column_names(call, "scores"), users=users, items=items)


def read_models(call: Call) -> dict[str, Scores]:
    read = score_reader(call)
    return {name: read(path) for name, path in score_files(call).items()}


def policies(call: Call, role: str) -> dict[str, Any]:
    """A table, or a column of the log, for each name."""
    expected = "NAME=FILE or NAME=@COLUMN"
    values = named(call.values.get(role, ()), f"--{role}", expected=expected)
    for name, value in values.items():
        if not value.strip("@") or value == f"@{EXPOSURE}":
            raise InputError(f"--{role} {f'{name}={value}'!r}: expected {expected}.")
    return {name: _policy(value) for name, value in values.items()}


def _policy(value: str) -> Any:
    if not value.startswith("@"):
        return Path(value)
    from truerank.exposure.policies.targets import ExposureColumn, RankColumn

    column = value[1:]
    return ExposureColumn(column.removeprefix(EXPOSURE)) if column.startswith(EXPOSURE) else RankColumn(column)


def position_model(call: Call) -> Any:
    from truerank.exposure.positions import parse_position

    return None if call.position is None else parse_position(call.position)


# ------------------------------------------------------------------------------------------------------------- request


def chosen_metrics(call: Call) -> tuple[Metric, ...] | None:
    """The metrics that are asked for, None for the defaults."""
    from truerank.core.language import as_values
    from truerank.metrics import METRICS

    return as_values(call.metric, METRICS) if call.metric else None


def chosen_clips(call: Call, *, auto: bool = False) -> Any:
    """Limits of weights between commas; of an option that is repeated all of them. `auto` alone, where allowed."""
    if not call.clip:
        return None
    text = ",".join(call.clip)
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


def chosen_range(call: Call) -> tuple[float, float] | None:
    """What every reward lies between, where it was declared."""
    ends = numbers(call.reward_range, "--reward-range")
    if ends is None:
        return None
    if len(ends) != 2:
        raise InputError(f"--reward-range {call.reward_range!r}; expected two numbers, as 0,5.")
    return ends[0], ends[1]


def chosen_estimators(call: Call) -> list[Any] | None:
    """The estimators that are asked for, with the reward model where one takes it; None for the defaults."""
    from truerank import estimators
    from truerank.core.values import options_of

    chosen: list[Any] = [estimators.parse(text) for text in call.estimator]
    if call.reward_model is None:
        return chosen or None
    takes = [name for name, cls in estimators.catalogue().items() if "reward" in options_of(cls)]
    able = [estimator for estimator in chosen if estimator.info.name in takes]
    if not able:
        raise InputError(f"--reward-model is for --estimator {' or '.join(takes)}; add it.")
    model = _reward_model(call, options_of(type(able[0]))["reward"])
    return [replace(estimator, reward=model) if estimator in able else estimator for estimator in chosen]


def _reward_model(call: Call, option: Any) -> Any:
    """The reward model of a name, or the predictions in a file."""
    from truerank.core.language import kind_held
    from truerank.estimators.predictions import GivenRewards

    text, models = call.reward_model, kind_held(option)
    if models is not None and text.partition("(")[0].strip().lower() in models.catalogue():
        return models.parse(text)
    return GivenRewards(score_reader(call)(Path(text)))


# ----------------------------------------------------------------------------------------------------------- inference


def required(call: Call, models: Iterable[str]) -> list[Requirement]:
    """What must be shown, checked against the names of models."""
    from truerank.core.requirements import Requirement

    rules, names = [Requirement.parse(text) for text in call.require], list(models)
    for rule in rules:
        rule.check(names)
    return rules


def chosen_interval(call: Call) -> Interval | None:
    from truerank.inference.intervals import Bootstrap, Design

    samples, design = call.bootstrap, call.interval == "design"
    if samples is None:
        return Design() if design else None
    if design:
        raise InputError("--bootstrap redraws users; it goes with --interval population.")
    if samples < 2:
        raise InputError(f"--bootstrap {samples}; expected at least 2 samples, better 1000.")
    return Bootstrap(samples, call.seed)


def check_threads(call: Call) -> None:
    from truerank.engines.named import as_engine

    if call.threads is not None and call.threads < 1:
        raise InputError(f"--threads {call.threads}; expected a whole number from 1.")
    as_engine(call.engine)
