"""prepare(Question, data) -> Plan: which estimators can give what is requested, and what is learned of all units."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Groups, Learned, Learner, learn
from truerank.core.ids import Keys
from truerank.core.messages import Message
from truerank.core.progress import Progress
from truerank.core.record import record
from truerank.core.wording import either
from truerank.engines.engine import ONE_THREAD, Chunked, Workers, map_chunks
from truerank.evaluation.compare import check_pairs
from truerank.evaluation.question import Plan, PlannedEstimate, Question

GROUPS = 40  # of clusters, without each of which models are fitted again

First = TypeVar("First")
Second = TypeVar("Second")
Mapped = Callable[[Callable[[Any], Any]], Iterable[Any]]  # what work makes of each chunk, in their order


@record(kw_only=True, eq=False)
class EvaluationData:
    """Data of one kind that were read: in chunks of whole units, with what makes their rows.

    `learner` fits what makes the weights of rows, where that is not given; `instead` says what to give in its place.
    """

    chunks: Chunked[Any]
    rows: Any
    models: tuple[str, ...]
    learner: Learner | None
    instead: str

    @property
    def keys(self) -> Keys:
        """The keys of the clusters of all units."""
        raise NotImplementedError

    def requests(self, question: Any) -> tuple[list[PlannedEstimate], list[Message]]:
        """Every estimator with what it can give of what is requested, and messages on what is left out."""
        raise NotImplementedError

    def learners(self, planned: PlannedEstimate) -> Sequence[Learner]:
        """What must be learned for an estimate."""
        raise NotImplementedError

    def facts(self, question: Any, estimates: Sequence[PlannedEstimate], mapped: Mapped | None) -> dict[str, Any]:
        """What estimators know of the whole beside what is learned; `mapped` looks at all chunks, if any must learn."""
        return {}

    def plan(
        self, question: Any, estimates: tuple[PlannedEstimate, ...], learned: Learned, left_out: Sequence[Message]
    ) -> Plan[Any]:
        """The plan, with sizes, ids, messages and provenance."""
        raise NotImplementedError


def prepare(
    question: Question, data: EvaluationData, *, workers: Workers = ONE_THREAD, progress: Progress | None = None
) -> Plan[Any]:
    """The plan of what can be estimated, with what was learned from all chunks."""
    if data.learner is not None and data.learner.refitted and not question.interval.refits:
        raise RefusedError(
            f"{data.rows.fitted} are fitted to the same data, which this interval would take as given. Leave "
            f"{either('--bootstrap and --interval', 'interval=')} out: the interval then fits again without each part "
            f"of the data; or give {data.instead}."
        )
    estimates, left_out = data.requests(question)
    check_pairs(question, data.models, len(estimates))
    learners = {} if data.learner is None else {data.learner: None}  # its fit is reported whatever is requested
    for planned in estimates:
        learners |= dict.fromkeys(data.learners(planned))

    def mapped(work: Callable[[Any], Any]) -> Iterator[Any]:
        return map_chunks(workers, work, data.chunks, progress=progress, what="learning", ordered=True)

    facts = data.facts(question, estimates, mapped if learners else None)
    learned = Learned(facts=facts)
    if learners:
        groups = Groups.of(data.keys, n=GROUPS, seed=question.seed, purpose="jackknife")
        learned = learn(list(learners), mapped, groups=groups, facts=facts)
    return data.plan(question, tuple(estimates), learned, left_out)


def allowed(
    pairs: Iterable[tuple[First, Second]],
    refusal: Callable[[First, Second], str | None],
    subject: Callable[[First, Second], str],
    *,
    source: str = "",
) -> tuple[list[tuple[First, Second]], list[tuple[First, Second, str]]]:
    """Pairs of estimators and what is requested that go together, and others with the reason; refused if none do."""
    able: list[tuple[First, Second]] = []
    refused: list[tuple[First, Second, str]] = []
    for first, second in pairs:
        reason = refusal(first, second)
        if reason is None:
            able.append((first, second))
        else:
            refused.append((first, second, reason))
    if not able:
        subjects: dict[str, dict[str, None]] = {}
        for first, second, reason in refused:
            subjects.setdefault(reason, {})[subject(first, second)] = None
        reasons = [f"{', '.join(names)}: {reason}" for reason, names in subjects.items()]
        raise RefusedError(" ".join([f"{source}:", *reasons] if source else reasons))
    return able, refused


def check_call(models: Mapping[str, Any], *, baseline: str | None = None, word: str = "scores") -> None:
    """What a caller can get wrong of models (or targets), before any work is done."""
    if not models:
        raise InputError(f"no {word} given; expected at least one, as {{name: {word}}}.")
    if baseline is not None and baseline not in models:
        raise InputError(f"baseline {baseline!r} is not among the {word}; expected one of {', '.join(models)}.")
