"""Ranks end together: where one fails or is killed, no other waits for it.

A call that all ranks make together waits for every one of them, and would do so for half an hour
where one is gone. torchrun ends the others then; Slurm and Lightning's launcher may not. So every
rank keeps a connection to rank 0, which the system closes when a process ends, in whatever way, and
through which a rank that fails says why.
"""

import contextlib
import ipaddress
import json
import logging
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import lightning as L
import torch.distributed as dist
from lightning.pytorch.strategies import DDPStrategy

from zhen.errors import UserError, one_line

log = logging.getLogger(__name__)

NEWS = 1.0  # seconds until what has happened on another rank is known here
GRACE = 5.0  # seconds that a rank has to end by itself after another one failed
TIDY = 30.0  # seconds that it has after it failed itself
KEY = "zhen/ranks"
LOST = "its process was killed, or its machine is lost"


@contextlib.contextmanager
def ending_together(trainer: L.Trainer) -> Iterator[None]:
    """Inside, a failure on any rank ends all of them, with status 1 and that rank's message.

    Ranks that a launcher started (torchrun, Slurm) meet here already, so that one that fails before
    the training begins is not waited for either.

    Raises:
        UserError: a launcher started another number of processes than the trainer has ranks.
        SystemExit: another rank failed; rank 0 has said why.
    """
    check_launched(trainer)
    if trainer.world_size == 1:
        yield
        return
    assert isinstance(trainer.strategy, DDPStrategy)
    cluster = trainer.strategy.cluster_environment
    assert cluster is not None
    watch = Watch(trainer.global_rank, trainer.world_size, trainer.num_nodes)
    trainer.callbacks.append(_Report(watch))  # type: ignore[attr-defined]
    watch.start()
    try:
        if cluster.creates_processes_externally:
            trainer.strategy.setup_environment()
            watch.ready.wait(TIDY)
        yield
    except SystemExit:  # by a signal, of which the ranks have told each other
        watch.finished()
        raise
    except BaseException as error:
        watch.failed(error)
        if watch.other and not isinstance(error, UserError):
            watch.explain()
            raise SystemExit(1) from error
        if watch.told and isinstance(error, UserError) and trainer.global_rank:
            raise SystemExit(1) from error
        raise
    else:
        watch.finished()


def check_launched(trainer: L.Trainer) -> None:
    """Refuse processes that would not be ranks of one training, but trainings of their own.

    Raises:
        UserError: says which settings suit them.
    """
    interactive = os.environ.get("SLURM_JOB_NAME") in ("bash", "interactive")
    names = ("WORLD_SIZE",) if interactive else ("WORLD_SIZE", "SLURM_NTASKS")
    started = next((int(os.environ[name]) for name in names if name in os.environ), 1)
    if started not in (1, trainer.world_size):
        raise UserError(
            f"{started} processes were started, but trainer.num_nodes={trainer.num_nodes} and"
            f" trainer.devices={trainer.num_devices} make {trainer.world_size} ranks: let both be"
            f" as they were started, as trainer=ddp trainer.devices={started}"
        )


class _Report(L.Callback):
    """Tells of a failure before Lightning tidies up, which may wait for the other ranks."""

    def __init__(self, watch: "Watch") -> None:
        self._watch = watch

    def on_exception(
        self, trainer: L.Trainer, module: L.LightningModule, exception: BaseException
    ) -> None:
        if not isinstance(exception, SystemExit):
            self._watch.failed(exception)
            if not isinstance(exception, UserError):
                self._watch.explain()  # while the run's log is still open


class Watch:
    """What a rank knows of the others, from threads of its own.

    Args:
        rank: of this process.
        world_size: ranks.
        nodes: machines.
    """

    def __init__(self, rank: int, world_size: int, nodes: int) -> None:
        self._rank, self._world_size, self._nodes = rank, world_size, nodes
        self._secret, self._parent = secrets.token_hex(16), os.getppid()
        self._peers: list[socket.socket] = []  # rank 0 has all the others, they have rank 0
        self._lock = threading.RLock()
        self._over = False  # this rank has ended or failed, and told the others
        self._explained = False
        self.ready, self._news = threading.Event(), threading.Event()
        self.told = False  # some other rank knows of the failure of this one
        self.other: str | None = None  # which other rank failed, and why

    def start(self) -> None:
        threading.Thread(target=self._run, name="zhen-ranks", daemon=True).start()

    def finished(self) -> None:
        """This rank is done: its end means nothing to the others."""
        self._tell_and_leave({"done": True})

    def failed(self, error: BaseException) -> None:
        """Tell the others, unless this rank fails only since another has; once is enough."""
        if self._over:
            return
        threading.Thread(target=_exit, args=[TIDY], daemon=True).start()
        about = one_line(error)
        if not isinstance(error, UserError):
            about = f"{type(error).__name__}: {about}".removesuffix(": ")
            self._news.wait(NEWS)  # a common call fails where another rank has left it
            if self.other is not None:
                return
        self.told = self._tell_and_leave({"rank": self._rank, "failed": about})

    def explain(self) -> None:
        """Log, once, which other rank failed and why."""
        with self._lock:
            if not self._explained and self.other is not None:
                self._explained = True
                log.error("error: %s", self.other)
                if self._rank and self.other == f"rank 0: {LOST}":  # which else would say so
                    print(f"error: {self.other}", file=sys.stderr)

    def _tell_and_leave(self, message: dict[str, Any]) -> bool:
        with self._lock:
            if self._over:
                return False
            self._over = True
            return any([_send(peer, message) for peer in self._peers])

    def _run(self) -> None:
        while not (dist.is_available() and dist.is_initialized()):
            time.sleep(0.1)
            if self._over:
                return
            if os.getppid() != self._parent:  # rank 0, where Lightning started this one
                return self._end(0, LOST)
        try:
            store = dist.distributed_c10d._get_default_store()
            if self._rank == 0:
                server = socket.create_server(("127.0.0.1" if self._nodes == 1 else "", 0))
                place = _own_address(self._nodes), server.getsockname()[1]
                store.set(KEY, json.dumps([*place, self._secret]))
            else:
                *place, secret = json.loads(store.get(KEY))
        except OSError as error:
            log.warning("the ranks do not watch each other: %s", one_line(error))
            return
        except RuntimeError:  # of the store, which lives in rank 0
            return self._end(0, LOST)
        if self._rank == 0:
            self._welcome(server)
        else:
            self._join((place[0], place[1]), secret)

    def _welcome(self, server: socket.socket) -> None:
        """On rank 0: wait for all the others, and listen to each of them."""
        with server:
            while len(self._peers) < self._world_size - 1:
                connection = server.accept()[0]
                connection.settimeout(TIDY)
                file = connection.makefile("rb")
                hello = _receive(file)
                if hello.get("secret") != self._secret:  # whoever that is
                    connection.close()
                    continue
                connection.settimeout(None)
                with self._lock:
                    self._peers.append(connection)
                listen = threading.Thread(
                    target=self._listen, args=[connection, file, hello["rank"]], daemon=True
                )
                listen.start()
        # Lightning's, which looks every five seconds and would end this process without a word.
        for thread in threading.enumerate():
            if thread.name == "child-process-observer":
                thread._child_processes = []  # type: ignore[attr-defined]
        self.ready.set()

    def _join(self, place: tuple[str, int], secret: str) -> None:
        """On another rank: greet rank 0, and listen to it."""
        try:
            connection = socket.create_connection(place, timeout=TIDY)
        except OSError as error:
            log.warning("cannot watch rank 0 at %s: %s", place, one_line(error))
            return
        connection.settimeout(None)
        _send(connection, {"rank": self._rank, "secret": secret})
        with self._lock:
            self._peers.append(connection)
        self.ready.set()
        self._listen(connection, connection.makefile("rb"), 0)

    def _listen(self, connection: socket.socket, file: Any, rank: int) -> None:
        """Wait for the last word of a rank, or for its end without one."""
        for option, seconds in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):  # a lost machine closes nothing
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        message = _receive(file)
        if "done" not in message:
            self._end(message.get("rank", rank), message.get("failed", LOST))

    def _end(self, rank: int, why: str) -> None:
        """Another rank failed: pass it on, and end this process, which may be waiting for it."""
        with self._lock:
            if self._over or self.other is not None:
                return
            self.other = f"rank {rank}: {why}"
            for peer in self._peers if self._rank == 0 else []:
                _send(peer, {"rank": rank, "failed": why})
        self._news.set()
        time.sleep(NEWS)
        if not self._over:  # else the same befell this rank, and it says so itself
            self.explain()
        _exit(GRACE)


def _exit(seconds: float) -> None:
    """End this process after a while, whatever it waits for."""
    time.sleep(seconds)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(1)


def _own_address(nodes: int) -> str:
    """Where the other ranks reach this process."""
    if nodes == 1:
        return "127.0.0.1"
    main = os.environ["MASTER_ADDR"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((main, int(os.environ["MASTER_PORT"])))  # sends nothing, but finds the way
        own: str = probe.getsockname()[0]
    return main if ipaddress.ip_address(own).is_loopback else own


def _send(connection: socket.socket, message: dict[str, Any]) -> bool:
    try:
        connection.sendall(json.dumps(message).encode() + b"\n")
    except OSError:
        return False
    return True


def _receive(file: Any) -> dict[str, Any]:
    """The next message; nothing where there is none."""
    with contextlib.suppress(OSError, ValueError):
        message = json.loads(file.readline())
        if isinstance(message, dict):
            return message
    return {}
