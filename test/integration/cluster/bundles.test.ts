import { execFileSync } from "node:child_process";
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { fetchBundle, uploadBundle } from "#api/bundle-transfer.ts";
import type { BundleSource } from "#api/bundle-transfer.ts";
import type { ApiClient } from "#api/client.ts";
import { createLog } from "#api/log.ts";
import { fetchBundles } from "#controller/updates/bundle-fetcher.ts";
import type { BundleFetcher } from "#controller/updates/bundle-fetcher.ts";
import { openBundleStore } from "#controller/updates/bundles.ts";
import type { BundleStore } from "#controller/updates/bundles.ts";
import { createTestCluster, eventually } from "#support/cluster.ts";
import type { TestCluster } from "#support/cluster.ts";
import { nodeCredentials, reasonOf, registrationOf, startControllers } from "#support/controllers.ts";
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
    // Something stands before the bundle, as in the file that the bastion writes.
    await writeFile(file, Buffer.concat([Buffer.from("header\n"), bytes]));
    source = { bundle: { sha256: id, size: bytes.length }, file, start: 7 };
    target = join(cluster.dir, `fetched-${id}`);
  });

  const heldBy = async ({ operator }: TestController): Promise<unknown> => {
    const { bundles } = await operator.call("listBundles", {});
    const found = bundles.find(({ sha256 }) => sha256 === id);
    return found && { held: found.held, whole: found.whole };
  };
  const whole = () => ({ held: bytes.length, whole: true });
  /** A node that registered at a controller, and its client there. */
  const startNode = async (
    controller: TestController,
    approve = true,
  ): Promise<{ nodeId: string; client: ApiClient }> => {
    const nodeId = randomUUID();
    const client = controller.clientOf(nodeCredentials(cluster, nodeId));
    await client.call("registerNode", registrationOf(nodeId));
    if (approve) await controller.operator.call("approveNode", {}, { id: nodeId });
    return { nodeId, client };
  };
  /** Lines of a controller's audit about this bundle. */
  const audited = async ({ operator }: TestController): Promise<readonly string[]> => {
    const { lines } = await operator.call("listAudit", {}, { id: "1" });
    return lines.map(({ text }) => text).filter((text) => text.includes(id));
  };

  it("takes one from the operator, lists it, and gives it to an approved node", async () => {
    const seen: number[] = [];
    await uploadBundle(first.operator, source, { onProgress: (count) => seen.push(count) });
    expect([seen[0], seen.at(-1)]).to.deep.equal([0, bytes.length]);
    expect(await heldBy(first)).to.deep.equal(whole());
    expect(await heldBy(second)).to.equal(undefined);
    const { client } = await startNode(first);
    await fetchBundle(client, source.bundle, target);
    expect((await readFile(target)).equals(bytes)).to.equal(true);
    expect((await stat(target)).mode & 0o777).to.equal(0o600);
    // All of it is there: nothing is sent or fetched again.
    seen.length = 0;
    await uploadBundle(first.operator, source, { onProgress: (count) => seen.push(count) });
    await fetchBundle(client, source.bundle, target, { onProgress: (count) => seen.push(count) });
    expect(seen).to.deep.equal([bytes.length, bytes.length]);
  });

  it("gives nothing to a node that waits, or was rejected, and takes nothing from any node", async () => {
    await uploadBundle(first.operator, source);
    const { nodeId, client } = await startNode(first, false);
    const ask = (): Promise<unknown> => client.open("bundle", {}, { id: `${id}@0` });
    expect(await reasonOf(ask())).to.equal("NODE_PENDING");
    await first.operator.call("rejectNode", {}, { id: nodeId });
    expect(await reasonOf(ask())).to.equal("NODE_REJECTED");
    const approved = (await startNode(first)).client;
    const piece = { offset: 0, size: 3, data: "YWJj" };
    expect(await reasonOf(approved.call("putBundle", piece, { id }))).to.equal("API_DENIED");
    expect(await reasonOf(approved.call("listBundles", {}))).to.equal("API_DENIED");
    const stranger = first.clientOf({ ...second.credentials });
    expect(await reasonOf(stranger.call("putBundle", piece, { id }))).to.equal("API_DENIED");
    expect(await audited(first)).to.have.length(3);
  });

  it("goes on with an upload, and with a fetch, where they were when the controller was killed", async () => {
    const kill = (at: number) => (count: number) => {
      if (count >= at && count < bytes.length) process.kill(first.pid(), "SIGKILL");
    };
    const restart = async (): Promise<void> => {
      await first.stop("SIGKILL");
      await first.start();
    };
    expect(await codeOf(uploadBundle(first.operator, source, { onProgress: kill(4 * mebibyte) }))).to.equal(
      "API_UNREACHABLE",
    );
    await restart();
    const seen: number[] = [];
    await uploadBundle(first.operator, source, { onProgress: (count) => seen.push(count) });
    expect(seen[0]).to.be.at.least(4 * mebibyte);
    expect(await heldBy(first)).to.deep.equal(whole());

    const { client } = await startNode(first);
    expect(await codeOf(fetchBundle(client, source.bundle, target, { onProgress: kill(mebibyte / 4) }))).to.equal(
      "API_UNREACHABLE",
    );
    const { size: held } = await stat(`${target}.part`);
    expect(held)
      .to.be.at.least(mebibyte / 4)
      .and.lessThan(bytes.length);
    await restart();
    seen.length = 0;
    await eventually(() =>
      fetchBundle(client, source.bundle, target, { onProgress: (count) => seen.push(count) }).then(
        () => true,
        () => false,
      ),
    );
    expect(seen[0]).to.equal(held);
    expect((await readFile(target)).equals(bytes)).to.equal(true);
  });

  it("says so when the node's disk is full, and goes on when there is room", async function () {
    if (process.getuid?.() !== 0) this.skip();
    await uploadBundle(first.operator, source);
    const nodeId = randomUUID();
    const credentials = nodeCredentials(cluster, nodeId);
    const client = first.clientOf(credentials);
    await client.call("registerNode", registrationOf(nodeId));
    await first.operator.call("approveNode", {}, { id: nodeId });
    const disk = join(cluster.dir, "disk");
    await mkdir(disk);
    const program = `
      import { fetchBundle } from "#api/bundle-transfer.ts";
      import { openApi } from "#api/client.ts";
      import { parseEndpoint } from "#api/endpoint.ts";
      import { execFileSync } from "node:child_process";
      const { endpoint, credentials, bundle, disk } = JSON.parse(process.env.GIVEN);
      const client = openApi({ endpoint: parseEndpoint(endpoint), credentials, clock: Date.now });
      const fetch = () => fetchBundle(client, bundle, disk + "/bundle").then(() => "whole", ({ problems }) => problems[0].code);
      const codes = [await fetch(), await fetch()];
      execFileSync("mount", ["-o", "remount,size=64m", disk]);
      console.log([...codes, await fetch()].join(" "));
      client.close();`;
    // Mounted in a namespace of its own: it is gone with its process.
    const shell = 'mount -t tmpfs -o size=6m none "$1" && exec "$0" --input-type=module -e "$2"';
    const said = execFileSync(
      "unshare",
      ["-m", "--propagation", "private", "sh", "-c", shell, process.execPath, disk, program],
      {
        encoding: "utf8",
        env: {
          ...process.env,
          GIVEN: JSON.stringify({ endpoint: first.endpoint, credentials, bundle: source.bundle, disk }),
        },
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    expect(said).to.equal("UPDATE_BUNDLE_NO_ROOM UPDATE_BUNDLE_NO_ROOM whole\n");
  });

  it("refuses what a file does not hold, and what a controller gives wrongly", async () => {
    await writeFile(source.file, Buffer.concat([Buffer.from("header\n"), randomBytes(bytes.length)]));
    expect(await codeOf(uploadBundle(first.operator, source))).to.equal("UPDATE_BUNDLE_INVALID");
    await writeFile(source.file, Buffer.concat([Buffer.from("header\n"), bytes.subarray(0, mebibyte)]));
    expect(await codeOf(uploadBundle(first.operator, source))).to.equal("UPDATE_BUNDLE_INVALID");
    await writeFile(source.file, Buffer.concat([Buffer.from("header\n"), bytes]));
    await uploadBundle(first.operator, source);
    const { client } = await startNode(first);
    const stored = join(first.dbPath, "bundles", id);
    await writeFile(stored, randomBytes(bytes.length));
    expect(await codeOf(fetchBundle(client, source.bundle, target))).to.equal("UPDATE_BUNDLE_INVALID");
    expect((await stat(`${target}.part`)).size).to.equal(0);
    await writeFile(stored, bytes);
    await fetchBundle(client, source.bundle, target);
    expect((await readFile(target)).equals(bytes)).to.equal(true);
  });

  describe("between controllers", () => {
    let store: BundleStore;
    let fetcher: BundleFetcher;
    let lines: string;
    const start = (peers: () => readonly string[]): void => {
      lines = "";
      store = openBundleStore({ folder: join(cluster.dir, randomUUID()), isNeeded: () => true });
      fetcher = fetchBundles({
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
    afterEach(() => fetcher.stop());

    it("one that lacks a bundle fetches it from one that has it, as soon as there is one", async () => {
      start(() => [first.endpoint]);
      fetcher.look();
      await eventually(() => lines.includes("UPDATE_BUNDLE_UNKNOWN") || lines.includes("does not have the bundle"));
      await uploadBundle(first.operator, source);
      await eventually(isWhole);
      const { file } = await store.open(id);
      expect((await file.readFile()).equals(bytes)).to.equal(true);
      await file.close();
      await eventually(() => lines.includes("a bundle came from another controller"));
      // Nothing is under way any more, and to look again costs nothing.
      lines = "";
      fetcher.look();
      await fetcher.stop();
      expect(lines).to.equal("");
    });

    it("goes on at the next where one is gone, or gives something else", async () => {
      await Promise.all([uploadBundle(first.operator, source), uploadBundle(second.operator, source)]);
      // It looks once whether it is what it is called.
      const { client } = await startNode(second);
      await fetchBundle(client, source.bundle, target);
      await writeFile(join(second.dbPath, "bundles", id), randomBytes(bytes.length));
      start(() => ["127.0.0.1:1", second.endpoint, first.endpoint]);
      fetcher.look();
      await eventually(isWhole);
      await fetcher.stop();
      expect(lines).to.contain("a bundle could not be fetched").and.contain("gave no whole bundle");
      const { file } = await store.open(id);
      expect((await file.readFile()).equals(bytes)).to.equal(true);
      await file.close();
    });
  });
});
