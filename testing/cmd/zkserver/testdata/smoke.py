"""Kazoo on zkserver: connect, lock, watch, disconnect, expire.

usage: smoke.py HOST:PORT CONTROL-URL
"""
import json
import sys
import threading
import urllib.parse
import urllib.request

from kazoo.client import KazooClient, KazooState

hosts, control = sys.argv[1:]


def command(path, **params):
    data = urllib.parse.urlencode(params).encode()
    with urllib.request.urlopen(urllib.request.Request(control + path, data)) as res:
        return json.load(res)


def wait(event, what):
    if not event.wait(20):
        sys.exit("no " + what)


class Client:
    def __init__(self):
        self.states = {s: threading.Event() for s in (KazooState.CONNECTED, KazooState.SUSPENDED, KazooState.LOST)}
        self.zk = KazooClient(hosts=hosts, timeout=10)
        self.zk.add_listener(lambda state: self.states[state].set())
        self.zk.start(timeout=20)

    def session(self):
        return hex(self.zk.client_id[0])

    def forget(self):
        for event in self.states.values():
            event.clear()


a, b = Client(), Client()
first, second = a.zk.Lock("/locks/kazoo", "a"), b.zk.Lock("/locks/kazoo", "b")
assert first.acquire(timeout=10)
assert not second.acquire(blocking=False)
assert first.contenders() == ["a"]

got = threading.Event()
waiter = threading.Thread(target=lambda: second.acquire(timeout=20) and got.set())
waiter.start()
while len(first.contenders()) < 2:
    pass
assert not got.is_set()
first.release()
wait(got, "hand-over")
waiter.join()
second.release()
print("lock taken, handed over, released")

changed = threading.Event()
a.zk.create("/watched", b"1")
a.zk.get("/watched", watch=lambda event: changed.set())
b.zk.set("/watched", b"2")
wait(changed, "event")
assert a.zk.get("/watched")[0] == b"2"

with a.zk.transaction() as t:
    t.create("/t", b"")
    t.set_data("/watched", b"3")
    t.check("/watched", 2)
print("watched")

assert first.acquire(timeout=10)
a.forget()
before = a.session()
command("/disconnect", session=before)
wait(a.states[KazooState.SUSPENDED], "suspension")
wait(a.states[KazooState.CONNECTED], "reconnection")
assert a.session() == before
assert not a.states[KazooState.LOST].is_set()
assert not second.acquire(blocking=False), "the lock is still held"
print("survived a disconnect")

a.forget()
command("/expire", session=before)
wait(a.states[KazooState.LOST], "expiry")
wait(a.states[KazooState.CONNECTED], "new session")
assert a.session() != before
assert second.acquire(timeout=10), "an expired owner has no lock"
second.release()
print("saw an expiry")
for c in (a, b):
    c.zk.stop()
    c.zk.close()
print("ok")
