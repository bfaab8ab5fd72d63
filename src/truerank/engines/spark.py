"""Spark: chunks worked on by the Python processes of executors, in a session that is started here or is there.

Every chunk is a job of one task, of which a few run at a time: results come as they are done, and Spark itself tries a
task again whose process or executor has died. Rows travel as Arrow (`mapInArrow`), what all chunks share is broadcast.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from truerank.core.errors import InputError, TruerankError, extra
from truerank.core.wording import option
from truerank.engines.engine import Chunk, Result, Sendable
from truerank.engines.local import mapped
from truerank.engines.parcels import PackedParts, Parcel, carry_out, opened, pack_shared
from truerank.io.spill import scratch

ATTEMPTS = 4  # of a task, in a session that is started here
HOME = "127.0.0.1"
LOGGING = """\
rootLogger.level = off
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
"""


@dataclass(frozen=True, slots=True)
class Spark:
    """A session on this machine, or (with an URL) on the cluster that is there.

    A session on this machine listens on 127.0.0.1 only, without user interface, and ends with the run. It accepts
    connections only from those that have the key of this run.

    >>> str(Spark()), str(Spark("spark://10.0.0.7:7077"))
    ('spark', 'spark:spark://10.0.0.7:7077')
    """

    url: str | None = None
    workers: int | None = None

    name: ClassVar[str] = "spark"

    def __str__(self) -> str:
        return self.name if self.url is None else f"{self.name}:{self.url}"

    @contextmanager
    def open(self) -> Iterator[SparkWorkers]:
        pyspark = _pyspark()
        active = pyspark.sql.SparkSession.getActiveSession()
        if active is not None and self.url is None:
            with SparkOpened(active).open() as workers:
                yield workers
            return
        if active is not None:
            raise InputError(f"engine {self}: a Spark session is open already; pass it instead: engine=session.")
        with scratch() as space, _interrupts_as_they_are():
            session = _started(pyspark, self.url or f"local[{self.workers or os.cpu_count() or 1},{ATTEMPTS}]", space)
            try:
                with SparkOpened(session).open() as workers:
                    yield workers
            finally:
                session.stop()


@dataclass(frozen=True, slots=True)
class SparkOpened:
    """A `SparkSession` that the caller has opened, and stops."""

    session: Any = field(repr=False)

    name: ClassVar[str] = "spark"

    def __str__(self) -> str:
        return f"{self.name}:{self.session.conf.get('spark.master')}"

    @contextmanager
    def open(self) -> Iterator[SparkWorkers]:
        with scratch() as space:
            local = self.session.sparkContext.master.startswith("local")
            yield SparkWorkers(self.session, space.make("parcels") if local else None)


def _pyspark() -> Any:
    try:
        import pyarrow  # noqa: F401
        import pyspark
        import pyspark.sql
    except ImportError:
        raise InputError(
            f"the spark engine needs PySpark; install it with: pip install {extra('spark')}, or use "
            f"{option('engine local')}."
        ) from None
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise InputError("the spark engine needs Java 17, and there is no java; install it, or set JAVA_HOME.")
    return pyspark


def _started(pyspark: Any, url: str, space: Any) -> Any:
    """A session of its own; one on this machine is reached from this machine only, and says nothing by itself."""
    quiet = space.make("spark") / "log4j2.properties"
    quiet.write_text(LOGGING)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet} -Dlog4j.configurationFile={quiet}",
        "spark.local.dir": str(quiet.parent),
        "spark.sql.shuffle.partitions": "1",
    }
    if url.startswith("local"):
        settings |= {"spark.driver.bindAddress": HOME, "spark.driver.host": HOME}
        settings["spark.authenticate"] = "true"  # else anybody on this machine can send it objects; Spark makes the key
        # nothing is computed by the virtual machine: it should start soon, not become fast later
        settings["spark.driver.extraJavaOptions"] += " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    builder = pyspark.sql.SparkSession.builder.master(url).appName("truerank")
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        with _at_home(url):
            return builder.getOrCreate()
    except Exception as error:  # of Java, of py4j, of PySpark: all of them say that there is no session
        raise InputError(f"engine spark:{url}: no session could be started ({_reason(error)}).") from None


@contextmanager
def _at_home(url: str) -> Iterator[None]:
    """What a session on this machine inherits when it is started: the address to listen on, and this very Python."""
    own = {"SPARK_LOCAL_IP": HOME, "PYSPARK_PYTHON": sys.executable} if url.startswith("local") else {}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ |= {} if value is None else {name: value}


@contextmanager
def _interrupts_as_they_are() -> Iterator[None]:
    """PySpark takes Ctrl-C for itself when a session starts; it is handled where it was before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _reason(error: BaseException) -> str:
    """The first line that says something: Java puts its own names before it."""
    text = str(getattr(error, "java_exception", None) or error)
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return lines[0] if lines else type(error).__name__


@dataclass(frozen=True, slots=True)
class SparkWorkers:
    """The executors of a session, and how chunks come to them."""

    session: Any
    folder: Path | None  # for values on their way, where executors see it
    parts: PackedParts = field(default_factory=PackedParts)
    here: bool = False

    @property
    def threads(self) -> int:
        return max(1, int(self.session.sparkContext.defaultParallelism))

    def map(self, work: Callable[[Chunk], Result], chunks: Sendable[Chunk]) -> Iterator[tuple[int, Result]]:
        """Results as they are done; a few jobs are under way at a time, and none is left behind."""
        from pyspark.cloudpickle import dump

        # said of pandas 3 whenever a frame is mapped; no pandas is used here
        warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas", category=FutureWarning)
        context = self.session.sparkContext
        group = f"truerank-{uuid.uuid4().hex}"
        folder = self.folder
        shared = pack_shared((work, chunks.reader()), folder, dump=dump)
        sent = _Sent.by(context, shared)

        def task(at: int) -> Any:
            context.setJobGroup(group, "truerank", interruptOnCancel=True)
            part = self.parts.of(chunks, at, folder, dump=dump)
            parcel = self._run(sent, part, folder, what=f"chunk {at + 1:,} of {chunks.n_chunks:,}")
            self.parts.done(part)
            return opened(parcel)

        def stop() -> None:
            with suppress(Exception):  # the session may be gone, which is told already
                context.cancelJobGroup(group)

        try:
            yield from mapped(task, chunks.n_chunks, threads=self.threads + 1, stop=stop)
        finally:
            sent.forget()
            shared.remove()

    def _run(self, sent: _Sent, part: Parcel, folder: Path | None, *, what: str) -> Parcel:
        """One job of one task."""
        try:
            rows = self.session.sparkContext.parallelize([(*_columns(part), part.digest)], 1)
            frame = self.session.createDataFrame(rows, "named string, content binary, digest string")
            found = frame.mapInArrow(_Task(sent, folder), "named string, content binary").collect()
        except Exception as error:  # of Java, of py4j, of PySpark
            if isinstance(error, TruerankError):
                raise
            raise _told(error, what) from None
        if len(found) != 1:
            raise TruerankError(f"{what} came back {len(found)} times; nothing was added up.")
        return _parcel(found[0][0], found[0][1])


def _told(error: Exception, what: str) -> TruerankError:
    """What can go wrong with executors, in one sentence."""
    text = f"{error} {getattr(error, 'java_exception', '')}"
    # as an error, not as a word of the lines of code that a traceback shows
    if "OutOfMemoryError" in text or any(line.strip().startswith("MemoryError") for line in text.split("\n")):
        reason = "no memory left"
    elif "exited unexpectedly" in text or "ExecutorLostFailure" in text or "crashed" in text:
        reason = "its process ended every time, most likely for want of memory"
    elif "cancelled" in text:
        reason = "cancelled"
    else:
        last = [line.strip() for line in str(error).split("\n") if "Error:" in line or "Exception:" in line]
        reason = last[-1] if last else _reason(error)
    return TruerankError(
        f"Spark could not finish {what} ({reason}); start fewer workers ({option('threads N')}) or give each more "
        "memory if that is the reason, and start it again."
    )


@dataclass(frozen=True, slots=True)
class _Sent:
    """What all chunks share: a file that executors see, or what was broadcast."""

    parcel: Parcel
    broadcast: Any = None

    @classmethod
    def by(cls, context: Any, shared: Parcel) -> _Sent:
        if isinstance(shared.content, Path):
            return cls(shared)
        return cls(Parcel(b"", shared.digest), context.broadcast(shared.content))

    def parcel_there(self) -> Parcel:
        """On an executor."""
        return self.parcel if self.broadcast is None else Parcel(self.broadcast.value, self.parcel.digest)

    def forget(self) -> None:
        if self.broadcast is not None:
            with suppress(Exception):
                self.broadcast.destroy()


def _columns(parcel: Parcel) -> tuple[str | None, bytes | None]:
    """A parcel as a row: the name of its file, or its bytes."""
    return (str(parcel.content), None) if isinstance(parcel.content, Path) else (None, parcel.content)


def _parcel(named: str | None, content: Any, digest: str = "") -> Parcel:
    return Parcel(bytes(content) if named is None else Path(named), digest)


@dataclass(frozen=True, slots=True)
class _Task:
    """On an executor: the rows of a partition are parcels of chunks, and become parcels of results."""

    sent: _Sent
    folder: Path | None

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        shared = self.sent.parcel_there()
        for batch in batches:
            for row in batch.to_pylist():
                done = carry_out(shared, _parcel(row["named"], row["content"], row["digest"]), self.folder)
                named, content = _columns(done)
                yield pyarrow.RecordBatch.from_arrays(
                    [pyarrow.array([named], pyarrow.string()), pyarrow.array([content], pyarrow.binary())],
                    ["named", "content"],
                )
