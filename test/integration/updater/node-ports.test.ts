import { createHash } from "node:crypto";
import { readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { lockFolder } from "#base/lock-folder.ts";
import { nodePorts } from "#updater/node-ports.ts";
import type { Ports } from "#updater/ports.ts";
import { hangLimit } from "#support/limit.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

describe("the updater's access to its node", () => {
  let folder: TempDir;
  let stop: AbortController;
  let ports: Ports;
  beforeEach(async () => {
    folder = await makeTempDir("ports");
    stop = new AbortController();
    ports = nodePorts(stop.signal, () => Promise.resolve());
  });
  afterEach(() => folder.remove());
  const at = (name: string): string => join(folder.path, name);

  it("runs a program with a minimal environment, and keeps the end of its output", async () => {
    const ended = await ports.run(["sh", "-c", "env | cut -d= -f1 | sort; echo why >&2; exit 3"], hangLimit);
    expect({ ...ended, stdout: ended.stdout.split("\n") }).to.deep.equal({
      code: 3,
      stdout: ["HOME", "LC_ALL", "PATH", "PWD", ""],
      stderr: "why\n",
    });
    expect((await ports.run(["seq", "100000"], hangLimit)).stdout)
      .to.match(/^[\d\n]{16384}$/)
      .and.match(/\n100000\n$/);
    expect(await ports.run(["no-such-program"], hangLimit)).to.deep.include({ code: 127 });
  });

  it("kills a program after its time limit", async () =>
    expect((await ports.run(["sleep", "60"], 1)).code).to.equal(undefined));

  it("ends programs and waits when its signal fires", async () => {
    const ended = Promise.allSettled([ports.run(["sleep", "60"], hangLimit), ports.sleep(hangLimit)]);
    stop.abort();
    for (const one of await ended)
      expect(one.status === "rejected" && (one.reason as Error).name).to.equal("AbortError");
  });

  it("reads and writes files and links", async () => {
    expect(await ports.read(at("a/b"))).to.equal(undefined);
    await ports.replace(at("a/b"), "text");
    expect([await ports.read(at("a/b")), statSync(at("a/b")).mode & 0o777]).to.deep.equal(["text", 0o600]);
    expect([await ports.move(at("a/b"), at("c")), await ports.move(at("a/b"), at("c"))]).to.deep.equal([true, false]);
    await ports.link("one", at("link"));
    await ports.link("two", at("link"));
    expect([
      await ports.readLink(at("link")),
      await ports.readLink(at("c")),
      await ports.readLink(at("none")),
    ]).to.deep.equal(["two", undefined, undefined]);
    await ports.remove(at("c"));
    await ports.remove(at("c"));
    expect(await ports.list(folder.path)).to.have.members(["a", "link"]);
  });

  it("reads size and hash of a file, and the free space", async () => {
    writeFileSync(at("bundle"), "text");
    const sum = createHash("sha256").update("text").digest("hex");
    expect([await ports.sizeOf(at("bundle")), await ports.sizeOf(at("none"))]).to.deep.equal([4, undefined]);
    expect(await ports.sha256Of(at("bundle"))).to.equal(sum);
    const { free, dev } = await ports.room(folder.path);
    expect([free > 0, dev]).to.deep.equal([true, statSync(folder.path).dev]);
    expect(await ports.list(at("none"))).to.deep.equal([]);
  });

  it("reads the boot id and an uptime that advances", async () => {
    expect(await ports.bootId()).to.match(/^[0-9a-f-]{36} \d+$/);
    const since = Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 1000;
    expect(Math.abs(ports.uptime() - since)).to.be.lessThan(86_400_000);
  });

  it("reads the status of a URL without following a redirect", async () => {
    const server = createServer((_, answer) => answer.writeHead(302, { location: "/elsewhere" }).end("body"));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    try {
      expect(await ports.ask(`http://127.0.0.1:${port}/`, hangLimit)).to.equal(302);
    } finally {
      server.close();
    }
    expect(await ports.ask(`http://127.0.0.1:${port}/`, hangLimit).catch((error: unknown) => error)).to.be.an("error");
  });

  it("locks a folder while it runs", async () => {
    const squatter = createServer();
    // A name that any user of the node could take first.
    await new Promise<void>((resolve) => squatter.listen({ path: `\0kcore-updater:${folder.path}` }, resolve));
    const unlock = await lockFolder(folder.path);
    try {
      expect(unlock).not.to.equal(undefined);
      expect(await lockFolder(folder.path)).to.equal(undefined);
    } finally {
      unlock?.();
      squatter.close();
    }
    const next = await lockFolder(folder.path);
    expect(next).not.to.equal(undefined);
    next?.();
  });
});
