"""What the demo finds, told as text."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from truerank.data.folders import whole_folder
from truerank.report.text import console_on
from truerank.studies.demo import (
    DRAWS,
    METRIC,
    SETTINGS,
    SPARSITY,
    WHAT,
    WHY,
    Earned,
    Finding,
    K,
    Trusted,
    by_question,
    earned,
    find,
    find_biased,
    prepare,
    trusted,
    variants,
)

Say = Callable[[str, int, int], None]


def story(out: Path, *, seed: int, force: bool, progress: AbstractContextManager[Say | None], width: int | None) -> str:
    """Run the demo, leave its files in a folder (`force` replaces that of another demo), and tell what it finds.

    For a terminal of `width` columns, or uncut.
    """
    stream = io.StringIO()
    console = console_on(stream, width=width, color=width is not None)
    with progress as report, whole_folder(out, kind="demo", force=force) as place:
        if report is not None:
            report("making a world and fitting models", 0, DRAWS + 1)
        world, models, made = prepare(place, seed=seed)
        findings = find(world, models, seed=seed, say=report)
        biased = find_biased(world, models, seed=seed, say=report)
        feed = earned(place / "feed", seed=seed, say=report)
        options = variants(world, models["ease"])
        reliable = trusted(world, models, place / "study", seed=seed, say=report)
    paths = {name: out / path.relative_to(place) for name, path in made.items()}
    positive = world.rating > 3
    console.print(
        f"A world of {len(world.users):,} users and {len(world.items):,} items whose every rating is known: "
        f"{positive.mean():.1%} of the pairs are relevant (4 or 5 stars), "
        f"{int((~positive.any(axis=1)).sum()):,} users like nothing.\n"
        f"A deployed system has shown {len(world.train):,} pairs, popular ones more often; five recommenders learnt "
        f"from them.\nFor the test, {len(world.random) // len(world.users)} unseen items per user, chosen at random, "
        "were judged. How good are the recommenders on everything unseen?\n"
    )
    for question, group in by_question(findings):
        console.print(f"[bold]{question}[/bold]")
        console.print(_html_table(group, list(models)))
        console.print()
    _say_why(console, findings)
    console.print(
        "\n[bold]Only a biased log[/bold]: a deployed system showed unseen items, popular ones up to 13 times as "
        "often, liked ones 1.5 times as often, and recorded how likely it showed each (the propensity).\n"
    )
    for question, group in by_question(biased):
        console.print(f"[bold]{question}[/bold]")
        console.print(_html_table(group, list(models)))
        console.print()
    _say_why(console, biased)
    console.print(
        f"\n[bold]A ranked log[/bold]: {SETTINGS.sessions:,} sessions of a feed that one ranker filled. What would two "
        "other rankers earn per session, without showing them to anyone?"
    )
    console.print(_earned(feed))
    for name, why in WHY.items():
        console.print(f"  {name} {why}.")
    console.print(
        "\n[bold]Sampled candidates[/bold]: where the truth is known, one can measure how far a cheap evaluation can "
        f"be trusted. A logger that favours popular items shows {1 - SPARSITY:.0%} of the unseen pairs, candidates are "
        f"chosen from that log, and {METRIC} orders the five recommenders. Kendall's tau with their true order (1 the "
        "same, 0 unrelated):"
    )
    console.print(_reliable(reliable))
    for name, what in WHAT.items():
        console.print(f"  {name}: {what}.")
    console.print(
        "  Few relevant items are left per user, so recommenders tie and single users say little; means over users say "
        "more. A metric over few candidates asks another question, and more users do not mend that.\n"
        "  What does such a study advise for a log like the biased one above?\n\n"
        f"  truerank advise {paths['biased']} --positive '>3' --study {out / 'study'}",
        soft_wrap=True,
    )
    console.print("\n[bold]One name, several numbers[/bold]: ease on full labels; tools differ in what they mean")
    console.print(_variants(options))
    console.print(
        f"\nMeans over users and over relevant pairs are different questions with different answers; choose one.\n"
        f"The files are in {out}/. Next, with one of the random test sets and with intervals:\n\n"
        f"  truerank evaluate {paths['random']} --positive '>3' --exposure random --exclude {paths['train']} \\\n"
        f"      --scores ease={paths['scores/ease']} --scores popularity={paths['scores/popularity']} "
        f"--metric Recall@{K} --metric Precision@{K}\n\n"
        f"and then the same command with your own files. With --require 'ease > popularity: Recall@{K}' the exit code "
        "says whether that is shown. `truerank models` lists more recommenders to compare with.",
        soft_wrap=True,
    )
    return stream.getvalue()


def _say_why(console: Console, findings: list[Finding]) -> None:
    console.print("[bold]Why[/bold]")
    for each in findings:
        verdict = "finds the truth" if each.on_target else "misses the truth"
        console.print(f"  {each.scheme.metric} {each.scheme.estimator.about.name} {verdict}: {each.scheme.why}.")


def _earned(feed: list[Earned]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("")
    for name in ("truth", *WHY):
        table.add_column(name, justify="right", no_wrap=True)
    for each in feed:
        found = [f"{value:.3f} ({low:.3f} to {high:.3f})" for value, low, high in (each.found[name] for name in WHY)]
        table.add_row(each.policy, f"{each.truth:.3f}", *found)
    return table


def _reliable(found: list[Trusted]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("")
    for name in ("pairs that tie", "tau per user", "tau of means"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in found:
        tau = f"{each.tau:.2f} ({each.low:.2f} to {each.high:.2f})"
        table.add_row(each.candidates, f"{each.ties:.0%}", tau, f"{each.tau_of_means:.2f}")
    return table


def _variants(options: list[tuple[str, float, str]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    table.add_column()
    for name, value, why in options:
        table.add_row(name, f"{value:.4f}", why)
    return table


def _html_table(group: list[Finding], models: list[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("")
    for name in (*models, "error", "true order found"):
        table.add_column(name, justify="right", no_wrap=True)
    truth = group[0].truth
    table.add_row("truth", *(f"{value:.4f}" for value in truth), "", "", style="bold")
    for each in group:
        error = each.error[np.argsort(-truth)][:-1]  # the last is random scores: too small a number to be relative to
        table.add_row(
            each.scheme.estimator.about.name,
            *(f"{value:.4f}" for value in each.values.mean(axis=0)),
            f"{error.min():+.0%} to {error.max():+.0%}",
            f"{each.orders_right} of {len(each.values)} draws",
        )
    return table
