"""`hotmap up` in a directory of its own, a client of it, and what it has of the kernel: for the scripts that measure."""
import base64
import collections
import glob
import http.client
import json
import os
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

PATIENCE_S = 600


class Instance:
    """`hotmap up` in a temporary directory, and a client of it."""

    def __init__(self, hotmap, home, flags):
        self.hotmap, self.home, self.data = hotmap, home, f"{home}/data"
        self.log = open(f"{home}/log", "w+", encoding="utf-8")
        command = [hotmap, "up", "--data-dir", self.data, "--listen", "127.0.0.1:0", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, text=True)
        if not any("is ready" in line for line in self.process.stdout):
            self.log.seek(0)
            sys.exit(self.log.read())
        # From here on it may print what it likes.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        with open(f"{self.data}/id", encoding="utf-8") as file:
            self.id = file.read().strip()
        self.connect_from(f"{self.data}/admin.kubeconfig")

    def connect_from(self, kubeconfig):
        read = ["kubectl", "config", "view", "--raw", "-o", "json", "--kubeconfig", kubeconfig]
        config = json.loads(subprocess.run(read, check=True, stdout=subprocess.PIPE).stdout)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.server = urllib.parse.urlsplit(cluster["server"])
        authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
        self.tls = ssl.create_default_context(cadata=authority)
        self.headers = {"Content-Type": "application/json"}
        if "token" in user:
            self.headers["Authorization"] = f"Bearer {user['token']}"
        else:
            pair = f"{self.home}/client.pem"
            with open(pair, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                for part in ["client-certificate-data", "client-key-data"]:
                    file.write(base64.b64decode(user[part]).decode())
            self.tls.load_cert_chain(pair)
        self.connection = self.connect()

    def connect(self):
        return http.client.HTTPSConnection(self.server.hostname, self.server.port, context=self.tls)

    def call(self, method, path, body=None, kind="application/json"):
        request = method, path, json.dumps(body) if body is not None else None, self.headers | {"Content-Type": kind}
        try:
            self.connection.request(*request)
            answer = self.connection.getresponse()
        except ConnectionError:
            # The server ends connections that idle; nothing was done with a request that finds its end.
            self.connection.close()
            self.connection.request(*request)
            answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {text.decode()}")
        return json.loads(text)

    def watch(self, path, hear):
        """Calls `hear(time, event)` for each event, in a thread, from now on."""
        connection = self.connect()
        connection.request("GET", f"{path}?watch=1", headers=self.headers)
        stream = connection.getresponse()

        def read():
            try:
                for line in stream:
                    hear(time.perf_counter(), json.loads(line))
            except (OSError, ValueError, http.client.HTTPException):
                return  # The instance has ended.

        threading.Thread(target=read, daemon=True).start()

    def end(self):
        self.process.terminate()
        self.process.wait()
        subprocess.run([self.hotmap, "down", "--purge", "--data-dir", self.data], check=True, stdout=subprocess.DEVNULL)


def text_of(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def memory_kib(pid):
    lines = dict(line.split(":", 1) for line in text_of(f"/proc/{pid}/smaps_rollup").splitlines()[1:])
    return {name: int(lines[name].split()[0]) for name in ["Rss", "Anonymous", "Pss_Anon", "Private_Dirty"]}


def kernel_objects(instance):
    """What an instance has of the kernel."""
    pid, counted = instance.process.pid, collections.Counter()
    for other in os.listdir("/proc"):
        if other.isdigit() and int(other) != os.getpid():
            known = text_of(f"/proc/{other}/cmdline") + text_of(f"/proc/{other}/cgroup")
            counted["processes"] += instance.data in known or f"hotmap-{instance.id}" in known
    # Its own mount namespace, and this one.
    for whose in [str(pid), "self"]:
        lines = text_of(f"/proc/{whose}/mountinfo").splitlines()
        counted[f"mounts seen by {'it' if whose != 'self' else 'us'}"] = sum(
            instance.data in line or instance.id in line for line in lines
        )
    counted["network links"] = sum(instance.id in link for link in os.listdir("/sys/class/net"))
    cgroups = glob.glob(f"/sys/fs/cgroup/**/hotmap-{instance.id}", recursive=True)
    counted["cgroups"] = sum(1 for root in cgroups for _ in os.walk(root))
    counted["files"] = sum(len(files) + len(directories) for _, directories, files in os.walk(instance.data))
    counted["files in /run"] = sum(instance.id in name for at in ["/run", "/run/hotmap", "/run/netns"] if os.path.isdir(at) for name in os.listdir(at))
    counted["file descriptors"] = len(os.listdir(f"/proc/{pid}/fd"))
    return dict(counted)


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))]


def until(holds, what, seconds=PATIENCE_S):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"{what}: not within {seconds} s")
        # Seldom: the questions must not be what keeps the server busy.
        time.sleep(0.25)


def activity(pid):
    """Context switches of each kind of thread so far, and CPU milliseconds of all."""
    switches = collections.Counter()
    for task in os.listdir(f"/proc/{pid}/task"):
        status = text_of(f"/proc/{pid}/task/{task}/status")
        name = text_of(f"/proc/{pid}/task/{task}/comm").strip()
        switches[name] += sum(int(line.split()[1]) for line in status.splitlines() if line.startswith("voluntary_ctxt_switches"))
    fields = text_of(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    return switches, 10 * (int(fields[11]) + int(fields[12]))
