<?php
// Sends bodies that are too large, with PHP's clients. Environment: API, TOKEN. Prints each answer.
ini_set('memory_limit', '512M');

const MEGABYTE = 1_000_000;

function headers(string ...$more): array
{
    return ['Content-Type: application/json', 'Authorization: Bearer ' . getenv('TOKEN'), ...$more];
}

/** curl asks with `Expect: 100-continue` before a large body, unless the header is emptied. */
function withCurl(string ...$more): Closure
{
    return function (string $url, string $body) use ($more): array {
        $curl = curl_init($url);
        curl_setopt_array($curl, [
            CURLOPT_POSTFIELDS => $body,
            CURLOPT_HTTPHEADER => headers(...$more),
            CURLOPT_RETURNTRANSFER => true,
        ]);
        $text = curl_exec($curl);
        if ($text === false) return [0, curl_error($curl)];
        return [curl_getinfo($curl, CURLINFO_RESPONSE_CODE), json_decode($text)];
    };
}

/** Without `ignore_errors` a refusal has no body here. */
function withStream(string $url, string $body): array
{
    $http = ['method' => 'POST', 'header' => headers(), 'content' => $body, 'ignore_errors' => true];
    $text = file_get_contents($url, false, stream_context_create(['http' => $http]));
    if ($text === false) return [0, error_get_last()];
    return [(int) explode(' ', $http_response_header[0])[1], json_decode($text)];
}

$senders = [
    'curl, Expect' => withCurl('Expect: 100-continue'),
    'curl, no Expect' => withCurl('Expect:'),
    'file_get_contents' => withStream(...),
];
$answers = [];
foreach ([['/merchant/api/pay', 2], ['/merchant/api/pay', 50], ['/graphql', 8]] as [$path, $megabytes]) {
    $body = str_repeat('a', $megabytes * MEGABYTE);
    foreach ($senders as $name => $send)
        $answers[] = [$name, $path, $megabytes, ...$send(getenv('API') . $path, $body)];
}
echo json_encode($answers), "\n";
