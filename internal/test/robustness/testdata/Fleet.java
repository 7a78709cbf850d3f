import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooKeeper;

/** Many clients of ZooKeeper's own library, each of which says its number and its new state. */
class Fleet {
    static String servers;
    static int timeout;
    static KeeperState last; // of a client that comes up
    static final Semaphore places = new Semaphore(50);

    public static void main(String[] args) throws Exception {
        servers = args[0];
        timeout = Integer.parseInt(args[1]);
        int size = Integer.parseInt(args[2]);
        last = Boolean.getBoolean("zookeeper.client.secure") ? KeeperState.SaslAuthenticated : KeeperState.SyncConnected;
        CountDownLatch up = new CountDownLatch(size);
        for (int i = 0; i < size; i++) {
            places.acquire();
            open(i, up);
        }
        up.await();
        System.out.println("ready");
        while (System.in.read() >= 0) { // until the test ends
        }
        System.exit(0);
    }

    static void open(int client, CountDownLatch up) throws Exception {
        boolean[] first = {up != null};
        new ZooKeeper(servers, timeout, (WatchedEvent e) -> {
            if (e.getType() != EventType.None) {
                return;
            }
            if (e.getState() == last) {
                System.out.println(client + " up");
                if (first[0]) {
                    first[0] = false;
                    places.release();
                    up.countDown();
                }
            } else if (e.getState() == KeeperState.Disconnected) {
                System.out.println(client + " off");
            } else if (e.getState() == KeeperState.Expired) {
                System.out.println(client + " lost");
                try {
                    open(client, null);
                } catch (Exception failed) {
                    throw new RuntimeException(failed);
                }
            }
        });
    }
}
