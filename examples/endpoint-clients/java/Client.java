// Follows one key of the local endpoint: java Client.java 127.0.0.1:7070 app.yaml
import java.io.IOException;
import java.net.URI;
import java.net.http.*;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.util.Iterator;

class Client {
    static final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    static String base, key;

    static HttpRequest.Builder to(String path) { return HttpRequest.newBuilder(URI.create(base + path)); }

    static <T> HttpResponse<T> ask(HttpRequest.Builder request, HttpResponse.BodyHandler<T> body) throws Exception {
        HttpResponse<T> answer = http.send(request.build(), body);
        if (answer.statusCode() != 200) throw new IOException(answer.statusCode() + " " + answer.body());
        return answer;
    }

    static void load() throws Exception {
        HttpResponse<String> answer = ask(to("/v1/config/" + key), BodyHandlers.ofString());
        String revision = answer.headers().firstValue("ETag").get().replace("\"", "");
        System.out.println(revision + " " + answer.body().strip()); // A program loads it here, and says how that went.
        String word = "{\"revision\": \"" + revision + "\", \"ok\": true}";
        ask(to("/v1/ack").POST(BodyPublishers.ofString(word)), BodyHandlers.ofString());
    }

    public static void main(String[] arguments) throws Exception {
        base = "http://" + arguments[0]; key = arguments[1];
        for (;; Thread.sleep(1_000)) {
            try { // What is there comes first, then each change, and a comment every 15 s.
                Iterator<String> lines = ask(to("/v1/events"), BodyHandlers.ofLines()).body().iterator();
                while (lines.hasNext()) if (lines.next().startsWith("data:")) load();
            } catch (IOException | java.io.UncheckedIOException error) {
                System.err.println("the endpoint is away: " + error.getMessage());
            }
        }
    }
}
