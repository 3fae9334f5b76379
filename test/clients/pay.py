"""Takes a payment with Python's standard library, and verifies the webhook that tells of its success.

Environment: API, API_KEY, API_SECRET, as in the guide. `verify.py` is the code of the guide to webhooks.
"""
import json
import os
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from verify import verify

API = os.environ['API'] + '/merchant/api'
arrived = queue.Queue()


class Hooks(BaseHTTPRequestHandler):
    def do_POST(self):
        raw_body = self.rfile.read(int(self.headers['Content-Length']))
        arrived.put((raw_body, self.headers))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def call(method, path, body=None, **headers):
    """Gives the status, the JSON and the headers of an answer, a refusal included."""
    data = None if body is None else json.dumps(body).encode()
    named = {name.replace('_', '-'): value for name, value in headers.items()}
    request = Request(API + path, data, {'Content-Type': 'application/json', **named}, method=method)
    try:
        with urlopen(request) as answer:
            return answer.status, json.load(answer), answer.headers
    except HTTPError as error:
        # urllib raises a refusal; the error is the answer, and has its body.
        with error:
            return error.code, json.load(error), error.headers


def refusal(status, answer):
    return {'status': status, 'code': answer['code']}


def is_refused(raw_body, headers, secret):
    try:
        verify(raw_body, headers, secret)
        return False
    except ValueError:
        return True


# Sign in. One token serves many requests.
_, signed_in, _ = call('POST', '/auth', {'scopes': ['pay', 'webhooks']},
                       X_API_Key=os.environ['API_KEY'], X_API_Secret=os.environ['API_SECRET'])
token = {'Authorization': 'Bearer ' + signed_in['data']['token']}

# Receive webhooks. The secret is shown once.
server = HTTPServer(('127.0.0.1', 0), Hooks)
threading.Thread(target=server.serve_forever, daemon=True).start()
hooks = {'url': f'http://127.0.0.1:{server.server_port}/hooks', 'events': ['payment_received']}
_, endpoint, _ = call('POST', '/webhooks', hooks, **token)
secret = endpoint['data']['secret']

# Ask the customer, and ask once more, as after an answer that was lost.
payment = {
    'amount': 2500.0,
    'customer_phone': '70 00 00 00',
    'payment_method': 'OperatorA',
    'reference': 'café 12 python',
    'description': 'Épicerie Traoré : thé, œufs à 2 500 F',
}
asked, made, _ = call('POST', '/pay', payment, Idempotency_Key='order-python', **token)
replayed, same, headers = call('POST', '/pay', payment, Idempotency_Key='order-python', **token)
repeated = call('POST', '/pay', payment, **token)
reference = made['data']['reference']

# Refusals come as JSON, too.
too_small = call('POST', '/pay', {**payment, 'reference': 'small-python', 'amount': 50.5}, **token)
as_text = call('POST', '/pay', {**payment, 'reference': 'text-python', 'amount': '2500'}, **token)
no_token = call('POST', '/pay', payment)

# Poll until the payment is final; the event comes by itself. A 5xx says nothing of the payment: ask again.
state = 'pending'
while state == 'pending':
    time.sleep(0.2)
    status, answer, _ = call('GET', '/payment/status/' + quote(reference, safe=''))
    if status < 500:
        state = answer['state']
raw_body, delivered = arrived.get()
event = verify(raw_body, delivered, secret)

print(json.dumps({
    'reference': reference,
    'asked': asked,
    'replayed': [replayed, headers['Idempotent-Replayed'], same['data']['reference']],
    'repeated': refusal(*repeated[:2]),
    'existing': repeated[1]['existing_transaction']['id'],
    'too_small': refusal(*too_small[:2]),
    'as_text': refusal(*as_text[:2]),
    'no_token': refusal(*no_token[:2]),
    'state': state,
    'event': {'id': event['id'], 'type': event['event'], 'header': delivered['X-Service-Event'],
              'transaction': event['data']['transaction_id'],
              'reference': event['data']['reference'], 'amount': event['data']['amount']},
    'altered_is_refused': is_refused(raw_body.replace(b'2500', b'2501', 1), delivered, secret),
    'rewritten_is_refused': is_refused(json.dumps(event).encode(), delivered, secret),
}))
