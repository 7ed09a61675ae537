import { createHash, randomBytes } from "node:crypto";
import { createServer, get, type IncomingMessage, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { expect } from "chai";
import { Refused } from "#controller/cluster/refused.ts";
import { openBundleStore } from "#controller/updates/bundles.ts";
import { openBundleSender } from "#controller/updates/serve-bundle.ts";
import { eventually } from "../../../support/cluster.ts";
import { makeTempDir, type TempDir } from "../../../support/temp-dir.ts";

describe("bundles that a controller sends", () => {
  const bytes = randomBytes(16 * 2 ** 20);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  let dir: TempDir;
  let server: Server;
  let failures: unknown[];

  const start = async (stalledClientMs: number): Promise<void> => {
    dir = await makeTempDir("serve");
    failures = [];
    const store = openBundleStore({ folder: join(dir.path, "bundles"), isNeeded: () => false });
    await store.put(sha256, { offset: 0, size: bytes.length, data: bytes });
    const bundles = openBundleSender({ store, stalledClientMs });
    // The path is KEY/ID.
    server = createServer((request, response) => {
      const [, key = "", id = ""] = (request.url ?? "").split("/");
      bundles.send(key, id, response).catch((error: unknown) => {
        failures.push(error);
        if (error instanceof Refused && !response.headersSent) response.writeHead(error.status).end(error.code);
        else response.destroy();
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
  };
  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await dir.remove();
  });

  const ask = async (key: string, id = `${sha256}@0`): Promise<IncomingMessage> => {
    const sent = get({ port: (server.address() as AddressInfo).port, path: `/${key}/${id}`, agent: false });
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.on("error", () => undefined);
    return response;
  };

  it("begin at the requested offset, with their length", async () => {
    await start(30_000);
    for (const from of [0, 1, 5_000_000, bytes.length]) {
      const response = await ask("a", `${sha256}@${from}`);
      expect(response.headers["content-length"]).to.equal(String(bytes.length - from));
      expect((await buffer(response)).equals(bytes.subarray(from)), String(from)).to.equal(true);
    }
    expect(failures).to.deep.equal([]);
    for (const id of [sha256, `${sha256}@`, `${sha256}@-1`, `${sha256}@1x`, `${sha256}@${bytes.length + 1}`])
      expect((await ask("a", id)).statusCode, id).to.equal(400);
    expect((await ask("a", `${"0".repeat(64)}@0`)).statusCode).to.equal(404);
  });

  it("S-17: are at most two per key and thirty-two in all at a time", async () => {
    await start(30_000);
    const open = [await ask("key-0"), await ask("key-0")];
    const third = await ask("key-0");
    expect([third.statusCode, (await buffer(third)).toString()]).to.deep.equal([503, "API_BUSY"]);
    for (let index = 2; index < 32; index++) open.push(await ask(`key-${Math.floor(index / 2)}`));
    expect(open.map(({ statusCode }) => statusCode)).to.deep.equal(open.map(() => 200));
    expect((await ask("another")).statusCode).to.equal(503);
    open[0]?.destroy();
    await eventually(async () => (await ask("another")).statusCode === 200);
  });

  it("S-17: are cut off for a client that reads nothing", async () => {
    await start(200);
    const [idle] = [await ask("a"), await ask("a")];
    await eventually(async () => (await ask("a")).statusCode === 200);
    expect(await buffer(idle).catch(() => "broken off")).to.equal("broken off");
    expect(failures.every((error) => error instanceof Refused)).to.equal(true);
  });
});
