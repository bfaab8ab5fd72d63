"""docs/scale.md and its picture, from what `python -m benchmarks scale --keep` measured.

Measured figures are not typed by hand: they come from the file that `truerank plan cost` reckons with,
those of the plan from the same functions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from truerank.engines.costs import Cost, Sized, cost, rates
from truerank.report.reliability_charts import TYPEFACE, altair
from truerank.report.reliability_layout import COLOURS

MEASURED = Path(__file__).parents[2] / "src" / "truerank" / "engines" / "costs.json"
WHO = "the picture of docs/scale.md"
PLANNED = Sized(rows=10e9, users=1e9, items=1e6, dim=64, models=5, workers=200)
WORDS = {"offpolicy": "impressions through `offpolicy`", "evaluate": "judged rows through `evaluate`"}


def made() -> dict[str, Any]:
    measured = json.loads(MEASURED.read_text())
    return {"figures/scale.svg": chart(measured), "scale.md": page(measured)}


def chart(measured: dict[str, Any]) -> Any:
    """Seconds by rows, both on scales of powers: a straight line of slope one is linear."""
    library = altair(WHO)
    rows = [{"rows": each["rows"], "seconds": each["seconds"], "command": each["command"]} for each in plain(measured)]
    base = library.Chart(library.Data(values=rows)).encode(
        x=library.X("rows:Q", title="rows", scale=library.Scale(type="log", nice=False, padding=12), axis=library.Axis(format="~s", gridColor="#eeeeee", values=[10**power for power in range(5, 10)])),
        y=library.Y("seconds:Q", title="seconds", scale=library.Scale(type="log", nice=False, padding=12), axis=library.Axis(format="~g", gridColor="#eeeeee", values=[1, 2, 5, 10, 20, 50, 100, 200, 500])),
        color=library.Color("command:N", title=None, scale=library.Scale(domain=["evaluate", "offpolicy"], range=list(COLOURS[:2]))),
    )  # fmt: skip
    return (base.mark_line(strokeWidth=2) + base.mark_point(size=55, opacity=1, filled=True)).properties(
        width=460, height=260, config=library.Config(font=TYPEFACE, view=library.ViewConfig(stroke="#bbbbbb"))
    )


def plain(measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Growth with rows alone: without the run that has more items and dimensions."""
    runs: list[dict[str, Any]] = measured["growth"]
    narrow = min(each["items"] * each["dim"] for each in runs if each["command"] == "evaluate")
    return [each for each in runs if each["items"] * each["dim"] in (0, narrow)]


def count(number: float) -> str:
    for size, word in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if number >= size:
            return f"{number / size:.3g} {word}"
    return f"{number:.3g}"


def page(measured: dict[str, Any]) -> str:
    largest = {name: [each for each in plain(measured) if each["command"] == name][-1] for name in WORDS}
    peak = max(each["peak_gb"] for each in measured["growth"])
    ratios = {(each["command"], each["engine"]): each["ratio"] for each in measured["engines"]}
    told = "; ".join(f"{count(run['rows'])} {WORDS[name]} took {run['seconds']:.0f} s" for name, run in largest.items())
    planned = [cost(command, engine, PLANNED) for command in ("offpolicy", "evaluate") for engine in ("dask", "spark")]
    space = {each["command"]: each for each in measured["space"]}
    scaled = "" if measured["scale"] == 1 else (
        f"**These are figures of a quick look at {measured['scale']:g} of the full size**, in which the start of processes "
        "outweighs the work.\n\n"
    )  # fmt: skip
    return f"""# Beyond one machine

![Seconds by rows, for evaluate and offpolicy](figures/scale.svg)

The same evaluation runs in this process, on Dask or on Spark, and gives the same numbers: values to the last bit. On {measured["machine"]["cores"]} cores {told}, and no process had more than {peak:.1f} GB. Engines cost something: Dask took {ratios["offpolicy", "dask"]:.2f} times (`evaluate` {ratios["evaluate", "dask"]:.2f} times) and Spark {ratios["offpolicy", "spark"]:.2f} times (`evaluate` {ratios["evaluate", "spark"]:.2f} times) as long as threads on the same data in memory, so they are for data that one machine cannot read in the time that you have.

*Figures are made by `python -m benchmarks scale --keep` and `python -m docs.making scale`; `truerank plan cost` reckons with the same file.*

{scaled}## Which engine

| `--engine`, `engine=` | what it is |
|---|---|
| `local` | threads of this process (default); files larger than memory go through it in chunks |
| `dask` | a cluster of processes on this machine, for the time of the run; listens on 127.0.0.1 only, by TLS with a key made for the run, without dashboard |
| `dask:tls://HOST:8786` | the scheduler that is there; in Python also a `Client` that you have opened |
| `spark` | a session on this machine (Java 17), for the time of the run; listens on 127.0.0.1 only, with a key made for the run, without user interface |
| `spark:spark://HOST:7077`, `spark:yarn`, ... | a cluster that is there; in Python also a `SparkSession` that you have opened |

`evaluate`, `offpolicy`, `intervene`, `study reliability`, `study calibration` and `study truth` take it. Install `'.[dask]'` or `'.[spark]'`; nothing of either is loaded unless it is used. Workers need the same truerank, Python and polars as the machine where the run is started.

```
truerank offpolicy s3://logs/2026/ --target new=@new --position fit:exp --engine dask --threads 8
```

In Python: `tr.off_policy(frame, targets, position="fit:exp", engine=client)` with a `distributed.Client`, or a `SparkSession`. Tables that live there come back as such: `tr.intervene(frame, "skew", train=train, seed=0, engine=session)` gives a Spark (or Dask) frame for one, `results.units(engine=session)` what every user contributed as a Spark frame (`engine=client`: a Dask one).

## How it goes

1. **The machine where it is started** looks through the rows once and, where they are in no order of users, partitions them by user on its disk (the shuffle). What must be fitted is counted by workers and fitted there.
2. **What all chunks share** (the question, fitted models, item factors) travels once to each process; user factors travel with the chunk that the user is in, so that no worker holds those of all. Chunks are read by the workers themselves where they see the same files, or where the rows lie in an object store and are sorted by user; else their rows are sent.
3. **Every chunk comes back exactly once**, or the run is refused: rows and users in are rows and users out. A chunk whose worker is killed or runs out of memory is worked on again, three times and more, at last with nothing beside it; then it is told in one sentence that names it. A Dask worker that falls silent without ending is given up by Dask after five minutes.
4. **A run that cannot finish can be gone on with**: with `--keep DIR` (`keep=`) every chunk is kept as it is done, in each pass that counts, learns or measures. After Ctrl-C, SIGTERM, a kill, a lost cluster or an engine that gave up, the same command goes on from there, on this engine or on another, and gives the same results. Studies do so in their own folder.

`--keep` tells inputs by their content: files by their bytes, rows of other sources by their values, in their order, for which they are read once more; an input or a setting that differs is refused by its name. Files of a folder hold numbers and names alone, with a checksum; one that was altered is made again, and that is said. What an estimator of your own makes of a chunk cannot be kept, is said, and made again. Remove the folder when you have the results: asked again, it gives them without measuring.

## Test sets of large logs

`truerank intervene` counts users and items, weighs rows and draws them by the same workers. A row is drawn if the key that follows from seed, user and item is at most a threshold, which is found by counting keys in ever smaller intervals: so neither chunks nor engines change a row, rows stay where they are, and the machine where it is started has a byte for each. `--inclusion` needs the weights of all rows at once, there.

## Sources

Parquet files, folders, globs and Hive partitions (`day=1/a.parquet`), here or in an object store (`s3://`, `gs://`, `az://`), where credentials come from the usual variables (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, ...; `GOOGLE_APPLICATION_CREDENTIALS`; `AZURE_STORAGE_ACCOUNT_NAME`, `AZURE_STORAGE_ACCOUNT_KEY`, ...) and are never printed; tested against moto's server and Azurite, all but how Google signs in; other formats are read from this machine only. In Python also anything with `__arrow_c_stream__` (relations of DuckDB, tables of Ibis, results of ADBC, readers of pyarrow), datasets of pyarrow and Lance, Dask and Spark frames: taken batch by batch (where pyarrow is installed), and set aside on disk where they are many; of 680 MB of rows no more than 250 MB are in memory at a time.

## TLS

A cluster that others can reach should ask for certificates. Dask: give scheduler, workers and the machine where you start the same authority, in `~/.config/dask/distributed.yaml` or by variables, then join by `tls://`:

```
export DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION=true
export DASK_DISTRIBUTED__COMM__TLS__CA_FILE=ca.pem
export DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT=client.pem
export DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY=client-key.pem
truerank evaluate labels.parquet --scores als=als.npz --engine dask:tls://10.0.0.7:8786
```

Spark: `spark.authenticate` and `spark.ssl.*` of the cluster, in `spark-defaults.conf`. What travels between the processes of a run are pickles that this run made, in folders that only you can open or on these connections: join only clusters that you trust, as for everything that runs on them.

## A billion users, ten billion impressions

`truerank plan cost --rows 10e9 --users 1e9 --items 1e6 --dim 64 --models 5 --n-workers 200` reckons, from times per row that were measured on {max(run["rows"] for run in measured["growth"]) / PLANNED.rows:.1%} of these rows or fewer:

{table(planned)}

- **Bottleneck**: {bottlenecks(planned)}. Rows that are written sorted by user (or bucketed, by any engine) need no partitioning: only the look through them is left to one machine.
- **Shuffle**: {rates("offpolicy").row_bytes * PLANNED.rows / 1e9:,.0f} GB of rows (`evaluate`: {rates("evaluate").row_bytes * PLANNED.rows / 1e9:,.0f} GB) on the disk of the machine where it is started, once; with the sums of all users, until the end, {planned[0].disk_gb:,.0f} GB ({planned[-1].disk_gb:,.0f} GB). Name the place with `TMPDIR`.
- **Memory**: something of every user stays on that machine, {space["evaluate"]["bytes_per_user"]:,.0f} bytes for `evaluate` and {space["offpolicy"]["bytes_per_user"]:,.0f} for `offpolicy` ({planned[0].driver_gb:,.0f} GB); for `evaluate` also the factors of all users, which are the largest part ({planned[-1].driver_gb:,.0f} GB). Workers get the factors of all items and those of the users of a chunk ({planned[-1].worker_gb:.1f} GB). Split the users into several runs where that is too much, or judge a random sample of them: a tenth of a billion users has an interval only three times as wide.

## Measured

| command | rows | users | items | dimensions | seconds | GB of the largest process |
|---|---|---|---|---|---|---|
{chr(10).join(f"| {run['command']} | {run['rows']:,} | {run['users']:,} | {run['items']:,} | {run['dim'] or ''} | {run['seconds']:.1f} | {run['peak_gb']:.2f} |" for run in measured["growth"])}

| command | engine | rows in memory | workers | seconds | of local |
|---|---|---|---|---|---|
{chr(10).join(f"| {run['command']} | {run['engine']} | {run['rows']:,} | {run['workers']} | {run['seconds']:.2f} | {run['ratio']:.2f} |" for run in measured["engines"])}

| command | bytes of a row on disk | bytes of a user where it is started | bytes of sums, of a user and model |
|---|---|---|---|
{chr(10).join(f"| {each['command']} | {each['bytes_per_row']:.1f} | {each['bytes_per_user']:,.0f} | {each['bytes_of_sums']:,.0f} |" for each in measured["space"])}
"""


def table(costs: list[Cost]) -> str:
    lines = [
        "| command | engine | hours | of these on one machine | core hours | GB per worker | GB where started |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in costs:
        figures = (each.hours, each.driver_hours, each.core_hours, each.worker_gb, each.driver_gb)
        lines.append(f"| {each.command} | {each.engine} | {' | '.join(map(_figure, figures))} |")
    return "\n".join(lines)


def _figure(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def bottlenecks(costs: list[Cost]) -> str:
    return "; ".join(dict.fromkeys(f"`{each.command}` on {each.engine}: {each.bottleneck}" for each in costs))
