"""Spark: chunks worked on by the Python processes of executors, in a session that is started here or is there.

Every chunk is a job of one task, of which a few run at a time: results come as they are done, and Spark itself tries a
task again whose process or executor has died. What all chunks share is broadcast.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from truerank.core.errors import InputError, TruerankError, extra
from truerank.core.record import record
from truerank.core.wording import option
from truerank.engines.engine import Chunk, Chunked, Result, mapped
from truerank.engines.serialization import Packing, Parcel, carry_out
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


@record
class Spark:
    """A session on this machine, or (with an URL) on the cluster that is there, or one that the caller has opened.

    A session on this machine listens on 127.0.0.1 only, without user interface, and ends with the run. It accepts
    connections only from those that have the key of this run.

    >>> str(Spark()), str(Spark("spark://10.0.0.7:7077"))
    ('spark', 'spark:spark://10.0.0.7:7077')
    """

    url: str | None = None
    workers: int | None = None
    session: Any = field(default=None, repr=False)  # that the caller has opened, and stops

    name: ClassVar[str] = "spark"

    def __str__(self) -> str:
        url = self.url if self.session is None else self.session.conf.get("spark.master")
        return self.name if url is None else f"{self.name}:{url}"

    @contextmanager
    def open(self) -> Iterator[SparkWorkers]:
        session = self.session
        if session is None:
            pyspark = _pyspark()
            session = pyspark.sql.SparkSession.getActiveSession()
            if session is not None and self.url is not None:
                raise InputError(f"engine {self}: a Spark session is open already; pass it instead: engine=session.")
        with scratch() as space:
            if session is not None:
                local = session.sparkContext.master.startswith("local")
                yield SparkWorkers(session, space.make("parcels") if local else None)
                return
            with _interrupts_as_they_are():
                url = self.url or f"local[{self.workers or os.cpu_count() or 1},{ATTEMPTS}]"
                session = _started(pyspark, url, space)
                try:
                    with Spark(session=session).open() as workers:
                        yield workers
                finally:
                    session.stop()


def _pyspark() -> Any:
    try:
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
    local = {"SPARK_LOCAL_IP": HOME, "PYSPARK_PYTHON": sys.executable} if url.startswith("local") else {}
    before = {name: os.environ.get(name) for name in local}
    os.environ.update(local)
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


@record
class SparkWorkers:
    """The executors of a session, and how chunks come to them."""

    session: Any
    folder: Path | None  # for values on their way, where executors see it
    here: bool = False

    @property
    def threads(self) -> int:
        return max(1, int(self.session.sparkContext.defaultParallelism))

    def map(self, work: Callable[[Chunk], Result], chunks: Chunked[Chunk]) -> Iterator[tuple[int, Result]]:
        """Results as they are done; a few jobs are under way at a time, and none is left behind."""
        from pyspark.cloudpickle import dump

        context = self.session.sparkContext
        group = f"truerank-{uuid.uuid4().hex}"
        packing = Packing(self.folder, dump)
        shared = packing.pack((work, chunks.read))
        sent = context.broadcast(shared)
        task = partial(_on_executor, sent, self.folder)

        def carry(part: Parcel, what: str) -> Parcel:
            context.setJobGroup(group, "truerank", interruptOnCancel=True)
            return self._run(task, part, what=what)

        def stop() -> None:
            with suppress(Exception):  # the session may be gone, which is told already
                context.cancelJobGroup(group)

        try:
            send = partial(packing.send, chunks, carry=carry)
            yield from mapped(send, chunks.n_chunks, threads=self.threads + 1, stop=stop)
        finally:
            with suppress(Exception):
                sent.destroy()
            shared.remove()

    def _run(self, task: Callable[[Parcel], Parcel], part: Parcel, *, what: str) -> Parcel:
        """One job of one task."""
        try:
            results: list[Parcel] = self.session.sparkContext.parallelize([part], 1).map(task).collect()
        except Exception as error:  # of Java, of py4j, of PySpark
            if isinstance(error, TruerankError):
                raise
            raise _reported(error, what) from None
        if len(results) != 1:
            raise TruerankError(f"{what} came back {len(results)} times; nothing was added up.")
        return results[0]


def _reported(error: Exception, what: str) -> TruerankError:
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


def _on_executor(shared: Any, folder: Path | None, part: Parcel) -> Parcel:
    """The result of a chunk; `shared` was broadcast."""
    return carry_out(shared.value, part, folder)
