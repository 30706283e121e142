"""Follows one key of the local endpoint: python3 client.py unix:/run/app/hotmap.sock app.yaml"""
import http.client
import json
import socket
import sys
import time

address, key = sys.argv[1:]


def ask(method, path, body=None):
    connection = http.client.HTTPConnection(address if ":" in address[5:] else "localhost", timeout=60)
    if address.startswith("unix:"):
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(address[5:])
    connection.request(method, path, json.dumps(body) if body else None)
    answer = connection.getresponse()
    if answer.status != 200:
        raise OSError(answer.read().decode().strip())
    return answer


def load():
    answer = ask("GET", "/v1/config/" + key)
    revision = answer.getheader("ETag").strip('"')
    print(revision, answer.read().decode().strip(), flush=True)  # A program loads it here, and says how that went.
    ask("POST", "/v1/ack", {"revision": revision, "ok": True}).read()


while True:
    try:
        # What is there comes first, then each change; a comment every 15 s keeps the time-out away.
        for line in ask("GET", "/v1/events"):
            if line.startswith(b"data:"):
                load()
    except (OSError, http.client.HTTPException) as error:
        print("the endpoint is away:", error, file=sys.stderr)
    time.sleep(1)
