import java.util.ArrayList;
import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryOneTime;
import org.apache.curator.test.TestingServer;

/** How long Curator's TestingServer takes from nothing to the first node, client included. */
public class Start {
    public static void main(String[] args) throws Exception {
        List<Long> times = new ArrayList<>();
        for (int i = 0; i < 11; i++) {
            long begun = System.nanoTime();
            TestingServer server = new TestingServer();
            CuratorFramework client = CuratorFrameworkFactory.newClient(server.getConnectString(), new RetryOneTime(10));
            client.start();
            client.create().forPath("/a");
            times.add((System.nanoTime() - begun) / 1000);
            client.close();
            server.close();
        }
        System.out.println("first " + times.get(0) + " us");
        times.sort(null);
        System.out.println("median of " + times.size() + " " + times.get(times.size() / 2) + " us");
        System.exit(0);
    }
}
