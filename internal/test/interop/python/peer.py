"""kazoo under the command of the tests, as java/Peer.java is Curator.

A line on standard input is a command: a number, a verb and its arguments; the
answer on standard output begins with the number. It ends with its input.
"""

import os
import queue
import socket
import sys
import threading

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock


# snippet: kazoo
class CuratorLock(Lock):
    """A kazoo lock whose nodes have the form of Curator's mutex."""

    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]
# end


class Witness:
    def __init__(self, addr):
        host, port = addr.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)))
        self.lines = self.socket.makefile()

    def tell(self, line):
        self.socket.sendall((line + "\n").encode())
        answer = self.lines.readline()
        if answer != "noted\n":
            raise IOError("witness: " + answer)


class Actor:
    """Runs its steps one after another, in a thread of its own."""

    def __init__(self):
        self.steps = queue.Queue()
        self.locks = {}
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            self.steps.get()()


class Peer:
    def __init__(self, witness):
        self.witness = witness
        self.saying = threading.Lock()
        self.clients, self.actors, self.loads = {}, {}, {}

    def say(self, line):
        with self.saying:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def command(self, c):
        def run():
            try:
                self.say(c[0] + " ok " + str(self.step(c[1], c[2:])))
            except BaseException as e:  # the test shows it
                self.say(c[0] + " error " + repr(e).replace("\n", " "))

        if c[1] in ("take", "give"):
            self.actors.setdefault(c[2], Actor()).steps.put(run)
        else:
            threading.Thread(target=run, daemon=True).start()

    def lock(self, client, recipe, path):
        if recipe == "mutex":
            return CuratorLock(self.clients[client], path)
        if recipe == "one-sided":
            return Lock(self.clients[client], path, extra_lock_patterns=["-lock-"])
        return Lock(self.clients[client], path)

    def step(self, verb, c):
        if verb == "client":
            client = KazooClient(hosts=c[1], timeout=int(c[2]) / 1000.0)
            client.start(30)
            self.clients[c[0]] = client
            return client.client_id[0]
        if verb == "close":
            client = self.clients.pop(c[0])
            client.stop()
            client.close()
            return ""
        if verb == "take":
            lock = self.lock(c[1], c[2], c[3])
            try:
                got = lock.acquire(timeout=None if int(c[4]) < 0 else int(c[4]) / 1000.0)
            except Exception as e:
                if type(e).__name__ != "LockTimeout":
                    raise
                got = False
            if got:
                self.actors[c[0]].locks[c[3]] = lock
            return "true" if got else "false"
        if verb == "give":
            self.actors[c[0]].locks.pop(c[3]).release()
            return ""
        if verb == "load":
            load = Load(self, c[1], c[2], c[3], int(c[4]))
            self.loads[c[0]] = load
            return ""
        if verb == "stop":
            return self.loads.pop(c[0]).stop()
        raise ValueError("no command " + verb)


class Load:
    """Workers that take a lock again and again."""

    def __init__(self, peer, client, recipe, path, workers):
        self.over = threading.Event()
        self.rounds, self.failed = 0, None
        self.args = (peer, client, recipe, path)
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(workers)]
        for t in self.threads:
            t.start()

    def work(self):
        peer, client, recipe, path = self.args
        try:
            w = Witness(peer.witness)
            while not self.over.is_set():
                with peer.lock(client, recipe, path):
                    w.tell("enter %s 1 python" % path)
                    w.tell("leave %s 1 python" % path)
                    self.rounds += 1
        except BaseException as e:
            self.failed = e

    def stop(self):
        self.over.set()
        for t in self.threads:
            t.join(60)
            if t.is_alive():
                raise RuntimeError("a worker is stuck")
        if self.failed:
            raise self.failed
        return self.rounds


def main():
    peer = Peer(sys.argv[1])
    peer.say("ready")
    for line in sys.stdin:
        peer.command(line.split())
    os._exit(0)


main()
