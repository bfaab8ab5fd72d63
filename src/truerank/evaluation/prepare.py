"""prepare(Question, data) -> Plan: which estimators can give what is requested, and what is learned of all units."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, TypeVar

from truerank.core.errors import InputError, RefusedError
from truerank.core.estimator import Exposed, Groups, Learned, Learner, clips_of, learn
from truerank.core.ids import Keys
from truerank.core.messages import Message, message
from truerank.core.progress import Progress
from truerank.core.record import record
from truerank.core.wording import either
from truerank.engines.engine import ONE_THREAD, Chunked, Workers, map_chunks
from truerank.evaluation.compare import check_pairs
from truerank.evaluation.question import Plan, PlannedEstimate, RowMaker

GROUPS = 40  # of clusters, without each of which models are fitted again

First = TypeVar("First")
Second = TypeVar("Second")


@record(kw_only=True, eq=False)
class EvaluationData:
    """Data that were read, in chunks of whole units, and the `draft` of a plan for them: without estimates.

    `keys` gives those of the clusters of all units. `learner` fits what makes the weights of rows, where that is not
    given; `facts` are what else estimators know of the whole, and `sizes` how many rows and candidates a chunk has.
    """

    instead: ClassVar[str]  # of a fit

    draft: Plan[Any]
    chunks: Chunked[Any]
    keys: Callable[[], Keys]
    learner: Learner | None
    facts: Mapping[str, Any] = field(default_factory=dict)
    sizes: Callable[[Any], tuple[int, float]] | None = None

    def requests(self) -> tuple[list[PlannedEstimate], list[Message]]:
        """Every estimator with what it can give of what is requested, before clips and segments; and messages on what
        is left out."""
        raise NotImplementedError

    def learners(self, planned: PlannedEstimate) -> Sequence[Learner]:
        """What must be learned for an estimate."""
        raise NotImplementedError

    def finish(self, plan: Plan[Any]) -> Plan[Any]:
        """The plan with what follows from what was learned."""
        raise NotImplementedError


def prepare(data: EvaluationData, *, workers: Workers = ONE_THREAD, progress: Progress | None = None) -> Plan[Any]:
    """The plan of what can be estimated, with what was learned from all chunks."""
    draft, question = data.draft, data.draft.question
    if data.learner is not None and data.learner.refitted and not question.interval.refits:
        raise RefusedError(
            f"the fitted {draft.rows.fitted} are of the same data, and this interval would take them as given. Leave "
            f"{either('--bootstrap and --interval', 'interval=')} out: the interval then fits them again without each "
            f"part of the data; or give {data.instead}."
        )
    able, left_out = data.requests()
    estimates = tuple(_with_clips(able, question.clips or (math.inf,), draft.rows))
    check_pairs(question, draft.models, len(estimates))
    learners = {} if data.learner is None else {data.learner: None}  # its fit is reported whatever is requested
    for planned in estimates:
        learners |= dict.fromkeys(data.learners(planned))

    def mapped(work: Callable[[Any], Any]) -> Iterator[Any]:
        return map_chunks(workers, work, data.chunks, progress=progress, what="learning", ordered=True)

    learned = Learned(facts=data.facts)
    if learners:
        facts = dict(data.facts)
        if data.sizes is not None:
            facts["n_rows"], facts["n_cells"] = map(math.fsum, zip(*mapped(data.sizes), strict=True))
        groups = Groups.of(data.keys(), n=GROUPS, seed=question.seed, purpose="jackknife")
        learned = learn(list(learners), mapped, groups=groups, facts=facts)
    chunks = [message("chunks", sentence=sentence) for sentence in data.chunks.notes]
    messages = (*chunks, *draft.messages, *left_out)
    rows_kept = question.interval.needs_rows
    plan = replace(draft, estimates=estimates, learned=learned, keeps_rows=rows_kept, messages=messages)
    return data.finish(plan)


def _with_clips(able: Iterable[PlannedEstimate], clips: Sequence[float], rows: RowMaker) -> Iterator[PlannedEstimate]:
    """Each with every clip of its weights and every segment of items; those of one block differ in clips alone."""
    number = 0
    for block, planned in enumerate(able):
        info, request = planned.estimator.info, planned.request
        for clip in clips_of(planned.estimator, dict.fromkeys(map(float, clips))):
            for segment in (None, *(() if info.predicts or info.of_lists else rows.segments)):
                request = replace(request, clip=clip, segment=segment)
                yield replace(planned, request=request, block=block if rows.exposed is Exposed.RANKED else number)
                number += 1


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
