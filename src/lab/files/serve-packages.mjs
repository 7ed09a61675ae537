/* oxlint-disable typescript/no-unsafe-assignment, typescript/no-unsafe-call, typescript/no-unsafe-member-access, typescript/no-unsafe-argument, typescript/no-unsafe-return -- plain JavaScript has no types */
// serve-packages.mjs ADDRESS PORT FOLDER   serves the files of one folder, read-only, on one address
//
// The lab starts this program by its path, in a cgroup of its own; it is plain JavaScript because it is never bundled.
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { basename, join } from "node:path";
import { pipeline } from "node:stream/promises";

const [address, port, folder] = process.argv.slice(2);

async function answer(request, response) {
  // The repository is flat, so only the last part of a path counts: no request reaches a file outside the folder.
  const name = basename(decodeURIComponent(new URL(request.url, "http://lab").pathname));
  const file = name === "" ? undefined : await stat(join(folder, name)).catch(() => undefined);
  if (!file?.isFile() || (request.method !== "GET" && request.method !== "HEAD")) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { "content-length": file.size, "last-modified": file.mtime.toUTCString() });
  if (request.method === "HEAD") response.end();
  else await pipeline(createReadStream(join(folder, name)), response);
}

createServer((request, response) => {
  answer(request, response).catch(() => response.destroy());
}).listen(Number(port), address);
