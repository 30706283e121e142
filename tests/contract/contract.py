"""Swaps a volume as a kubelet does and as hotmap does, and compares what watchers of other languages see of it.

Called by scripts/contract, which prepares what is needed. Two passes for each writer: one swap at a time, each waited for
until every watcher of the directory has read it; then as many as fast as they come, of which each has to read the last.
"""
import argparse
import collections
import os
import queue
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

# How long is waited for what has to come. What has not come by then is missed.
PATIENCE = 60.0
# It gathers events and looks for itself what has changed: what it tells of one swap depends on when the next one comes.
GATHERS = {"Node chokidar"}
# The names of projections, which are all different.
REVISION = re.compile(r"^\.\.\d{4}_\d\d_.*")


class Kubelet:
    """The system calls of a kubelet's writer, in its order."""

    name = "kubelet"

    def __init__(self, directory):
        self.directory = directory

    def swap(self, content):
        files = {"app.yaml": content, "site": "unchanged"}
        data = os.path.join(self.directory, "..data")
        old = os.readlink(data) if os.path.lexists(data) else None
        stamp = time.strftime("..%Y_%m_%d_%H_%M_%S.", time.gmtime())
        new = os.path.basename(tempfile.mkdtemp(prefix=stamp + str(random.randrange(10**9)), dir=self.directory))
        os.chmod(os.path.join(self.directory, new), 0o755)
        for key, value in files.items():
            path = os.path.join(self.directory, new, key)
            with open(path, "w") as file:
                file.write(value)
            os.chmod(path, 0o644)
        staged = os.path.join(self.directory, "..data_tmp")
        os.symlink(new, staged)
        os.rename(staged, data)
        for key in files:
            link = os.path.join(self.directory, key)
            if not os.path.lexists(link):
                os.symlink(os.path.join("..data", key), link)
        if old:
            shutil.rmtree(os.path.join(self.directory, old))

    def end(self):
        pass


class Hotmap:
    """hotmap-volume, in a process of its own."""

    name = "hotmap"

    def __init__(self, directory, program):
        self.process = subprocess.Popen(
            [program, directory], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def swap(self, content):
        self.process.stdin.write(content + "\n")
        self.process.stdin.flush()
        if not self.process.stdout.readline():
            sys.exit("contract: hotmap's writer has ended")

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Watcher:
    """A program that says what it sees, line by line."""

    def __init__(self, name, command, watched, key):
        self.name, self.is_of_file = name, watched == key
        self.process = subprocess.Popen(
            command + [watched, key], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, start_new_session=True
        )
        self.lines = queue.Queue()
        self.events = collections.Counter()
        self.contents, self.again, self.errors, self.missed = 0, 0, [], 0
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put(None)

    def take(self, timeout):
        line = self.lines.get(timeout=timeout)
        if line is None:
            sys.exit(f"contract: {self.name} has ended")
        word, _, rest = line.partition(" ")
        if word == "event":
            kind, _, name = rest.partition(" ")
            self.events[kind + " " + ("REVISION" if REVISION.match(name) else name)] += 1
        elif word == "content":
            self.contents += 1
        elif word == "again":
            self.again += 1
        elif word == "error":
            self.errors.append(rest)
        return line

    def wait_for(self, line):
        """Whether this line comes in time."""
        deadline = time.monotonic() + PATIENCE
        try:
            while self.take(max(0, deadline - time.monotonic())) != line:
                pass
            return True
        except queue.Empty:
            return False

    def drain(self):
        """Takes what has come, and returns whether that was anything."""
        has_any = False
        try:
            while True:
                self.take(0)
                has_any = True
        except queue.Empty:
            return has_any

    def end(self):
        os.killpg(self.process.pid, 9)
        self.process.wait()


def drain(watchers):
    """What comes after the last reading belongs to that swap: waits until nobody has said anything for a second."""
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 1:
        if any([watcher.drain() for watcher in watchers]):
            quiet_since = time.monotonic()
        time.sleep(0.05)


def watch_one_writer(writer, directory, commands, swaps):
    """Returns a row for each watcher."""
    key = os.path.join(directory, "app.yaml")
    writer.swap("0")
    watchers = [Watcher(name, command, directory, key) for name, command in commands.items()]
    others = [Watcher(name, command, key, key) for name, command in commands.items() if name != "JDK WatchService"]
    try:
        for watcher in watchers + others:
            if not (watcher.wait_for("ready") and watcher.wait_for("content 0")):
                sys.exit(f"contract: {watcher.name} does not begin")
        for number in range(1, swaps + 1):
            writer.swap(str(number))
            for watcher in watchers:
                if not watcher.wait_for(f"content {number}"):
                    watcher.missed += 1
        drain(watchers + others)
        rows = {
            watcher.name: {"missed": watcher.missed, "events": dict(watcher.events), "of_file": None} for watcher in watchers
        }
        for watcher in others:
            rows[watcher.name]["of_file"] = watcher.contents - 1
        for watcher in watchers:
            watcher.contents = 0
        for number in range(swaps + 1, 2 * swaps + 1):
            writer.swap(str(number))
        for watcher in watchers:
            rows[watcher.name]["last"] = watcher.wait_for(f"content {2 * swaps}")
            rows[watcher.name]["burst"] = watcher.contents
            rows[watcher.name]["again"] = watcher.again
            rows[watcher.name]["errors"] = watcher.errors
        return rows
    finally:
        for watcher in watchers + others:
            watcher.end()
        writer.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--swaps", type=int, default=1000)
    parser.add_argument("--hotmap", required=True, help="the example `swaps` of hotmap-volume")
    parser.add_argument("--watcher", action="append", required=True, metavar="NAME=COMMAND")
    arguments = parser.parse_args()
    commands = {}
    for watcher in arguments.watcher:
        name, _, command = watcher.partition("=")
        commands[name] = command.split(" ")
    rows = {}
    for make in (Kubelet, lambda directory: Hotmap(directory, arguments.hotmap)):
        with tempfile.TemporaryDirectory(prefix="hotmap-contract-") as parent:
            directory = os.path.join(parent, "volume")
            os.mkdir(directory)
            writer = make(directory)
            rows[writer.name] = watch_one_writer(writer, directory, commands, arguments.swaps)
    return show(rows, commands, arguments.swaps)


def show(rows, commands, swaps):
    """Prints the table, and returns whether the contract was kept."""
    is_kept = True
    print(f"| watcher of the directory | writer | swaps seen of {swaps} | events a swap | {swaps} at full speed: contents read | the last one |")
    print("|---|---|---|---|---|---|")
    for name in commands:
        for writer, of_writer in rows.items():
            row = of_writer[name]
            per_swap = sum(row["events"].values()) / swaps
            last = "yes" if row["last"] else "NO"
            print(f"| {name} | {writer} | {swaps - row['missed']} | {per_swap:.1f} | {row['burst']} | {last} |")
            is_kept &= row["last"] and row["missed"] == 0 and not row["errors"]
            for error in row["errors"]:
                print(f"contract: {name}: {error}", file=sys.stderr)
    print()
    print("| watcher of the file | swaps seen: kubelet | hotmap |")
    print("|---|---|---|")
    for name in commands:
        counts = [of_writer[name]["of_file"] for of_writer in rows.values()]
        if None not in counts:
            print(f"| {name} | {counts[0]} | {counts[1]} |")
    print()
    for name in commands:
        kinds = [{kind for kind, count in of_writer[name]["events"].items() if count * 2 > swaps} for of_writer in rows.values()]
        print(f"{name}: {', '.join(sorted(kinds[0]))}")
        if kinds[0] != kinds[1] and name not in GATHERS:
            print(f"contract: {name} tells the writers apart: {sorted(kinds[0] ^ kinds[1])}", file=sys.stderr)
            is_kept = False
    return is_kept


sys.exit(0 if main() else 1)
