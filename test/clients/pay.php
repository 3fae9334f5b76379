<?php
// Takes a payment with PHP's curl, and verifies the webhook that tells of its success.
// Environment: API, API_KEY, API_SECRET, as in the guide. `verify.php` is the code of the guide to webhooks.
require 'verify.php';

/** Gives status, JSON and headers of an answer. With CURLOPT_FAILONERROR, a refusal would have no body. */
function call(string $method, string $path, ?array $body = null, array $headers = []): array
{
    static $curl = null;
    $curl ??= curl_init();
    $answered = [];
    curl_reset($curl);
    curl_setopt_array($curl, [
        CURLOPT_URL => getenv('API') . '/merchant/api' . $path,
        CURLOPT_CUSTOMREQUEST => $method,
        CURLOPT_HTTPHEADER => ['Content-Type: application/json', ...$headers],
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_HEADERFUNCTION => function ($_, string $line) use (&$answered): int {
            [$name, $value] = explode(':', $line, 2) + [1 => ''];
            $answered[strtolower($name)] = trim($value);
            return strlen($line);
        },
    ]);
    if ($body !== null) curl_setopt($curl, CURLOPT_POSTFIELDS, json_encode($body, JSON_THROW_ON_ERROR));
    $text = curl_exec($curl);
    if ($text === false) throw new Exception(curl_error($curl));
    $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
    return [$status, json_decode($text, true, flags: JSON_THROW_ON_ERROR), $answered];
}

/** Waits up to half a second for a webhook, and answers it. A shop does this in a page of its site. */
function receive($server): ?array
{
    $connection = @stream_socket_accept($server, 0.5);
    if ($connection === false) return null;
    fgets($connection);
    $headers = [];
    while (($line = trim(fgets($connection))) !== '') {
        [$name, $value] = explode(':', $line, 2);
        $headers[strtolower($name)] = trim($value);
    }
    $rawBody = stream_get_contents($connection, (int) $headers['content-length']);
    fwrite($connection, "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
    fclose($connection);
    return [$rawBody, $headers];
}

function refusal(array $answer): array
{
    return ['status' => $answer[0], 'code' => $answer[1]['code']];
}

function isRefused(string $rawBody, array $headers, string $secret): bool
{
    try {
        verify($rawBody, $headers, $secret);
        return false;
    } catch (Exception) {
        return true;
    }
}

// Sign in. One token serves many requests.
$pair = ['X-API-Key: ' . getenv('API_KEY'), 'X-API-Secret: ' . getenv('API_SECRET')];
[, $signedIn] = call('POST', '/auth', ['scopes' => ['pay', 'webhooks']], $pair);
$token = 'Authorization: Bearer ' . $signedIn['data']['token'];

// Receive webhooks. The secret is shown once.
$server = stream_socket_server('tcp://127.0.0.1:0');
$url = 'http://' . stream_socket_get_name($server, false) . '/hooks';
[, $endpoint] = call('POST', '/webhooks', ['url' => $url, 'events' => ['payment_received']], [$token]);
$secret = $endpoint['data']['secret'];

// Ask the customer, and ask once more, as after an answer that was lost.
$payment = [
    'amount' => 2500.0,
    'customer_phone' => '70 00 00 00',
    'payment_method' => 'OperatorA',
    'reference' => 'café 12 php',
    'description' => 'Épicerie Traoré : thé, œufs à 2 500 F',
];
[$asked, $made] = call('POST', '/pay', $payment, [$token, 'Idempotency-Key: order-php']);
[$replayed, $same, $headers] = call('POST', '/pay', $payment, [$token, 'Idempotency-Key: order-php']);
$repeated = call('POST', '/pay', $payment, [$token]);
$reference = $made['data']['reference'];

// Refusals come as JSON, too.
$tooSmall = call('POST', '/pay', ['reference' => 'small-php', 'amount' => 50.5] + $payment, [$token]);
$asText = call('POST', '/pay', ['reference' => 'text-php', 'amount' => '2500'] + $payment, [$token]);
$noToken = call('POST', '/pay', $payment);

// Poll until the payment is final; the event comes by itself. A 5xx says nothing of the payment: ask again.
$delivery = null;
do {
    $delivery ??= receive($server);
    [$status, $answer] = call('GET', '/payment/status/' . rawurlencode($reference));
    $state = $status < 500 ? $answer['state'] : 'pending';
} while ($state === 'pending');
while ($delivery === null) $delivery = receive($server);
[$rawBody, $delivered] = $delivery;
$event = verify($rawBody, $delivered, $secret);

echo json_encode([
    'reference' => $reference,
    'asked' => $asked,
    'replayed' => [$replayed, $headers['idempotent-replayed'] ?? null, $same['data']['reference']],
    'repeated' => refusal($repeated),
    'existing' => $repeated[1]['existing_transaction']['id'],
    'too_small' => refusal($tooSmall),
    'as_text' => refusal($asText),
    'no_token' => refusal($noToken),
    'state' => $state,
    'event' => [
        'id' => $event['id'],
        'type' => $event['event'],
        'header' => $delivered['x-service-event'],
        'transaction' => $event['data']['transaction_id'],
        'reference' => $event['data']['reference'],
        'amount' => $event['data']['amount'],
    ],
    'altered_is_refused' => isRefused(str_replace('2500', '2501', $rawBody), $delivered, $secret),
    'rewritten_is_refused' => isRefused(json_encode($event, JSON_PRETTY_PRINT), $delivered, $secret),
]), "\n";
