import { createHash } from "node:crypto";
import { expect } from "chai";
import { watchCertificates, type Certificates } from "#controller/cluster/certificates.ts";
import { isKnown, keyRules, keys } from "#controller/cluster/registers.ts";
import { watchRevocations } from "#controller/cluster/revocations.ts";
import { removeOld } from "#controller/updates/removal.ts";
import { KnownUpdates } from "#support/known-update.ts";
import { connect, TestReplica } from "#support/replica.ts";
import { SteppedRollout } from "#support/stepped-rollout.ts";
import { Scheduler } from "../../sim/scheduler.ts";

const dayMs = 86_400_000;
const weekMs = 7 * dayMs;
const nodes = ["n1", "n2", "n3", "n4"];
/** Without faults, background work once a day suffices, and is faster. */
const tuning = {
  pingEvery: dayMs,
  pullEvery: dayMs,
  collectEvery: dayMs,
  conflictsEvery: dayMs,
  dialItselfEvery: 365 * dayMs,
};
const options = {
  ...keyRules,
  tuning,
  isKnown: (key: string, json: string) => key.endsWith("/auth") || isKnown(key, json),
};

/** Two controllers, and nodes that renew their certificates and are updated. */
class Cluster {
  readonly #scheduler = new Scheduler();
  readonly replicas: readonly TestReplica[];
  readonly #known: KnownUpdates;
  readonly #certificates: Certificates;
  readonly revocations: ReturnType<typeof watchRevocations>;

  private constructor() {
    const first = new TestReplica(this.#scheduler, "c1", options);
    this.replicas = [first, new TestReplica(this.#scheduler, "c2", { ...options, start: "join" })];
    this.#known = new KnownUpdates("c1", first.replica);
    this.#certificates = watchCertificates(this.#known.parts.records, this.#wall);
    this.revocations = watchRevocations(this.#known.parts.records, this.#certificates);
  }

  static async start(): Promise<Cluster> {
    const cluster = new Cluster();
    const [first, second] = cluster.replicas as [TestReplica, TestReplica];
    await first.register("c1", "c2");
    connect(first, second);
    await cluster.pass(dayMs);
    await cluster.#known.nodes(...nodes);
    return cluster;
  }

  readonly #wall = (): number => 1_700_000_000_000 + this.#scheduler.now;

  pass(ms: number): Promise<void> {
    return this.#scheduler.runUntil(this.#scheduler.now + ms);
  }

  /** A node gets a certificate for a new key, and registers with it. */
  async renew(id: string): Promise<void> {
    const { records } = this.#known.parts;
    const serial = createHash("sha256").update(`${id} ${this.#wall()}`).digest("hex");
    const times = {
      issued: new Date(this.#wall()).toISOString(),
      notAfter: new Date(this.#wall() + 90 * dayMs).toISOString(),
    };
    const record = { spki: serial, role: "node" as const, id, issuer: "1", by: "controller c1", ...times };
    await records.write([this.#certificates.changeToRecord(serial, record), ...this.#certificates.changesToForget()]);
    const reg = { ...records.value("reg", keys.node(id).reg), key: serial, serial };
    await records.write([
      { key: keys.node(id).reg, value: reg },
      ...this.#certificates.changesToSupersede(id, serial, `node ${id}`),
    ]);
  }

  async update(name: string): Promise<void> {
    const rollout = new SteppedRollout({ nodes }).set({ name, now: this.#wall() }).confirm();
    for (const id of nodes) rollout.finish(id);
    await this.#known.update(rollout);
    await removeOld({ ...this.#known.parts, clock: this.#wall });
  }

  /** The registers of each controller, without the tombstones of removed updates, which are one a name. */
  sizes(): readonly (readonly [registers: number, bytes: number, tombstones: number])[] {
    return this.replicas.map(({ replica }) => {
      const standing = [...replica.entries("")].filter(([key]) => !key.endsWith("/removed"));
      const bytes = standing.reduce((sum, [key, { text }]) => sum + key.length + (text?.length ?? 0), 0);
      return [standing.length, bytes, replica.status().tombstones];
    });
  }

  stop(): void {
    this.revocations.stop();
    this.#certificates.stop();
    this.#known.stop();
    for (const { replica } of this.replicas) replica.stop();
  }
}

describe("ten years of a cluster", () => {
  it("with weekly updates and renewals every two months need no more registers than two years", async () => {
    const cluster = await Cluster.start();
    try {
      const years: ReturnType<Cluster["sizes"]>[] = [];
      for (let week = 1; week <= 520; week++) {
        await cluster.update(`week-${week}`);
        if (week % 8 === 0) for (const id of nodes) await cluster.renew(id);
        await cluster.pass(weekMs);
        if (week % 52 === 0) years.push(cluster.sizes());
      }
      const [, second = []] = years;
      // 20 updates with a row and a report of each node, and their certificates of 90 days.
      expect(Math.max(...second.map(([registers]) => registers))).to.be.lessThan(20 * (3 + 2 * nodes.length) + 100);
      const last = cluster.sizes();
      expect(last[0], "both hold the same").to.deep.equal(last[1]);
      for (const [index, [registers = 0, bytes = 0]] of last.entries()) {
        expect(registers, "registers").to.be.at.most((second[index]?.[0] ?? 0) + 2 * nodes.length);
        expect(bytes, "bytes").to.be.at.most(1.1 * (second[index]?.[1] ?? 0));
      }
      expect(Math.max(...last.map(([, , tombstones]) => tombstones)), "tombstones").to.equal(0);
      const marks = [...(cluster.replicas[0]?.replica.entries("update/") ?? [])].filter(([key]) =>
        key.endsWith("/removed"),
      );
      expect(marks.length).to.equal(500);
      expect(Math.max(...marks.map(([key, { text }]) => key.length + (text?.length ?? 0)))).to.be.lessThan(200);
      // Agents need only the revocation of the nodes' first key: every other revoked key is a recorded node's.
      expect(cluster.revocations.newsFor("").revoked?.keys).to.deep.equal(["k"]);
    } finally {
      cluster.stop();
    }
  });
});
