"""Sends bodies that are too large, with Python's clients, which read the answer only after they have written.

Environment: API, TOKEN. Prints the status and the body of each answer.
"""
import http.client
import json
import os
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

MEGABYTE = 10 ** 6
API = os.environ['API']
HEADERS = {'Content-Type': 'application/json', 'Authorization': 'Bearer ' + os.environ['TOKEN']}


def with_urllib(path, body):
    try:
        with urlopen(Request(API + path, body, HEADERS)) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def with_http_client(connection_header):
    def send(path, body):
        connection = http.client.HTTPConnection(urlsplit(API).netloc)
        connection.request('POST', path, body, {**HEADERS, 'Connection': connection_header})
        answer = connection.getresponse()
        told = answer.status, json.loads(answer.read())
        connection.close()
        return told
    return send


senders = {
    'urllib': with_urllib,
    'http.client, close': with_http_client('close'),
    'http.client, keep-alive': with_http_client('keep-alive'),
}
print(json.dumps([
    [name, path, megabytes, *send(path, b'a' * megabytes * MEGABYTE)]
    for path, megabytes in (('/merchant/api/pay', 2), ('/merchant/api/pay', 50), ('/graphql', 8))
    for name, send in senders.items()
]))
