"""Kazoo proves itself by DIGEST-MD5.

usage: sasl.py HOST:PORT
"""
import sys
import threading

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.protocol.states import KeeperState
from kazoo.security import make_acl


def client(user, password):
    return KazooClient(hosts=sys.argv[1], timeout=10, sasl_options={
        "mechanism": "DIGEST-MD5", "username": user, "password": password})


bob, eve = client("bob", "se,cr\"et"), client("eve", "other")
bob.start(timeout=20)
eve.start(timeout=20)
bob.create("/kazoo", b"1", acl=[make_acl("sasl", "bob", all=True)])
assert bob.get("/kazoo")[0] == b"1"
try:
    eve.get("/kazoo")
    sys.exit("eve has read it")
except NoAuthError:
    pass
wrong = client("bob", "wrong")
refused = threading.Event()
wrong.add_listener(lambda state: wrong.client_state == KeeperState.AUTH_FAILED and refused.set())
wrong.start_async()
if not refused.wait(20):
    sys.exit("a wrong password is let in")
for c in (bob, eve, wrong):
    c.stop()
    c.close()
print("ok")
