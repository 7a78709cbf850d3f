import java.nio.charset.StandardCharsets;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Counts under a lock with Curator: usage Counter HOST:PORT LOCK COUNTER TIMES. */
public class Counter {
    public static void main(String[] args) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(args[0], new ExponentialBackoffRetry(100, 5));
        client.start();
        InterProcessMutex lock = new InterProcessMutex(client, args[1]);
        for (int i = 0; i < Integer.parseInt(args[3]); i++) {
            lock.acquire();
            try {
                int n = Integer.parseInt(new String(client.getData().forPath(args[2]), StandardCharsets.UTF_8));
                client.setData().forPath(args[2], Integer.toString(n + 1).getBytes(StandardCharsets.UTF_8));
            } finally {
                lock.release();
            }
        }
        client.close();
        System.out.println("ok");
    }
}
