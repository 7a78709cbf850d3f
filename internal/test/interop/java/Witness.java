import java.io.BufferedReader;
import java.io.Closeable;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** One worker's line to the witness, who belongs to neither side. */
final class Witness implements Closeable {
    private final Socket socket;
    private final BufferedReader in;

    Witness(String addr) throws IOException {
        int colon = addr.lastIndexOf(':');
        socket = new Socket(addr.substring(0, colon), Integer.parseInt(addr.substring(colon + 1)));
        socket.setTcpNoDelay(true);
        in = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
    }

    /** Tells, and returns once it has been noted. */
    void tell(String line) throws IOException {
        socket.getOutputStream().write((line + "\n").getBytes(StandardCharsets.UTF_8));
        String answer = in.readLine();
        if (!"noted".equals(answer)) {
            throw new IOException("witness: " + answer);
        }
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
