import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.retry.ExponentialBackoffRetry;

/** Curator's InterProcessMutex on zkserver: usage Curator HOST:PORT CONTROL-URL. */
public class Curator {
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

    static void await(BlockingQueue<ConnectionState> states, ConnectionState want) throws Exception {
        for (;;) {
            ConnectionState state = states.poll(40, TimeUnit.SECONDS);
            check(state != null, "no " + want);
            if (state == want) {
                return;
            }
        }
    }

    static CuratorFramework connect(String hosts, BlockingQueue<ConnectionState> states) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.newClient(hosts, new ExponentialBackoffRetry(100, 5));
        client.getConnectionStateListenable().addListener((c, state) -> states.add(state));
        client.start();
        check(client.blockUntilConnected(20, TimeUnit.SECONDS), "connect");
        return client;
    }

    static String session(CuratorFramework c) throws Exception {
        return "0x" + Long.toHexString(c.getZookeeperClient().getZooKeeper().getSessionId());
    }

    public static void main(String[] args) throws Exception {
        BlockingQueue<ConnectionState> states = new LinkedBlockingQueue<>();
        CuratorFramework a = connect(args[0], states);
        CuratorFramework b = connect(args[0], new LinkedBlockingQueue<>());
        InterProcessMutex first = new InterProcessMutex(a, "/locks/curator");
        InterProcessMutex second = new InterProcessMutex(b, "/locks/curator");

        check(first.acquire(10, TimeUnit.SECONDS), "acquire");
        check(!second.acquire(200, TimeUnit.MILLISECONDS), "held by a");
        CompletableFuture<Void> waiting = CompletableFuture.runAsync(() -> {
            try {
                check(second.acquire(20, TimeUnit.SECONDS), "hand-over");
                second.release();
            } catch (Exception e) {
                throw new RuntimeException(e);
            }
        });
        while (first.getParticipantNodes().size() < 2) {
            Thread.sleep(5);
        }
        first.release();
        waiting.get(30, TimeUnit.SECONDS);
        System.out.println("lock taken, handed over, released");

        check(first.acquire(10, TimeUnit.SECONDS), "acquire again");
        String before = session(a);
        states.clear();
        command(args[1], "/disconnect?session=" + before);
        await(states, ConnectionState.SUSPENDED);
        await(states, ConnectionState.RECONNECTED);
        check(before.equals(session(a)), "same session");
        check(!second.acquire(200, TimeUnit.MILLISECONDS), "still held");
        first.release();
        check(second.acquire(10, TimeUnit.SECONDS), "released after the disconnect");
        second.release();
        System.out.println("survived a disconnect");

        check(first.acquire(10, TimeUnit.SECONDS), "acquire a third time");
        states.clear();
        command(args[1], "/expire?session=" + before);
        await(states, ConnectionState.LOST);
        check(second.acquire(20, TimeUnit.SECONDS), "an expired owner has no lock");
        second.release();
        await(states, ConnectionState.RECONNECTED);
        check(!before.equals(session(a)), "another session");
        System.out.println("saw an expiry");
        a.close();
        b.close();
        System.out.println("ok");
        System.exit(0);
    }
}
