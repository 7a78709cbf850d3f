import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.data.Stat;

/** ZooKeeper's own client on zkserver: usage Client HOST:PORT CONTROL-URL. */
public class Client {
    static void command(String control, String path) throws Exception {
        HttpResponse<String> res = HttpClient.newHttpClient().send(
                HttpRequest.newBuilder(URI.create(control + path)).POST(HttpRequest.BodyPublishers.noBody()).build(),
                HttpResponse.BodyHandlers.ofString());
        check(res.statusCode() == 200, path + ": " + res.body());
    }

    static void check(boolean ok, String what) {
        if (!ok) {
            throw new AssertionError(what);
        }
    }

    /** Waits for a connection state or an event, and skips others. */
    static void await(BlockingQueue<WatchedEvent> events, KeeperState state, EventType type) throws Exception {
        for (;;) {
            WatchedEvent e = events.poll(20, TimeUnit.SECONDS);
            check(e != null, "no " + state + " " + type);
            if (e.getState() == state && e.getType() == type) {
                return;
            }
        }
    }

    public static void main(String[] args) throws Exception {
        BlockingQueue<WatchedEvent> events = new LinkedBlockingQueue<>();
        BlockingQueue<WatchedEvent> others = new LinkedBlockingQueue<>();
        ZooKeeper a = new ZooKeeper(args[0], 10000, events::add);
        ZooKeeper b = new ZooKeeper(args[0], 10000, others::add);
        await(events, KeeperState.SyncConnected, EventType.None);
        await(others, KeeperState.SyncConnected, EventType.None);

        // The lock of ZooKeeper's recipes, by hand: wait for the one ahead.
        a.create("/lock", null, Ids.OPEN_ACL_UNSAFE, CreateMode.CONTAINER);
        String first = a.create("/lock/x-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL);
        String second = b.create("/lock/x-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL);
        List<String> queue = b.getChildren("/lock", false);
        queue.sort(null);
        check(first.endsWith(queue.get(0)) && second.endsWith(queue.get(1)), "order " + queue);
        check(b.exists(first, true) != null, "predecessor");
        a.delete(first, 0);
        await(others, KeeperState.SyncConnected, EventType.NodeDeleted);
        check(b.getChildren("/lock", false).size() == 1, "b holds the lock");
        System.out.println("lock taken, handed over");

        Stat stat = new Stat();
        a.create("/watched", "1".getBytes(), Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT, stat);
        check(stat.getCzxid() > 0, "create2");
        a.addWatch("/watched", AddWatchMode.PERSISTENT_RECURSIVE);
        b.multi(List.of(Op.setData("/watched", "2".getBytes(), 0),
                Op.create("/watched/child", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT)));
        await(events, KeeperState.SyncConnected, EventType.NodeDataChanged);
        await(events, KeeperState.SyncConnected, EventType.NodeCreated);
        check(a.getAllChildrenNumber("/watched") == 1, "children");
        check(b.getEphemerals().size() == 1, "ephemerals");
        a.create("/ttl", null, Ids.OPEN_ACL_UNSAFE, CreateMode.PERSISTENT_WITH_TTL, stat, 60000);
        a.addAuthInfo("digest", "me:secret".getBytes());
        a.create("/mine", null, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
        try {
            b.getData("/mine", false, null);
            check(false, "no auth expected");
        } catch (KeeperException.NoAuthException expected) {
            System.out.println("watched, access lists");
        }

        String held = a.create("/lock/x-", null, Ids.OPEN_ACL_UNSAFE, CreateMode.EPHEMERAL_SEQUENTIAL);
        long before = a.getSessionId();
        events.clear();
        command(args[1], "/disconnect?session=0x" + Long.toHexString(before));
        await(events, KeeperState.Disconnected, EventType.None);
        await(events, KeeperState.SyncConnected, EventType.None);
        check(a.getSessionId() == before && a.exists(held, false) != null, "same session");
        b.setData("/watched", "3".getBytes(), -1);
        await(events, KeeperState.SyncConnected, EventType.NodeDataChanged);
        System.out.println("survived a disconnect with its watch");

        command(args[1], "/expire?session=0x" + Long.toHexString(before));
        await(events, KeeperState.Expired, EventType.None);
        check(b.exists(held, false) == null, "its nodes are gone");
        System.out.println("saw an expiry");
        a.close();
        b.close();
        System.out.println("ok");
        System.exit(0);
    }
}
