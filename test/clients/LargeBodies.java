import static java.nio.charset.StandardCharsets.UTF_8;

import java.net.HttpURLConnection;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.Map;

/** Sends bodies that are too large, with both clients of the JDK. Environment: API, TOKEN. */
class LargeBodies {
    interface Sender {
        String send(URI address, byte[] body) throws Exception;
    }

    static final int MEGABYTE = 1_000_000;
    static {
        System.setProperty("jdk.httpclient.allowRestrictedHeaders", "connection");
    }

    static final String TOKEN = "Bearer " + System.getenv("TOKEN");

    /** One client, as merchants have it: a connection that is kept carries the next request. */
    static final HttpClient client = HttpClient.newHttpClient();

    static Sender withHttpClient(String... more) {
        return (address, body) -> {
            var request = HttpRequest.newBuilder(address)
                .header("Content-Type", "application/json")
                .header("Authorization", TOKEN)
                .POST(HttpRequest.BodyPublishers.ofByteArray(body));
            if (more.length > 0) request.headers(more);
            var answer = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
            return answer.statusCode() + "," + answer.body();
        };
    }

    /** A refusal is read from the error stream. With a length set before, the body is not buffered. */
    static String withUrlConnection(URI address, byte[] body) throws Exception {
        var connection = (HttpURLConnection) address.toURL().openConnection();
        connection.setRequestMethod("POST");
        connection.setRequestProperty("Content-Type", "application/json");
        connection.setRequestProperty("Authorization", TOKEN);
        connection.setRequestProperty("Connection", "close");
        connection.setDoOutput(true);
        connection.setFixedLengthStreamingMode(body.length);
        try (var out = connection.getOutputStream()) {
            out.write(body);
        }
        var status = connection.getResponseCode();
        return status + "," + new String(connection.getErrorStream().readAllBytes(), UTF_8);
    }

    record Try(String path, int megabytes) {}

    public static void main(String[] args) throws Exception {
        Map<String, Sender> senders = new LinkedHashMap<>();
        senders.put("HttpClient", withHttpClient());
        senders.put("HttpClient, close", withHttpClient("Connection", "close"));
        senders.put("HttpURLConnection", LargeBodies::withUrlConnection);
        var pay = "/merchant/api/pay";
        Try[] tries = { new Try(pay, 2), new Try(pay, 50), new Try("/graphql", 8) };
        var answers = new ArrayList<String>();
        for (var one : tries) {
            var address = URI.create(System.getenv("API") + one.path);
            for (var sender : senders.entrySet()) {
                var told = sender.getValue().send(address, new byte[one.megabytes * MEGABYTE]);
                var names = "\"" + sender.getKey() + "\",\"" + one.path + "\"";
                answers.add("[" + names + "," + one.megabytes + "," + told + "]");
            }
        }
        System.out.println(answers);
    }
}
