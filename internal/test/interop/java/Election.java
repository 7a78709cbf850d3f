import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;

/** One candidate in an election, which stands once. */
abstract class Election {
    static Election stand(CuratorFramework c, String kind, String path, String id) throws Exception {
        switch (kind) {
            case "latch":
                return new Latch(c, path, id);
            case "selector":
                return new Selector(c, path, id);
            default:
                throw new IllegalArgumentException("no election " + kind);
        }
    }

    abstract Collection<Participant> participants() throws Exception;

    /** Returns once it leads. */
    abstract void led() throws Exception;

    abstract void leave() throws Exception;

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

        Latch(CuratorFramework c, String path, String id) throws Exception {
            latch = new LeaderLatch(c, path, id);
            latch.start();
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

        Selector(CuratorFramework c, String path, String id) {
            selector = new LeaderSelector(c, path, new LeaderSelectorListenerAdapter() {
                @Override
                public void takeLeadership(CuratorFramework client) throws Exception {
                    leads.countDown();
                    over.await();
                    returned.countDown();
                }
            });
            selector.setId(id);
            selector.start();
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
