import { execFileSync } from "node:child_process";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { fetchBundle, uploadBundle } from "#api/bundle-transfer.ts";
import type { BundleSource } from "#api/bundle-transfer.ts";
import type { ApiClient, Credentials } from "#api/client.ts";
import { createLog } from "#api/log.ts";
import { openBundleFetcher } from "#controller/updates/bundle-fetcher.ts";
import type { BundleFetcher } from "#controller/updates/bundle-fetcher.ts";
import { openBundleStore } from "#controller/updates/bundles.ts";
import type { BundleStore } from "#controller/updates/bundles.ts";
import { createTestCluster, eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { nodeCredentials, refusalCodeOf, registrationOf, startControllers } from "#support/controllers.ts";
import type { TestController } from "#support/controllers.ts";
import { codeOf } from "#support/rejection.ts";

const mebibyte = 2 ** 20;

describe("bundles on controllers", () => {
  let cluster: TestCluster;
  let stop: () => Promise<void>;
  let first: TestController;
  let second: TestController;
  let source: BundleSource;
  let bytes: Buffer;
  let id: string;
  let target: string;

  before(async () => {
    cluster = await createTestCluster();
    const started = await startControllers(cluster, 2, {
      processes: true,
      config: () => ({ requireManualApproval: true }),
    });
    ({ stop } = started);
    [first, second] = started.controllers as [TestController, TestController];
  });
  after(async () => {
    await stop();
    await cluster.remove();
  });
  beforeEach(async () => {
    bytes = randomBytes(16 * mebibyte);
    id = createHash("sha256").update(bytes).digest("hex");
    const file = join(cluster.dir, `${id}.bundle`);
    // The bundle has other bytes ahead, as in the file that the bastion writes.
    await writeFile(file, Buffer.concat([Buffer.from("header\n"), bytes]));
    source = { bundle: { sha256: id, size: bytes.length }, file, start: 7 };
    target = join(cluster.dir, `fetched-${id}`);
  });

  const heldAt = async ({ operator }: TestController): Promise<unknown> => {
    const { bundles } = await operator.call("listBundles", {});
    const found = bundles.find(({ sha256 }) => sha256 === id);
    return found && { held: found.held, whole: found.whole };
  };
  const whole = () => ({ held: bytes.length, whole: true });
  /** A registered node, and its client. */
  const startNode = async (
    { clientOf, operator }: TestController,
    approve = true,
  ): Promise<{ nodeId: string; credentials: Credentials; client: ApiClient }> => {
    const nodeId = randomUUID();
    const credentials = nodeCredentials(cluster, nodeId);
    const client = clientOf(credentials);
    await client.call("registerNode", registrationOf(nodeId));
    if (approve) await operator.call("approveNode", {}, { id: nodeId });
    return { nodeId, credentials, client };
  };
  const targetIsWhole = async (): Promise<boolean> => (await readFile(target)).equals(bytes);

  it("are uploaded by the operator, listed, and fetched by an approved node, once", async () => {
    const seen: number[] = [];
    await uploadBundle(first.operator, source, { onProgress: (count) => seen.push(count) });
    expect([seen[0], seen.at(-1)]).to.deep.equal([0, bytes.length]);
    expect(await heldAt(first)).to.deep.equal(whole());
    expect(await heldAt(second)).to.equal(undefined);
    const { client } = await startNode(first);
    await fetchBundle(client, source.bundle, target);
    expect(await targetIsWhole()).to.equal(true);
    expect((await stat(target)).mode & 0o777).to.equal(0o600);
    // The bundle is complete: no piece is sent or fetched again.
    seen.length = 0;
    await uploadBundle(first.operator, source, { onProgress: (count) => seen.push(count) });
    await fetchBundle(client, source.bundle, target, { onProgress: (count) => seen.push(count) });
    expect(seen).to.deep.equal([bytes.length, bytes.length]);
  });

  it("are refused to pending and rejected nodes, and accepted from no node or controller", async () => {
    await uploadBundle(first.operator, source);
    const { nodeId, client } = await startNode(first, false);
    const ask = (): Promise<unknown> => client.open("bundle", {}, { id: `${id}@0` });
    expect(await refusalCodeOf(ask())).to.equal("NODE_PENDING");
    await first.operator.call("rejectNode", {}, { id: nodeId });
    expect(await refusalCodeOf(ask())).to.equal("NODE_REJECTED");
    const approved = (await startNode(first)).client;
    const piece = { offset: 0, size: 3, data: "YWJj" };
    expect(await refusalCodeOf(approved.call("putBundle", piece, { id }))).to.equal("API_DENIED");
    expect(await refusalCodeOf(approved.call("listBundles", {}))).to.equal("API_DENIED");
    const stranger = first.clientOf({ ...second.credentials });
    expect(await refusalCodeOf(stranger.call("putBundle", piece, { id }))).to.equal("API_DENIED");
    const { lines } = await first.operator.call("listAudit", {}, { id: "1" });
    expect(lines.filter(({ text }) => text.includes(id))).to.have.length(3);
  });

  it("are resumed, uploads and fetches alike, after the controller was killed", async () => {
    const kill = (at: number) => (count: number) => {
      if (count >= at && count < bytes.length) process.kill(first.pid(), "SIGKILL");
    };
    const restart = async (): Promise<void> => {
      await first.stop("SIGKILL");
      await first.start();
    };
    const upload = uploadBundle(first.operator, source, { onProgress: kill(4 * mebibyte) });
    expect(await codeOf(upload)).to.equal("API_UNREACHABLE");
    await restart();
    const seen: number[] = [];
    await uploadBundle(first.operator, source, { onProgress: (count) => seen.push(count) });
    expect(seen[0]).to.be.at.least(4 * mebibyte);
    expect(await heldAt(first)).to.deep.equal(whole());

    const { client } = await startNode(first);
    const fetch = fetchBundle(client, source.bundle, target, { onProgress: kill(mebibyte / 4) });
    expect(await codeOf(fetch)).to.equal("API_UNREACHABLE");
    const { size: held } = await stat(`${target}.part`);
    expect(held).to.be.within(mebibyte / 4, bytes.length - 1);
    await restart();
    seen.length = 0;
    const again = () => fetchBundle(client, source.bundle, target, { onProgress: (count) => seen.push(count) });
    await eventually(async () => (await refusalCodeOf(again())) === "allowed");
    expect(seen[0]).to.equal(held);
    expect(await targetIsWhole()).to.equal(true);
  });

  it("are resumed after the disk of the node was full", async function () {
    if (process.getuid?.() !== 0) this.skip();
    await uploadBundle(first.operator, source);
    const { client } = await startNode(first);
    const disk = join(cluster.dir, "disk");
    await mkdir(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=6m", "none", disk]);
    try {
      const fetched = () => codeOf(fetchBundle(client, source.bundle, join(disk, "bundle")));
      expect([await fetched(), await fetched()]).to.deep.equal(["UPDATE_BUNDLE_NO_ROOM", "UPDATE_BUNDLE_NO_ROOM"]);
      execFileSync("mount", ["-o", "remount,size=64m", disk]);
      await fetchBundle(client, source.bundle, join(disk, "bundle"));
    } finally {
      execFileSync("umount", ["-l", disk]);
    }
  });

  it("are refused when file or stored copy do not match the hash", async () => {
    for (const wrong of [randomBytes(bytes.length), bytes.subarray(0, mebibyte)]) {
      await writeFile(source.file, Buffer.concat([Buffer.from("header\n"), wrong]));
      expect(await codeOf(uploadBundle(first.operator, source))).to.equal("UPDATE_BUNDLE_INVALID");
    }
    await writeFile(source.file, Buffer.concat([Buffer.from("header\n"), bytes]));
    await uploadBundle(first.operator, source);
    const { client } = await startNode(first);
    const stored = join(first.dbPath, "bundles", id);
    await writeFile(stored, randomBytes(bytes.length));
    expect(await codeOf(fetchBundle(client, source.bundle, target))).to.equal("UPDATE_BUNDLE_INVALID");
    expect((await stat(`${target}.part`)).size).to.equal(0);
    await writeFile(stored, bytes);
    await fetchBundle(client, source.bundle, target);
    expect(await targetIsWhole()).to.equal(true);
  });

  describe("between controllers", () => {
    let store: BundleStore;
    let fetcher: BundleFetcher;
    let lines: string;
    const start = (peers: () => readonly string[]): void => {
      lines = "";
      store = openBundleStore({ folder: join(cluster.dir, randomUUID()), isNeeded: () => true });
      fetcher = openBundleFetcher({
        store,
        wanted: () => [source.bundle],
        peers,
        credentials: () => second.credentials,
        clock: Date.now,
        random: () => 0,
        log: createLog({ write: (line) => (lines += line), clock: Date.now }),
      });
    };
    const isWhole = async (): Promise<boolean> => (await store.list()).some((one) => one.whole);
    const isStored = async (): Promise<boolean> => {
      const { file } = await store.open(id);
      const held = await file.readFile();
      await file.close();
      return held.equals(bytes);
    };
    afterEach(() => fetcher.stop());

    it("a controller fetches a missing bundle from a peer as soon as the peer has it", async () => {
      start(() => [first.endpoint]);
      fetcher.fetchMissing();
      await eventually(() => lines.includes("UPDATE_BUNDLE_UNKNOWN") || lines.includes("does not have the bundle"));
      await uploadBundle(first.operator, source);
      await eventually(isWhole);
      expect(await isStored()).to.equal(true);
      await eventually(() => lines.includes("a bundle came from another controller"));
      // No fetch is under way, and a further look costs nothing.
      lines = "";
      fetcher.fetchMissing();
      await fetcher.stop();
      expect(lines).to.equal("");
    });

    it("a controller fetches from the next peer when one is down or holds other bytes", async () => {
      await Promise.all([uploadBundle(first.operator, source), uploadBundle(second.operator, source)]);
      // A controller compares a bundle with its id only once, at the first request.
      const { client } = await startNode(second);
      await fetchBundle(client, source.bundle, target);
      await writeFile(join(second.dbPath, "bundles", id), randomBytes(bytes.length));
      start(() => ["127.0.0.1:1", second.endpoint, first.endpoint]);
      fetcher.fetchMissing();
      await eventually(isWhole);
      await fetcher.stop();
      expect(lines).to.contain("a bundle could not be fetched").and.contain("gave no whole bundle");
      expect(await isStored()).to.equal(true);
    });
  });
});
