"""kazoo's TreeCache under the command of the comparison: what peer.go says of it is true here."""

import gc
import resource
import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.recipe.cache import TreeCache, TreeEvent

count = {}
initialized = threading.Event()
client = cache = None


def heard(event):
    if event.event_type == TreeEvent.INITIALIZED:
        initialized.set()
    count[event.event_type] = count.get(event.event_type, 0) + 1


def counted(kind):
    return count.get(kind, 0)


def failed(error):
    count["error"] = counted("error") + 1


def start(path):
    global cache
    count.clear()
    initialized.clear()
    began = time.monotonic()
    cache = TreeCache(client, path)
    cache.listen(heard)
    cache.listen_fault(failed)
    cache.start()
    initialized.wait()
    took = time.monotonic() - began
    return "%d %d" % (took * 1e6, counted(TreeEvent.NODE_ADDED) - counted(TreeEvent.NODE_REMOVED))


def command(c):
    global client
    if c[0] == "connect":
        client = KazooClient(hosts=c[1], timeout=30.0)
        client.start(timeout=30)
        return "ok"
    if c[0] == "start":
        return start(c[2])
    if c[0] == "forget":
        count[TreeEvent.NODE_UPDATED] = 0
        return "ok"
    if c[0] == "await":
        while counted(TreeEvent.NODE_UPDATED) < int(c[1]):
            time.sleep(0.0005)
        return "ok"
    if c[0] == "events":
        return "%d %d %d 0 %d" % (counted(TreeEvent.NODE_ADDED), counted(TreeEvent.NODE_UPDATED), counted(TreeEvent.NODE_REMOVED), counted("error"))
    if c[0] == "get":
        data = cache.get_data(c[1])
        return data.data.decode() if data else "nothing"
    if c[0] == "heap":  # of the process, since Python does not tell
        gc.collect()
        with open("/proc/self/statm") as statm:
            return str(int(statm.read().split()[1]) * resource.getpagesize())
    if c[0] == "close":
        cache.close()
        client.stop()
        client.close()
        return "ok"
    raise ValueError(c[0])


for line in sys.stdin:
    try:
        answer = command(line.split())
    except Exception as e:
        answer = "failed: %r" % e
    print(answer, flush=True)
