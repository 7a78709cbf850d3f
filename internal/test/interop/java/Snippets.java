import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.curator.framework.recipes.leader.CancelLeadershipException;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListener;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Locker;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.framework.state.ConnectionStateListenerManagerFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.curator.retry.RetryForever;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Stat;

/**
 * What docs/from-curator.md shows of Java, each piece between two markers. The
 * interop run calls all of it.
 */
final class Snippets {
    private Snippets() {}

    /** What is done under a lock. */
    interface Work {
        void run() throws Exception;
    }

    static CuratorFramework connect(String servers) throws Exception {
        // snippet: connect
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(servers)
                .sessionTimeoutMs(15_000)
                .retryPolicy(new ExponentialBackoffRetry(100, 5))
                .build();
        client.start();
        client.blockUntilConnected();
        // end
        return client;
    }

    static CuratorFramework options(String servers) throws Exception {
        // snippet: options
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(servers)
                .namespace("shop")
                .authorization("digest", "shop:secret".getBytes(StandardCharsets.UTF_8))
                .aclProvider(new ACLProvider() {
                    @Override
                    public List<ACL> getDefaultAcl() {
                        return ZooDefs.Ids.CREATOR_ALL_ACL;
                    }

                    @Override
                    public List<ACL> getAclForPath(String path) {
                        return path.startsWith("/shop/public") ? ZooDefs.Ids.OPEN_ACL_UNSAFE : ZooDefs.Ids.CREATOR_ALL_ACL;
                    }
                })
                .retryPolicy(new ExponentialBackoffRetry(100, 5))
                .build();
        client.start();
        // end
        client.blockUntilConnected();
        return client;
    }

    static void states(CuratorFramework client, CountDownLatch lost) {
        // snippet: states
        client.getConnectionStateListenable().addListener((c, state) -> {
            if (state == ConnectionState.LOST) {
                lost.countDown();
            }
        });
        // end
    }

    static void mutex(CuratorFramework client, String path, Work work) throws Exception {
        // snippet: mutex
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        mutex.acquire();
        try {
            work.run();
        } finally {
            mutex.release();
        }
        // end
    }

    static boolean timed(CuratorFramework client, String path, Work work) throws Exception {
        // snippet: timed
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        if (!mutex.acquire(10, TimeUnit.SECONDS)) {
            return false; // somebody else has it
        }
        try {
            work.run();
        } finally {
            mutex.release();
        }
        return true;
        // end
    }

    static void locker(CuratorFramework client, String path, Work work) throws Exception {
        // snippet: locker
        try (Locker locker = new Locker(new InterProcessMutex(client, path))) {
            work.run();
        }
        // end
    }

    static void reentrant(CuratorFramework client, String path, Work work) throws Exception {
        // snippet: reentrant
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        mutex.acquire();
        try {
            mutex.acquire(); // the same thread
            try {
                work.run();
            } finally {
                mutex.release();
            }
        } finally {
            mutex.release();
        }
        // end
    }

    static void semaphoreMutex(CuratorFramework client, String path, Work work) throws Exception {
        // snippet: semaphore-mutex
        InterProcessSemaphoreMutex mutex = new InterProcessSemaphoreMutex(client, path);
        mutex.acquire();
        try {
            work.run();
        } finally {
            mutex.release();
        }
        // end
    }

    static void semaphore(CuratorFramework client, String path, Work work) throws Exception {
        // snippet: semaphore
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, 3);
        try (Lease lease = semaphore.acquire()) {
            work.run();
        }
        // end
    }

    static void leases(CuratorFramework client, String path, Work work) throws Exception {
        // snippet: leases
        InterProcessSemaphoreV2 semaphore = new InterProcessSemaphoreV2(client, path, 3);
        Collection<Lease> leases = semaphore.acquire(2);
        try {
            work.run();
        } finally {
            semaphore.returnAll(leases);
        }
        // end
    }

    static void read(CuratorFramework client, String path, Work work) throws Exception {
        // snippet: read
        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
        lock.readLock().acquire();
        try {
            work.run();
        } finally {
            lock.readLock().release();
        }
        // end
    }

    static void write(CuratorFramework client, String path, Work work) throws Exception {
        // snippet: write
        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
        lock.writeLock().acquire();
        try {
            work.run();
        } finally {
            lock.writeLock().release();
        }
        // end
    }

    static void downgrade(CuratorFramework client, String path, Work change, Work look) throws Exception {
        // snippet: downgrade
        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path);
        lock.writeLock().acquire();
        try {
            change.run();
            lock.readLock().acquire(); // the same thread
        } finally {
            lock.writeLock().release();
        }
        try {
            look.run();
        } finally {
            lock.readLock().release();
        }
        // end
    }

    static void multi(CuratorFramework client, String from, String to, Work work) throws Exception {
        // snippet: multi
        InterProcessMultiLock lock = new InterProcessMultiLock(client, Arrays.asList(from, to));
        lock.acquire();
        try {
            work.run();
        } finally {
            lock.release();
        }
        // end
    }

    static void revocable(CuratorFramework client, String path, Work work) throws Exception {
        // snippet: revocable
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        CountDownLatch asked = new CountDownLatch(1);
        mutex.makeRevocable(m -> asked.countDown());
        mutex.acquire();
        try {
            work.run();
            asked.await(); // somebody wants it
        } finally {
            mutex.release();
        }
        // end
    }

    static void revoke(CuratorFramework client, String path) throws Exception {
        // snippet: revoke
        InterProcessMutex mutex = new InterProcessMutex(client, path);
        for (String participant : mutex.getParticipantNodes()) {
            Revoker.attemptRevoke(client, participant);
        }
        // end
    }

    static byte[] lockData(CuratorFramework client, String path, Work work) throws Exception {
        // snippet: lock-data
        byte[] who = "worker 7".getBytes(StandardCharsets.UTF_8);
        InterProcessReadWriteLock lock = new InterProcessReadWriteLock(client, path, who);
        lock.writeLock().acquire();
        try {
            String first = lock.writeLock().getParticipantNodes().iterator().next();
            return client.getData().forPath(first);
        } finally {
            lock.writeLock().release();
        }
        // end
    }

    static String nodes(CuratorFramework client) throws Exception {
        // snippet: nodes
        byte[] data = "v1".getBytes(StandardCharsets.UTF_8);
        String path = client.create()
                .creatingParentContainersIfNeeded()
                .withProtection()
                .withMode(CreateMode.EPHEMERAL_SEQUENTIAL)
                .forPath("/nodes/n-", data);
        Stat stat = new Stat();
        client.getData().storingStatIn(stat).forPath(path);
        client.setData().withVersion(stat.getVersion()).forPath(path, "v2".getBytes(StandardCharsets.UTF_8));
        client.delete().guaranteed().forPath(path);
        // end
        return path;
    }

    static void transaction(CuratorFramework client) throws Exception {
        client.createContainers("/orders");
        client.createContainers("/stock");
        client.create().orSetData().forPath("/stock/apples", new byte[] {'9'});
        // snippet: transaction
        byte[] eight = "8".getBytes(StandardCharsets.UTF_8);
        client.transaction().forOperations(
                client.transactionOp().create().withMode(CreateMode.EPHEMERAL).forPath("/orders/1", eight),
                client.transactionOp().setData().forPath("/stock/apples", eight));
        // end
        client.delete().forPath("/orders/1");
    }

    static byte[] compression(CuratorFramework client) throws Exception {
        // snippet: compression
        byte[] text = "a long text".getBytes(StandardCharsets.UTF_8);
        client.create().orSetData().compressed().forPath("/text", text);
        return client.getData().decompressed().forPath("/text");
        // end
    }

    static CuratorFramework circuitBreaker(String servers) throws Exception {
        // snippet: circuit-breaker
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(servers)
                .retryPolicy(new ExponentialBackoffRetry(100, 5))
                .connectionStateListenerManagerFactory(
                        ConnectionStateListenerManagerFactory.circuitBreaking(new RetryForever(5_000)))
                .build();
        client.start();
        // end
        client.blockUntilConnected();
        return client;
    }

    static void leaderLatch(CuratorFramework client, String path, String id, Work work) throws Exception {
        // snippet: leader-latch
        try (LeaderLatch latch = new LeaderLatch(client, path, id)) {
            latch.start();
            latch.await();
            work.run();
        }
        // end
    }

    static LeaderLatch latchListener(CuratorFramework client, String path, Runnable begin, Runnable end) throws Exception {
        // snippet: latch-listener
        LeaderLatch latch = new LeaderLatch(client, path);
        latch.addListener(new LeaderLatchListener() {
            @Override
            public void isLeader() {
                begin.run();
            }

            @Override
            public void notLeader() {
                end.run();
            }
        });
        latch.start();
        // end
        return latch;
    }

    static LeaderSelector leaderSelector(CuratorFramework client, String path, Work work) {
        // snippet: leader-selector
        LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListener() {
            @Override
            public void takeLeadership(CuratorFramework c) throws Exception {
                work.run();
            }

            @Override
            public void stateChanged(CuratorFramework c, ConnectionState state) {
                if (state == ConnectionState.LOST) {
                    throw new CancelLeadershipException(); // interrupts work
                }
            }
        });
        selector.start();
        // end
        return selector;
    }

    static LeaderSelector selectorAdapter(CuratorFramework client, String path, Work work) {
        // snippet: selector-adapter
        LeaderSelector selector = new LeaderSelector(client, path, new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework c) throws Exception {
                work.run(); // interrupted when the connection is suspended
            }
        });
        selector.start();
        // end
        return selector;
    }

    static LeaderSelector autoRequeue(CuratorFramework client, String path, LeaderSelectorListener listener) {
        // snippet: auto-requeue
        LeaderSelector selector = new LeaderSelector(client, path, listener);
        selector.autoRequeue();
        selector.start();
        // end
        return selector;
    }

    static String participants(LeaderLatch latch) throws Exception {
        // snippet: participants
        List<String> all = new ArrayList<>();
        for (Participant p : latch.getParticipants()) {
            all.add(p.getId());
        }
        String leads = latch.getLeader().getId();
        // end
        return all + " " + leads;
    }

    static void elections(CuratorFramework client) throws Exception {
        leaderLatch(client, "/snippets/latch", "a", () -> {
            check(participants(new LeaderLatch(client, "/snippets/latch", "b")).equals("[a] a"), "participants"); // it does not stand
        });
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch ended = new CountDownLatch(1);
        LeaderLatch listening = latchListener(client, "/snippets/listener", begun::countDown, ended::countDown);
        check(begun.await(30, TimeUnit.SECONDS), "isLeader");
        listening.close(LeaderLatch.CloseMode.NOTIFY_LEADER);
        check(ended.await(30, TimeUnit.SECONDS), "notLeader");
        CountDownLatch worked = new CountDownLatch(2);
        leaderSelector(client, "/snippets/selector", worked::countDown);
        selectorAdapter(client, "/snippets/selector", worked::countDown);
        check(worked.await(30, TimeUnit.SECONDS), "takeLeadership");
        CountDownLatch again = new CountDownLatch(3);
        LeaderSelector standing = autoRequeue(client, "/snippets/again", new LeaderSelectorListenerAdapter() {
            @Override
            public void takeLeadership(CuratorFramework c) {
                again.countDown();
            }
        });
        check(again.await(30, TimeUnit.SECONDS), "autoRequeue");
        standing.close();
    }

    static void check(boolean ok, String what) {
        if (!ok) {
            throw new IllegalStateException(what);
        }
    }

    /** Runs what no load of the interop run does. */
    static void all(String servers) throws Exception {
        try (CuratorFramework client = connect(servers)) {
            CountDownLatch lost = new CountDownLatch(1);
            states(client, lost);
            int[] runs = {0};
            Work work = () -> runs[0]++;
            check(timed(client, "/snippets/timed", work), "timed");
            downgrade(client, "/snippets/downgrade", work, work);
            check(runs[0] == 3, "work was done");
            check(new String(lockData(client, "/snippets/data", work), StandardCharsets.UTF_8).equals("worker 7"), "lock data");
            check(nodes(client).startsWith("/nodes/_c_"), "nodes");
            transaction(client);
            elections(client);
            check(new String(compression(client), StandardCharsets.UTF_8).equals("a long text"), "compression");

            CountDownLatch held = new CountDownLatch(1);
            Throwable[] failed = {null};
            Thread holder = new Thread(() -> {
                try {
                    revocable(client, "/snippets/revocable", held::countDown);
                } catch (Throwable e) {
                    failed[0] = e;
                }
            });
            holder.start();
            held.await();
            revoke(client, "/snippets/revocable");
            holder.join(30_000);
            check(!holder.isAlive() && failed[0] == null, "revocable");

            check(lost.getCount() == 1, "states");
            client.getZookeeperClient().reset();
            check(lost.await(30, TimeUnit.SECONDS), "LOST");
        }
        circuitBreaker(servers).close();
        try (CuratorFramework client = options(servers)) {
            client.create().creatingParentsIfNeeded().forPath("/public/a");
            client.create().creatingParentsIfNeeded().forPath("/private/a");
            check(client.getACL().forPath("/public/a").equals(ZooDefs.Ids.OPEN_ACL_UNSAFE), "open");
            check(!client.getACL().forPath("/private/a").equals(ZooDefs.Ids.OPEN_ACL_UNSAFE), "closed");
            check(Collections.frequency(client.getChildren().forPath("/"), "public") == 1, "namespace");
        }
    }
}
