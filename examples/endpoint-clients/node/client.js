// Follows one key of the local endpoint: node client.js unix:/run/app/hotmap.sock app.yaml
const http = require("node:http");
const [address, key] = process.argv.slice(2);
const [host, port] = address.split(":");
const where = host === "unix" ? { socketPath: port } : { host, port };

function ask(method, path, body) {
  return new Promise((resolve, reject) => {
    const request = http.request({ ...where, method, path, timeout: 60_000 }, resolve);
    request.on("error", reject).on("timeout", () => request.destroy(new Error("nothing was said for a minute")));
    request.end(body && JSON.stringify(body));
  });
}
async function whole(answer) {
  let text = "";
  for await (const part of answer.setEncoding("utf8")) text += part;
  if (answer.statusCode !== 200) throw new Error(text.trim());
  return text;
}
async function load() {
  const answer = await ask("GET", "/v1/config/" + key);
  const text = await whole(answer);
  const revision = answer.headers.etag.replaceAll('"', "");
  console.log(revision, text.trim()); // A program loads it here, and says how that went.
  await whole(await ask("POST", "/v1/ack", { revision, ok: true }));
}

async function follow() {
  let rest = ""; // What is there comes first, then each change; a comment every 15 s keeps the time-out away.
  for await (const part of (await ask("GET", "/v1/events")).setEncoding("utf8")) {
    const lines = (rest + part).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("data:")) await load();
  }
}
const away = (error) => console.error("the endpoint is away:", error.message);
const start = () => follow().catch(away).finally(() => setTimeout(start, 1_000));
start();
