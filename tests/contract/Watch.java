// What the JDK's WatchService sees of a volume: java Watch.java PATH KEY
import java.io.IOException;
import java.nio.file.*;
import static java.nio.file.StandardWatchEventKinds.*;

class Watch {
    static Path key;
    static String last = "";

    static void read() {
        try {
            String content = Files.readString(key).strip();
            if (!content.equals(last)) System.out.println("content " + content);
            last = content;
        } catch (IOException error) {
            System.out.println("again " + error);
        }
    }

    public static void main(String[] arguments) throws Exception {
        Path watched = Path.of(arguments[0]);
        key = Path.of(arguments[1]);
        WatchService service = FileSystems.getDefault().newWatchService();
        // A directory only: of a file it cannot be asked.
        watched.register(service, ENTRY_CREATE, ENTRY_MODIFY, ENTRY_DELETE);
        System.out.println("ready");
        read();
        for (;;) {
            WatchKey events = service.take();
            for (WatchEvent<?> event : events.pollEvents())
                System.out.println("event " + event.kind() + " " + event.context());
            read();
            if (!events.reset()) System.out.println("event INVALID -");
        }
    }
}
