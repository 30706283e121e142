"""What watchdog sees of a volume: python3 watch.py PATH KEY"""
import os
import sys
import threading

from watchdog.events import FileSystemEventHandler
from watchdog.observers import Observer

watched, key = sys.argv[1:]


class Handler(FileSystemEventHandler):
    last = ""

    def read(self):
        try:
            with open(key) as file:
                content = file.read().strip()
        except OSError as error:
            return print("again", error, flush=True)
        if content != self.last:
            print("content", content, flush=True)
        self.last = content

    def on_any_event(self, event):
        name = os.path.basename(event.dest_path or event.src_path)
        print("event", event.event_type, name, flush=True)
        if event.event_type not in ("opened", "closed_no_write"):  # These are its own reads.
            self.read()


handler = Handler()
observer = Observer()
observer.schedule(handler, watched, recursive=False)
observer.start()
print("ready", flush=True)
handler.read()
threading.Event().wait()
