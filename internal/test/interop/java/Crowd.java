import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;

/** Owners that each take some of the same locks over and over, for a time. */
final class Crowd {
    private final List<CuratorFramework> clients;
    private final String way;
    private final String prefix;
    private final long end;
    private final int[] each;
    private long longest;
    private long last = System.nanoTime();
    private long stall;
    private Throwable failed;

    /** The ways are those of TestCrowdsBesideJava. */
    Crowd(List<CuratorFramework> clients, String way, String prefix, int owners, long millis) {
        this.clients = clients;
        this.way = way;
        this.prefix = prefix;
        end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
        each = new int[owners];
    }

    /** All rounds, least and most of an owner, longest wait and time without a grant in ms. */
    String run(String witness) throws Exception {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < each.length; i++) {
            int owner = i;
            threads.add(new Thread(() -> {
                try (Witness w = new Witness(witness)) {
                    Random random = new Random(owner);
                    while (System.nanoTime() < end) {
                        round(owner, random, w);
                    }
                } catch (Throwable e) {
                    failed = e;
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread t : threads) {
            t.join();
        }
        if (failed != null) {
            throw new IllegalStateException(failed);
        }
        int sum = 0;
        int least = Integer.MAX_VALUE;
        int most = 0;
        for (int n : each) {
            sum += n;
            least = Math.min(least, n);
            most = Math.max(most, n);
        }
        stall = Math.max(stall, System.nanoTime() - last);
        return sum + " " + least + " " + most + " " + longest / 1_000_000 + " " + stall / 1_000_000;
    }

    private void round(int owner, Random random, Witness w) throws Exception {
        CuratorFramework client = clients.get(owner % clients.size());
        TreeSet<Integer> set = new TreeSet<>();
        for (int n = way.equals("plain") ? 1 : 2 + random.nextInt(3); set.size() < n; ) {
            set.add(random.nextInt(25));
        }
        List<String> paths = new ArrayList<>();
        for (int m : set) {
            paths.add(String.format("%s%02d", prefix, m));
        }
        if (way.equals("reverse")) {
            Collections.reverse(paths);
        }
        List<InterProcessLock> all = new ArrayList<>();
        for (String path : paths) {
            all.add(new InterProcessMutex(client, path));
        }
        if (!way.equals("nested")) {
            all = Collections.singletonList(new InterProcessMultiLock(all));
        }
        long began = System.nanoTime();
        int had = 0;
        try {
            while (had < all.size() && all.get(had).acquire(Math.max(1, end - System.nanoTime()), TimeUnit.NANOSECONDS)) {
                had++;
            }
            if (had == all.size()) {
                granted(owner, began);
                for (String path : paths) {
                    w.tell("enter " + path + " 1 java");
                }
                w.tell("hold");
                for (String path : paths) {
                    w.tell("leave " + path + " 1 java");
                }
            }
        } finally {
            while (had > 0) {
                all.get(--had).release();
            }
        }
    }

    private synchronized void granted(int owner, long began) {
        long now = System.nanoTime();
        each[owner]++;
        longest = Math.max(longest, now - began);
        stall = Math.max(stall, now - last);
        last = now;
    }
}
