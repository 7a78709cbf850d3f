import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooDefs;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.client.ZKClientConfig;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;

/** Java's client proves itself by DIGEST-MD5: HOST:PORT. */
public class Sasl {
    static final CountDownLatch refused = new CountDownLatch(1);

    static ZooKeeper client(String servers, String section) throws Exception {
        ZKClientConfig config = new ZKClientConfig();
        config.setProperty(ZKClientConfig.LOGIN_CONTEXT_NAME_KEY, section);
        CountDownLatch up = new CountDownLatch(1);
        ZooKeeper zk = new ZooKeeper(servers, 10000, event -> {
            if (event.getState() == Watcher.Event.KeeperState.SaslAuthenticated) up.countDown();
            if (event.getState() == Watcher.Event.KeeperState.AuthFailed) { refused.countDown(); up.countDown(); }
        }, config);
        if (!up.await(20, TimeUnit.SECONDS)) throw new IllegalStateException(section + " is not proven");
        return zk;
    }

    public static void main(String[] args) throws Exception {
        Path jaas = Files.createTempFile("jaas", ".conf");
        StringBuilder text = new StringBuilder();
        for (String[] user : new String[][] {{"Bob", "bob", "se,cr\\\"et"}, {"Eve", "eve", "other"}, {"Wrong", "bob", "wrong"}}) {
            text.append(user[0] + " { org.apache.zookeeper.server.auth.DigestLoginModule required username=\"" + user[1] + "\" password=\"" + user[2] + "\"; };\n");
        }
        Files.writeString(jaas, text);
        System.setProperty("java.security.auth.login.config", jaas.toString());
        ZooKeeper bob = client(args[0], "Bob");
        ZooKeeper eve = client(args[0], "Eve");
        bob.create("/java", "1".getBytes(), Collections.singletonList(new ACL(ZooDefs.Perms.ALL, new Id("sasl", "bob"))), CreateMode.PERSISTENT);
        bob.getData("/java", false, null);
        try {
            eve.getData("/java", false, null);
            throw new IllegalStateException("eve has read it");
        } catch (KeeperException.NoAuthException expected) {
            System.out.println("refused: " + expected.getMessage());
        }
        ZooKeeper wrong = client(args[0], "Wrong");
        if (!refused.await(20, TimeUnit.SECONDS)) throw new IllegalStateException("a wrong password is let in");
        bob.close();
        eve.close();
        wrong.close();
        Files.delete(jaas);
        System.out.println("ok");
        System.exit(0);
    }
}
