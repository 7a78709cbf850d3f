import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.api.ACLProvider;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.data.ACL;

/**
 * Curator under the command of the tests. A line on standard input is a command:
 * a number, a verb and its arguments; the answer on standard output begins with
 * the number. It ends with its input.
 */
public final class Peer {
    /** Milliseconds that a lease is kept, so that several are out at a time. */
    private static final long LINGER = 5;

    private final String witness;
    private final Map<String, CuratorFramework> clients = new ConcurrentHashMap<>();
    private final Map<String, Object> locks = new ConcurrentHashMap<>();
    private final Map<String, Actor> actors = new ConcurrentHashMap<>();
    private final Map<String, Load> loads = new ConcurrentHashMap<>();
    private final Map<String, Election> elections = new ConcurrentHashMap<>();
    private final ExecutorService pool = Executors.newCachedThreadPool();

    private Peer(String witness) {
        this.witness = witness;
    }

    public static void main(String[] args) throws Exception {
        Peer peer = new Peer(args[0]);
        say("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            peer.command(line.split(" "));
        }
        System.exit(0);
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    /** Somebody who owns locks: in Curator a thread. */
    private static final class Actor {
        final ExecutorService thread = Executors.newSingleThreadExecutor();
        final Map<String, Deque<Collection<Lease>>> leases = new ConcurrentHashMap<>();
    }

    private interface Step {
        String run() throws Exception;
    }

    private void command(String[] c) {
        ExecutorService on = pool;
        if (c[1].equals("take") || c[1].equals("give")) {
            on = actors.computeIfAbsent(c[2], k -> new Actor()).thread;
        }
        on.execute(() -> {
            try {
                say(c[0] + " ok " + step(c).run());
            } catch (Throwable e) {
                say(c[0] + " error " + e.toString().replace('\n', ' '));
            }
        });
    }

    private Step step(String[] c) {
        switch (c[1]) {
            case "client":
                return () -> connect(c[2], c[3], Integer.parseInt(c[4]), c[5], c[6]);
            case "session":
                return () -> session(client(c[2]));
            case "close":
                return () -> {
                    clients.remove(c[2]).close();
                    return "";
                };
            case "take":
                return () -> take(actors.get(c[2]), c[3], c[4], c[5], Long.parseLong(c[6]), Integer.parseInt(c[7]));
            case "give":
                return () -> give(actors.get(c[2]), c[3], c[4], c[5]);
            case "held":
                return () -> String.valueOf(((InterProcessLock) lock(c[3], c[4], c[5])).isAcquiredInThisProcess());
            case "participants":
                return () -> String.join(",", ((InterProcessMutex) lock(c[2], c[3], c[4])).getParticipantNodes());
            case "revocable":
                return () -> {
                    ((InterProcessMutex) lock(c[2], c[3], c[4])).makeRevocable(m -> say("asked " + c[4]));
                    return "";
                };
            case "revoke":
                return () -> {
                    Revoker.attemptRevoke(client(c[2]), c[3]);
                    return "";
                };
            case "stand":
                return () -> {
                    elections.put(c[2], Election.stand(client(c[3]), c[4], c[5], c[2]));
                    return "";
                };
            case "led":
                return () -> {
                    elections.get(c[2]).led();
                    return "";
                };
            case "leads":
                return () -> String.valueOf(elections.get(c[2]).leads());
            case "write": // as the leader, which in Curator nothing makes sure of
                return () -> {
                    client(c[3]).setData().forPath(c[4], c[2].getBytes(StandardCharsets.UTF_8));
                    return "";
                };
            case "wake":
                return () -> {
                    elections.get(c[2]).wake();
                    return "";
                };
            case "ids":
                return () -> elections.get(c[2]).ids();
            case "leave":
                return () -> {
                    elections.remove(c[2]).leave();
                    return "";
                };
            case "put":
                return () -> {
                    client(c[2]).create().orSetData().compressed().forPath(c[3], c[4].getBytes(StandardCharsets.UTF_8));
                    return "";
                };
            case "read":
                return () -> new String(client(c[2]).getData().decompressed().forPath(c[3]), StandardCharsets.UTF_8);
            case "load":
                return () -> {
                    Load load = new Load(client(c[3]), c[4], c[5], Integer.parseInt(c[6]));
                    loads.put(c[2], load);
                    load.start();
                    return "";
                };
            case "crowd":
                return () -> {
                    List<CuratorFramework> all = new ArrayList<>();
                    for (String name : c[2].split(",")) {
                        all.add(client(name));
                    }
                    return new Crowd(all, c[3], c[4], Integer.parseInt(c[5]), Long.parseLong(c[6])).run(witness);
                };
            case "stop":
                return () -> String.valueOf(loads.remove(c[2]).stop());
            case "snippets":
                return () -> {
                    Snippets.all(c[2]);
                    return "";
                };
            default:
                throw new IllegalArgumentException("no command " + c[1]);
        }
    }

    private String connect(String name, String servers, int timeout, String namespace, String user) throws Exception {
        CuratorFrameworkFactory.Builder b = CuratorFrameworkFactory.builder()
                .connectString(servers)
                .sessionTimeoutMs(timeout)
                .connectionTimeoutMs(timeout)
                .retryPolicy(new ExponentialBackoffRetry(50, 8));
        if (!namespace.equals("-")) {
            b.namespace(namespace);
        }
        if (!user.equals("-")) {
            b.authorization("digest", user.getBytes(StandardCharsets.UTF_8)).aclProvider(new ACLProvider() {
                @Override
                public List<ACL> getDefaultAcl() {
                    return ZooDefs.Ids.CREATOR_ALL_ACL;
                }

                @Override
                public List<ACL> getAclForPath(String path) {
                    return ZooDefs.Ids.CREATOR_ALL_ACL;
                }
            });
        }
        CuratorFramework client = b.build();
        client.start();
        Snippets.check(client.blockUntilConnected(30, TimeUnit.SECONDS), "not connected");
        clients.put(name, client);
        return session(client);
    }

    private static String session(CuratorFramework client) throws Exception {
        return String.valueOf(client.getZookeeperClient().getZooKeeper().getSessionId());
    }

    private CuratorFramework client(String name) {
        CuratorFramework client = clients.get(name);
        Snippets.check(client != null, "no client " + name);
        return client;
    }

    /** The lock object that all actors of a client share. */
    private Object lock(String client, String recipe, String path) {
        String family = recipe.equals("read") || recipe.equals("write") ? "rw" : recipe;
        CuratorFramework c = client(client);
        Object lock = locks.computeIfAbsent(client + " " + family + " " + path, k -> {
            switch (family) {
                case "mutex":
                    return new InterProcessMutex(c, path);
                case "rw":
                    return new InterProcessReadWriteLock(c, path);
                case "semaphore-mutex":
                    return new InterProcessSemaphoreMutex(c, path);
                case "semaphore":
                    return new InterProcessSemaphoreV2(c, path, 3);
                case "multi":
                    return new InterProcessMultiLock(c, Arrays.asList(path.split(",")));
                default:
                    throw new IllegalArgumentException("no recipe " + recipe);
            }
        });
        if (lock instanceof InterProcessReadWriteLock) {
            InterProcessReadWriteLock rw = (InterProcessReadWriteLock) lock;
            return recipe.equals("read") ? rw.readLock() : rw.writeLock();
        }
        return lock;
    }

    private String take(Actor actor, String client, String recipe, String path, long wait, int n) throws Exception {
        Object lock = lock(client, recipe, path);
        if (lock instanceof InterProcessSemaphoreV2) {
            InterProcessSemaphoreV2 s = (InterProcessSemaphoreV2) lock;
            Collection<Lease> leases = wait < 0 ? s.acquire(n) : s.acquire(n, wait, TimeUnit.MILLISECONDS);
            if (leases != null) {
                actor.leases.computeIfAbsent(path, k -> new ArrayDeque<>()).push(leases);
            }
            return String.valueOf(leases != null);
        }
        InterProcessLock l = (InterProcessLock) lock;
        if (wait < 0) {
            l.acquire();
            return "true";
        }
        return String.valueOf(l.acquire(wait, TimeUnit.MILLISECONDS));
    }

    private String give(Actor actor, String client, String recipe, String path) throws Exception {
        Object lock = lock(client, recipe, path);
        if (lock instanceof InterProcessSemaphoreV2) {
            ((InterProcessSemaphoreV2) lock).returnAll(actor.leases.get(path).pop());
        } else {
            ((InterProcessLock) lock).release();
        }
        return "";
    }

    /** Workers that take a lock again and again. */
    private final class Load {
        private final List<Thread> workers = new ArrayList<>();
        private final AtomicLong rounds = new AtomicLong();
        private volatile boolean over;
        private volatile Throwable failed;

        Load(CuratorFramework client, String recipe, String path, int count) {
            for (int i = 0; i < count; i++) {
                boolean odd = i % 2 == 1;
                workers.add(new Thread(() -> {
                    try (Witness w = new Witness(witness)) {
                        while (!over) {
                            round(client, recipe, path, odd, w);
                            rounds.incrementAndGet();
                        }
                    } catch (Throwable e) {
                        failed = e;
                    }
                }));
            }
        }

        void start() {
            workers.forEach(Thread::start);
        }

        long stop() throws Exception {
            over = true;
            for (Thread t : workers) {
                t.join(60_000);
                Snippets.check(!t.isAlive(), "a worker is stuck");
            }
            if (failed != null) {
                throw new IllegalStateException(failed);
            }
            return rounds.get();
        }
    }

    private static void round(CuratorFramework c, String recipe, String path, boolean odd, Witness w) throws Exception {
        Snippets.Work alone = () -> {
            for (String p : path.split(",")) {
                w.tell("enter " + p + " 1 java");
            }
            for (String p : path.split(",")) {
                w.tell("leave " + p + " 1 java");
            }
        };
        Snippets.Work shared = () -> {
            w.tell("enter " + path + " shared java");
            w.tell("leave " + path + " shared java");
        };
        switch (recipe) {
            case "mutex":
                Snippets.mutex(c, path, alone);
                break;
            case "locker":
                Snippets.locker(c, path, alone);
                break;
            case "reentrant":
                Snippets.reentrant(c, path, alone);
                break;
            case "semaphore-mutex":
                Snippets.semaphoreMutex(c, path, alone);
                break;
            case "semaphore":
                if (odd) {
                    Snippets.leases(c, path, () -> {
                        w.tell("enter " + path + " 3 java");
                        w.tell("enter " + path + " 3 java");
                        Thread.sleep(LINGER);
                        w.tell("leave " + path + " 3 java");
                        w.tell("leave " + path + " 3 java");
                    });
                } else {
                    Snippets.semaphore(c, path, () -> {
                        w.tell("enter " + path + " 3 java");
                        Thread.sleep(LINGER);
                        w.tell("leave " + path + " 3 java");
                    });
                }
                break;
            case "read-write":
                if (odd) {
                    Snippets.write(c, path, alone);
                } else {
                    Snippets.read(c, path, shared);
                }
                break;
            case "latch":
            case "selector":
                Election election = Election.stand(c, recipe, path, "java");
                try {
                    election.led();
                    alone.run();
                } finally {
                    election.leave();
                }
                break;
            case "multi":
                String[] both = path.split(",");
                Snippets.multi(c, both[0], both[1], alone);
                break;
            default:
                throw new IllegalArgumentException("no recipe " + recipe);
        }
    }
}
