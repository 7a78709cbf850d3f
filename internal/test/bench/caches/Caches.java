import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.cache.ChildData;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;
import org.apache.curator.framework.recipes.cache.TreeCache;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryForever;

/** Curator's caches under the command of the comparison: what peer.go says of it is true here. */
public final class Caches {
    private CuratorFramework client;
    private CuratorCache curatorCache;
    private TreeCache treeCache;
    private CountDownLatch initialized;
    private final AtomicInteger created = new AtomicInteger();
    private AtomicInteger changed = new AtomicInteger();
    private final List<Caches> crowd = new ArrayList<>();
    private final AtomicInteger deleted = new AtomicInteger();
    private final AtomicInteger errors = new AtomicInteger();
    private Thread cycles;
    private volatile boolean cycling;
    private final List<Long> took = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        Caches caches = new Caches();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = caches.command(line.split(" "));
            } catch (Exception e) {
                answer = "failed: " + e;
            }
            System.out.println(answer);
            System.out.flush();
        }
        System.exit(0);
    }

    private String command(String[] c) throws Exception {
        switch (c[0]) {
            case "connect":
                client = CuratorFrameworkFactory.newClient(c[1], 30000, 15000, new RetryForever(200));
                client.start();
                client.blockUntilConnected();
                return "ok";
            case "start":
                return start(c[1], c[2]);
            case "crowd":
                for (int i = 0; i < Integer.parseInt(c[1]); i++) {
                    Caches one = new Caches();
                    crowd.add(one);
                    one.command(new String[] {"connect", c[2]});
                    one.changed = changed;
                    one.start(c[3], c[4]);
                }
                return "ok";
            case "forget":
                changed.set(0);
                return "ok";
            case "await":
                while (changed.get() < Integer.parseInt(c[1])) {
                    Thread.sleep(0, 200000);
                }
                return "ok";
            case "events":
                return created + " " + changed + " " + deleted + " 0 " + errors;
            case "get":
                ChildData data = curatorCache != null ? curatorCache.get(c[1]).orElse(null) : treeCache.getCurrentData(c[1]);
                return data == null ? "nothing" : new String(data.getData(), StandardCharsets.UTF_8);
            case "heap":
                for (int i = 0; i < 3; i++) {
                    System.gc();
                }
                Runtime r = Runtime.getRuntime();
                return String.valueOf(r.totalMemory() - r.freeMemory());
            case "cycle":
                cycle();
                return "ok";
            case "rest":
                cycling = false;
                cycles.join();
                return "ok";
            case "cycles":
                return cycles();
            case "close":
                for (Caches one : crowd) {
                    one.command(c);
                }
                if (!crowd.isEmpty()) {
                    crowd.clear();
                    return "ok";
                }
                if (curatorCache != null) {
                    curatorCache.close();
                }
                if (treeCache != null) {
                    treeCache.close();
                }
                curatorCache = null;
                treeCache = null;
                client.close();
                return "ok";
            default:
                throw new IllegalArgumentException(c[0]);
        }
    }

    private String start(String kind, String path) throws Exception {
        initialized = new CountDownLatch(1);
        created.set(0);
        changed.set(0);
        deleted.set(0);
        errors.set(0);
        long began = System.nanoTime();
        if (kind.equals("CuratorCache")) {
            curatorCache = CuratorCache.builder(client, path).withExceptionHandler(e -> errors.incrementAndGet()).build();
            curatorCache.listenable().addListener(CuratorCacheListener.builder()
                .forInitialized(initialized::countDown)
                .forCreates(node -> created.incrementAndGet())
                .forChanges((old, node) -> changed.incrementAndGet())
                .forDeletes(node -> deleted.incrementAndGet())
                .build());
            curatorCache.start();
        } else {
            treeCache = TreeCache.newBuilder(client, path).build();
            treeCache.getListenable().addListener((c, event) -> {
                switch (event.getType()) {
                    case NODE_ADDED:
                        created.incrementAndGet();
                        break;
                    case NODE_UPDATED:
                        changed.incrementAndGet();
                        break;
                    case NODE_REMOVED:
                        deleted.incrementAndGet();
                        break;
                    case INITIALIZED:
                        initialized.countDown();
                        break;
                    default:
                }
            });
            treeCache.getUnhandledErrorListenable().addListener((message, e) -> errors.incrementAndGet());
            treeCache.start();
        }
        initialized.await();
        return (System.nanoTime() - began) / 1000 + " " + (created.get() - deleted.get());
    }

    private void cycle() {
        cycling = true;
        InterProcessMutex mutex = new InterProcessMutex(client, "/lock");
        cycles = new Thread(() -> {
            try {
                while (cycling) {
                    long began = System.nanoTime();
                    mutex.acquire();
                    mutex.release();
                    took.add((System.nanoTime() - began) / 1000);
                }
            } catch (Exception e) {
                e.printStackTrace();
            }
        });
        cycles.start();
    }

    private String cycles() {
        Collections.sort(took);
        int n = took.size();
        String answer = n == 0 ? "0 0 0 0" : n + " " + took.get(n / 2) + " " + took.get(n * 99 / 100) + " " + took.get(n - 1);
        took.clear();
        return answer;
    }
}
