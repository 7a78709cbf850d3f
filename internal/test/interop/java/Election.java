import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;

/** One candidate in an election, which stands once. */
abstract class Election {
    static Election stand(CuratorFramework c, String kind, String path, String id) throws Exception {
        switch (kind) {
            case "latch":
                return new Latch(c, path, id, false);
            case "latch-slow": // a listener of it does not return before it is woken
                return new Latch(c, path, id, true);
            case "selector":
            case "selector-stubborn": // its function goes on when it is interrupted
            case "selector-failing": // its function throws
                return new Selector(c, path, id, kind);
            default:
                throw new IllegalArgumentException("no election " + kind);
        }
    }

    abstract Collection<Participant> participants() throws Exception;

    /** Returns once it leads. */
    abstract void led() throws Exception;

    abstract void leave() throws Exception;

    /** Whether it says that it leads. */
    abstract boolean leads();

    /** Lets a listener or a function go on that does not return by itself. */
    void wake() {}

    /** The ids in order, that of the leader with a star. */
    String ids() throws Exception {
        List<String> ids = new ArrayList<>();
        for (Participant p : participants()) {
            ids.add(p.getId() + (p.isLeader() ? "*" : ""));
        }
        return String.join(",", ids);
    }

    private static final class Latch extends Election {
        private final LeaderLatch latch;
        private final CountDownLatch woken = new CountDownLatch(1);

        Latch(CuratorFramework c, String path, String id, boolean slow) throws Exception {
            latch = new LeaderLatch(c, path, id);
            if (slow) {
                latch.addListener(new LeaderLatchListener() {
                    @Override
                    public void isLeader() {
                        try {
                            woken.await();
                        } catch (InterruptedException e) {
                            Thread.currentThread().interrupt();
                        }
                    }

                    @Override
                    public void notLeader() {}
                });
            }
            latch.start();
        }

        @Override
        boolean leads() {
            return latch.hasLeadership();
        }

        @Override
        void wake() {
            woken.countDown();
        }

        @Override
        Collection<Participant> participants() throws Exception {
            return latch.getParticipants();
        }

        @Override
        void led() throws Exception {
            latch.await();
        }

        @Override
        void leave() throws Exception {
            latch.close();
        }
    }

    private static final class Selector extends Election {
        private final CountDownLatch leads = new CountDownLatch(1);
        private final CountDownLatch over = new CountDownLatch(1);
        private final CountDownLatch returned = new CountDownLatch(1);
        private final LeaderSelector selector;

        Selector(CuratorFramework c, String path, String id, String kind) {
            selector = new LeaderSelector(c, path, new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework client) throws Exception {
                    leads.countDown();
                    try {
                        lead();
                    } finally {
                        returned.countDown();
                    }
                }

                private void lead() throws Exception {
                    switch (kind) {
                        case "selector-failing":
                            throw new IllegalStateException("it fails");
                        case "selector-stubborn":
                            while (over.getCount() > 0) {
                                try {
                                    over.await();
                                } catch (InterruptedException e) {
                                    // it goes on
                                }
                            }
                            break;
                        default:
                            over.await();
                    }
                }
            });
            selector.setId(id);
            selector.start();
        }

        @Override
        boolean leads() {
            return selector.hasLeadership();
        }

        @Override
        void wake() {
            over.countDown();
        }

        @Override
        Collection<Participant> participants() throws Exception {
            return selector.getParticipants();
        }

        @Override
        void led() throws Exception {
            leads.await();
        }

        @Override
        void leave() throws Exception {
            over.countDown();
            if (leads.getCount() == 0) {
                Snippets.check(returned.await(30, TimeUnit.SECONDS), "the selector goes on");
            }
            selector.close();
        }
    }
}
