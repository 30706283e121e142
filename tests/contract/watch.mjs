// What chokidar sees of a volume: node watch.mjs PATH KEY
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import chokidar from "chokidar";

const [watched, key] = process.argv.slice(2);
let last = "";

function read() {
  try {
    const content = readFileSync(key, "utf8").trim();
    if (content !== last) console.log("content", content);
    last = content;
  } catch (error) {
    console.log("again", error.code);
  }
}

// What it tells before it is ready is what is there.
const watcher = chokidar.watch(watched).on("ready", () => {
  watcher.on("all", (event, path) => {
    console.log("event", event, basename(path));
    read();
  });
  console.log("ready");
  read();
});
watcher.on("error", (error) => console.log("error", error.message));
