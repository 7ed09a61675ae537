import { expect } from "chai";
import { randomBytes } from "node:crypto";
import { chmodSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunEventBody } from "#engine/events/event.ts";
import { PeerTransfer } from "#engine/peer-transfer/peer-transfer.ts";
import { Blob, blobOf } from "#engine/step/blob.ts";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { createTransport } from "#engine/transport/connect.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import { freePort } from "#support/ports.ts";
import { nodeEntry } from "#support/runs.ts";
import { draftOf, sessionOn, type TestSession } from "#support/sessions.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const names = ["n1", "n2", "n3", "n4"] as const;

describe("transfers between nodes over SSH", () => {
  const servers: SshServer[] = [];
  const at = folderOfEachTest("feed");
  let reads: number;
  let warnings: string[];
  before(async () => {
    for (const _ of names) servers.push(await startSshd());
  });
  after(async () => {
    for (const server of servers) await server.stop();
  });
  beforeEach(() => {
    chmodSync(at(), 0o755);
    reads = 0;
    warnings = [];
  });

  const bytes = randomBytes(6_000_000);
  const { sha256, size } = blobOf(bytes);
  const read = (): Promise<Uint8Array> => {
    reads += 1;
    return Promise.resolve(bytes);
  };
  const isWaiting = (event: RunEventBody): boolean => event.type === "node.waiting";
  /** The content, whose read on the bastion waits for `open`. */
  function gatedContent(): { readonly slow: Blob; readonly open: () => void } {
    const { promise, resolve } = Promise.withResolvers<void>();
    const slow = new Blob({ sha256, size, sensitive: false, label: "image", read: () => promise.then(read) });
    return { slow, open: resolve };
  }
  const blob = (sensitive = false): Blob => new Blob({ sha256, size, sensitive, read, label: "image" });
  function stepFor(name: string, content: Blob): Step {
    const path = at(`image-${name}`);
    return {
      want: { size: String(size) },
      probe: sh`fact size "$(stat -c %s ${path} 2>/dev/null || echo 0)"`,
      apply: sh`cat ${content} >${path}`,
    };
  }
  const keysOf = (server: SshServer): string => join(server.home("root"), ".ssh", "authorized_keys");

  interface Setting {
    readonly content?: Blob;
    /** The nodes' port in the roster, if other than the port that kcore connects to. */
    readonly rosterPort?: number;
    readonly reached?: readonly SshServer[];
    /** Called when the sessions have begun. */
    readonly meanwhile?: (sessions: readonly TestSession[]) => Promise<void>;
  }

  /** Runs a step with the content on all nodes at once. */
  async function runAll({ content = blob(), rosterPort: told, reached = servers, meanwhile }: Setting = {}) {
    const emit = (event: RunEventBody): void => {
      if (event.type === "warning") warnings.push(`${event.node}: ${event.text}`);
    };
    const peerTransfer = new PeerTransfer({ emit });
    const runId = `test-${randomBytes(4).toString("hex")}`;
    const { connect } = createTransport({ home: at() });
    const runs = names.map((name, index) => {
      const server = reached[index] as SshServer;
      const endpoint = server.endpoint({ name, port: told ?? server.port });
      const { address, port, user } = endpoint;
      const stateDir = at(name);
      return sessionOn(stateDir, {
        endpoint,
        node: nodeEntry(name, { address, port, user, transport: "ssh", stateDir }),
        connect: (to: Endpoint, options) => connect({ ...to, port: server.port }, options),
        runId,
        peerBlobs: peerTransfer,
      });
    });
    const work = runs.map(async ({ session }, index) => {
      const name = names[index] as string;
      const drafts = [draftOf("image", stepFor(name, content))];
      const { outcome } = await session.perform([{ stage: "s", drafts }], { isLast: true });
      await session.finish(outcome);
      return outcome;
    });
    await meanwhile?.(runs);
    const ends = await Promise.all(work);
    await peerTransfer.close();
    return { ends, events: runs.flatMap(({ events }) => events) };
  }
  const haveAll = (): boolean => names.every((name) => readFileSync(at(`image-${name}`)).equals(bytes));
  const leftovers = (): string[] =>
    names.flatMap((name) => readdirSync(at(name, "runs")).filter((run) => run.startsWith("feed-")));

  it("send the content from the bastion once, and leave nothing on the nodes", async () => {
    const before = servers.map((server) => readFileSync(keysOf(server)));
    const { ends, events } = await runAll();
    expect(warnings).to.deep.equal([]);
    expect(ends).to.deep.equal(names.map(() => "done"));
    expect([reads, haveAll(), leftovers()]).to.deep.equal([1, true, []]);
    const from = events.flatMap((event) => (event.type === "node.sent" ? [event.from] : []));
    expect(from.filter((one) => one === undefined).length).to.equal(1);
    expect(from.length).to.equal(names.length);
    expect(events.some((event) => event.type === "node.waiting" && /^for image from n\d$/.test(event.reason))).to.equal(
      true,
    );
    for (const [index, server] of servers.entries()) {
      expect(readFileSync(keysOf(server)).equals(before[index] as Buffer)).to.equal(true);
      expect(readdirSync(join(server.home("root"), ".ssh"))).to.deep.equal(["authorized_keys"]);
    }
  });

  it("fall back to the bastion when nodes cannot reach each other", async () => {
    const { ends, events } = await runAll({ rosterPort: await freePort() });
    expect([ends, reads, haveAll(), leftovers()]).to.deep.equal([names.map(() => "done"), names.length, true, []]);
    expect(warnings.length).to.equal(names.length - 1);
    expect(warnings.join()).to.match(
      /^n\d: the bastion sends it image, which it could not get from n\d: after 0 bytes: .*Connection refused/,
    );
    expect(events.filter(({ type }) => type === "node.sent").length).to.equal(names.length);
  });

  it("fall back to the bastion when a node allows one session at a time", async () => {
    const narrow = await startSshd({ config: ["MaxSessions 1"] });
    try {
      const { ends } = await runAll({ reached: names.map(() => narrow) });
      expect([ends, reads, haveAll(), leftovers()]).to.deep.equal([names.map(() => "done"), names.length, true, []]);
      expect(warnings.length).to.equal(names.length);
    } finally {
      await narrow.stop();
    }
  });

  it("are not used for sensitive content, which the bastion sends to each node", async () => {
    const { ends, events } = await runAll({ content: blob(true) });
    expect([ends, reads, haveAll()]).to.deep.equal([names.map(() => "done"), names.length, true]);
    expect(warnings).to.deep.equal([]);
    expect(events.some(({ type }) => type === "node.waiting")).to.equal(false);
  });

  it("go on without a stopped node, and a stopped node does not wait", async () => {
    const { slow, open } = gatedContent();
    const { ends } = await runAll({
      content: slow,
      meanwhile: async (runs) => {
        const { session } = await Promise.any(runs.map(async (one) => (await one.seen(isWaiting), one)));
        session.stop();
        await runs.find((one) => one.session === session)?.seen(({ type }) => type === "node.finished");
        open();
      },
    });
    expect(ends.toSorted()).to.deep.equal([...names.slice(1).map(() => "done"), "interrupted"]);
    expect([reads, leftovers(), warnings]).to.deep.equal([1, [], []]);
  });

  it("take another source when the first node that had the content is gone", async () => {
    const { slow, open } = gatedContent();
    const { ends } = await runAll({
      content: slow,
      meanwhile: async (runs) => {
        const event = await Promise.any(runs.map((one) => one.seen(isWaiting)));
        const first = (event as { readonly reason: string }).reason.slice("for image from ".length);
        await servers[names.findIndex((name) => name === first)]?.dropSessions();
        open();
      },
    });
    expect(ends).to.deep.equal(names.map(() => "done"));
    expect([haveAll(), leftovers()]).to.deep.equal([true, []]);
  });
});
