// The JDK's HTTP clients with their defaults. Its arguments: which one, the URL of the items.

import java.io.IOException;
import java.net.URI;
import java.net.URL;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import javax.net.ssl.HttpsURLConnection;

public class Items {
  static final String ITEM = "{\"title\":\"a\"}";

  public static void main(String[] args) throws Exception {
    System.out.println(args[0].equals("HttpClient") ? httpClient(args[1]) : urlConnection(args[1]));
  }

  static String httpClient(String url) throws IOException, InterruptedException {
    HttpClient client = HttpClient.newHttpClient();
    HttpRequest get = HttpRequest.newBuilder(URI.create(url + "?page=1")).build();
    int got = client.send(get, BodyHandlers.discarding()).statusCode();
    HttpRequest post =
        HttpRequest.newBuilder(URI.create(url))
            .header("content-type", "application/json")
            .POST(BodyPublishers.ofString(ITEM))
            .build();
    var made = client.send(post, BodyHandlers.ofString());
    return got + " " + made.statusCode() + " " + made.body();
  }

  static String urlConnection(String url) throws IOException {
    HttpsURLConnection get = (HttpsURLConnection) new URL(url + "?page=1").openConnection();
    int got = get.getResponseCode();
    get.getInputStream().readAllBytes();
    HttpsURLConnection post = (HttpsURLConnection) new URL(url).openConnection();
    post.setRequestMethod("POST");
    post.setRequestProperty("content-type", "application/json");
    post.setDoOutput(true);
    post.getOutputStream().write(ITEM.getBytes(StandardCharsets.UTF_8));
    byte[] text = post.getInputStream().readAllBytes();
    return got + " " + post.getResponseCode() + " " + new String(text, StandardCharsets.UTF_8);
  }
}
