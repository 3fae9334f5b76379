import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.net.httpserver.Headers;
import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.regex.Pattern;

/**
 * Takes a payment with the HTTP client of the JDK as it comes, and verifies the webhook that tells of its
 * success.
 * Environment: API, API_KEY, API_SECRET, as in the guide. `Verify` holds the code of the guide to webhooks.
 */
class Pay {
    record Delivery(byte[] rawBody, Headers headers) {}

    static final HttpClient client = HttpClient.newHttpClient();

    /** Sends a request; a refusal comes back like any other answer. */
    static HttpResponse<String> call(String method, String path, String body, String... headers)
            throws Exception {
        var request = HttpRequest.newBuilder(URI.create(System.getenv("API") + "/merchant/api" + path))
            .header("Content-Type", "application/json")
            .method(method, HttpRequest.BodyPublishers.ofString(body));
        if (headers.length > 0) request.headers(headers);
        return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
    }

    /** The first field of this name. A real program reads JSON with a library: the JDK has none. */
    static String field(String json, String name) {
        var found = Pattern.compile('"' + name + "\":\\s*(?:\"([^\"]*)\"|([^,}\\s]+))").matcher(json);
        if (!found.find()) throw new IllegalArgumentException("no " + name + " in " + json);
        return found.group(1) == null ? found.group(2) : found.group(1);
    }

    static String payment(String reference, Object amount) {
        return "{\"amount\":" + amount + ",\"reference\":\"" + reference + "\""
            + ",\"customer_phone\":\"70 00 00 00\",\"payment_method\":\"OperatorA\""
            + ",\"description\":\"Épicerie Traoré : thé, œufs à 2 500 F\"}";
    }

    static String refusal(HttpResponse<String> answer) {
        return "{\"status\":" + answer.statusCode() + ",\"code\":\"" + field(answer.body(), "code") + "\"}";
    }

    static boolean isRefused(String body, Headers headers, String secret) throws Exception {
        try {
            Verify.verify(body.getBytes(UTF_8), headers::getFirst, secret);
            return false;
        } catch (java.security.SignatureException refused) {
            return true;
        }
    }

    public static void main(String[] args) throws Exception {
        // Sign in. One token serves many requests.
        var signedIn = call("POST", "/auth", "{\"scopes\":[\"pay\",\"webhooks\"]}",
            "X-API-Key", System.getenv("API_KEY"), "X-API-Secret", System.getenv("API_SECRET"));
        String[] token = { "Authorization", "Bearer " + field(signedIn.body(), "token") };

        // Receive webhooks. The secret is shown once.
        BlockingQueue<Delivery> arrived = new LinkedBlockingQueue<>();
        var server = HttpServer.create(new InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0), 0);
        server.createContext("/hooks", exchange -> {
            arrived.add(new Delivery(exchange.getRequestBody().readAllBytes(), exchange.getRequestHeaders()));
            exchange.sendResponseHeaders(204, -1);
            exchange.close();
        });
        server.start();
        var url = "http://127.0.0.1:" + server.getAddress().getPort() + "/hooks";
        var endpoint = call("POST", "/webhooks",
            "{\"url\":\"" + url + "\",\"events\":[\"payment_received\"]}", token);
        var secret = field(endpoint.body(), "secret");

        // Ask the customer, and ask once more, as after an answer that was lost.
        String[] keyed = { token[0], token[1], "Idempotency-Key", "order-java" };
        var asked = call("POST", "/pay", payment("café 12 java", 2500.0), keyed);
        var replayed = call("POST", "/pay", payment("café 12 java", 2500.0), keyed);
        var repeated = call("POST", "/pay", payment("café 12 java", 2500.0), token);
        var reference = field(asked.body(), "reference");

        // Refusals come as JSON, too.
        var tooSmall = call("POST", "/pay", payment("small-java", 50.5), token);
        var asText = call("POST", "/pay", payment("text-java", "\"2500\""), token);
        var noToken = call("POST", "/pay", payment("café 12 java", 2500.0));

        // Poll until the payment is final; the event comes by itself. A 5xx says nothing of it: ask again.
        // URLEncoder writes a form, where a space is `+`; in a path it is `%20`.
        var path = "/payment/status/" + URLEncoder.encode(reference, UTF_8).replace("+", "%20");
        var state = "pending";
        while (state.equals("pending")) {
            Thread.sleep(200);
            var status = call("GET", path, "");
            if (status.statusCode() < 500) state = field(status.body(), "state");
        }
        var delivery = arrived.take();
        var headers = delivery.headers();
        var event = Verify.verify(delivery.rawBody(), headers::getFirst, secret);
        server.stop(0);

        System.out.println("{\"reference\":\"" + reference + "\",\"asked\":" + asked.statusCode()
            + ",\"replayed\":[" + replayed.statusCode() + ",\""
            + replayed.headers().firstValue("Idempotent-Replayed").orElse("") + "\",\""
            + field(replayed.body(), "reference") + "\"]"
            + ",\"repeated\":" + refusal(repeated)
            + ",\"existing\":" + field(repeated.body(), "id")
            + ",\"too_small\":" + refusal(tooSmall)
            + ",\"as_text\":" + refusal(asText)
            + ",\"no_token\":" + refusal(noToken)
            + ",\"state\":\"" + state + "\""
            + ",\"event\":{\"id\":\"" + field(event, "id") + "\",\"type\":\"" + field(event, "event")
            + "\",\"header\":\"" + headers.getFirst("X-Service-Event")
            + "\",\"transaction\":" + field(event, "transaction_id")
            + ",\"reference\":\"" + field(event, "reference")
            + "\",\"amount\":" + field(event, "amount") + "}"
            + ",\"altered_is_refused\":" + isRefused(event.replace("2500", "2501"), headers, secret)
            + ",\"rewritten_is_refused\":" + isRefused(event.replace(",", ", "), headers, secret) + "}");
    }
}
