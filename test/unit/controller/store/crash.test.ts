import { expect } from "chai";
import { keyRules } from "#controller/cluster/registers.ts";
import { ControllerDatabase } from "#controller/store/database.ts";
import type { KcoreError } from "#errors/problem.ts";
import { codeOf } from "../../../support/rejection.ts";
import { oneRegister } from "../../../support/one-register.ts";
import { MemoryDisk, type Mishap } from "../../../support/memory-disk.ts";
import { seededRandom } from "../../../support/random.ts";

const folder = "/db";
const limits = { segmentBytes: 4000, snapshotRecords: 12, snapshotBytes: 1_000_000 };

/** A record of up to three sectors, of which a torn write can lose any. */
const recordOf = (number: number) => oneRegister(number, undefined, JSON.stringify("x".repeat((number * 373) % 1400)));

/** A store in which each record adds a number. `acknowledged` has the numbers that the store reported as durable. */
class NumberStore {
  readonly acknowledged: number[] = [];
  readonly db: ControllerDatabase;

  private constructor(db: ControllerDatabase) {
    this.db = db;
  }

  static async start(disk: MemoryDisk, onBroken: () => void = () => undefined): Promise<NumberStore> {
    const db = new ControllerDatabase({ folder, rules: keyRules, disk, onBroken, limits, monotonic: () => 0 });
    await db.read();
    return new NumberStore(db);
  }

  get numbers(): readonly number[] {
    return Array.from(this.db.data.map.all(), ({ s }) => s).toSorted((a, b) => a - b);
  }

  async add(number: number): Promise<void> {
    const record = recordOf(number);
    await this.db.append([record]);
    this.db.data.apply(record);
    this.acknowledged.push(number);
  }
}

/** Waits until the work has ended, or hangs because the machine died. */
async function untilEndOrDeath(work: Promise<unknown>): Promise<void> {
  const settled = work.catch(() => undefined);
  for (let turn = 0; turn < 60; turn++) {
    const still = await Promise.race([settled.then(() => "done"), new Promise((resolve) => setImmediate(resolve))]);
    if (still === "done") return;
  }
}

/** Eight groups of three concurrent writes, then an orderly stop. */
async function writeAndStop(store: NumberStore, from: number): Promise<void> {
  for (let group = 0; group < 8; group++) {
    await Promise.all([0, 1, 2].map((writer) => store.add(from + group * 3 + writer)));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await store.db.close();
}

async function crashAt(
  operation: number,
  mishap: Mishap,
  seed: number,
  tornShare?: number,
): Promise<string | undefined> {
  const random = seededRandom(seed);
  const disk = new MemoryDisk();
  disk.tornShare = tornShare ?? random();
  let hit: string | undefined;
  disk.onOperation = (name, count) => {
    if (count !== operation) return undefined;
    hit = name;
    return mishap;
  };
  const store = await Promise.race([
    NumberStore.start(disk),
    new Promise<undefined>((resolve) => setImmediate(() => resolve(undefined))),
  ]);
  if (store) await untilEndOrDeath(writeAndStop(store, 1));
  const left = disk.afterCrash(random);
  const again = await NumberStore.start(left);
  const acknowledged = store?.acknowledged ?? [];
  expect(again.numbers.slice(0, acknowledged.length), `${hit}, seed ${seed}`).to.deep.equal(acknowledged);
  const prefix = again.numbers.map((_, place) => place + 1);
  expect(again.numbers, `${hit}, seed ${seed}: a prefix of the writes`).to.deep.equal(prefix);
  await again.add(again.numbers.length + 1);
  expect((await NumberStore.start(left.afterCrash(random))).numbers, `${hit}, seed ${seed}`).to.deep.equal(
    again.numbers,
  );
  return hit;
}

const operationsOf = async (): Promise<readonly string[]> => {
  const disk = new MemoryDisk();
  await writeAndStop(await NumberStore.start(disk), 1);
  return disk.operations;
};

describe("the store when the machine dies", () => {
  it("loses nothing acknowledged if the last journal write is durable but not acknowledged", async () => {
    const operations = await operationsOf();
    const hits: (string | undefined)[] = [];
    for (const [index, name] of operations.entries())
      if (/^write .*journal/.test(name)) hits.push(await crashAt(index + 1, "die", index, 1));
    expect(hits.filter((hit) => hit !== undefined)).to.have.length.greaterThan(0);
  });

  it("loses nothing acknowledged at any operation", async () => {
    const { length } = await operationsOf();
    for (let place = 1; place <= length; place++) await crashAt(place, "die", 1000 + place);
  });

  it("loses nothing acknowledged when the disk fails (EIO) at any write or sync", async () => {
    const operations = await operationsOf();
    for (const [index, name] of operations.entries()) {
      if (/^(write|sync)/.test(name)) await crashAt(index + 1, "EIO", index);
    }
  });
});

describe("F-6: the store on a full disk", () => {
  it("refuses writes, keeps acknowledged ones, and accepts writes again when there is room", async () => {
    const disk = new MemoryDisk();
    const store = await NumberStore.start(disk);
    await store.add(1);
    disk.onOperation = (name) => (name.startsWith("write") ? "ENOSPC" : undefined);
    const codes = await Promise.all([2, 2, 2].map((number) => store.add(number).catch(codeIn)));
    expect(codes).to.deep.equal(["STORE_UNWRITABLE", "STORE_UNWRITABLE", "STORE_UNWRITABLE"]);
    expect(codeIn(store.db.problem)).to.equal("STORE_UNWRITABLE");
    disk.onOperation = undefined;
    await store.add(2);
    expect(store.db.problem).to.equal(undefined);
    expect((await NumberStore.start(disk.afterCrash(() => 0.9))).numbers).to.deep.equal([1, 2]);
  });

  it("keeps no part of a refused write", async () => {
    const disk = new MemoryDisk();
    const store = await NumberStore.start(disk);
    // The write reaches the disk before ENOSPC is reported.
    disk.tornShare = 1;
    let writes = 0;
    disk.onOperation = (name) => (/^write .*journal/.test(name) && writes++ === 0 ? "ENOSPC" : undefined);
    expect(await codeOf(store.add(1))).to.equal("STORE_UNWRITABLE");
    expect((await NumberStore.start(disk)).numbers).to.deep.equal([]);
  });

  it("refuses also the writes queued behind a refused one", async () => {
    const disk = new MemoryDisk();
    const store = await NumberStore.start(disk);
    let later: Promise<unknown> | undefined;
    disk.onOperation = (name) => {
      if (later || !name.startsWith("write")) return undefined;
      later = store.add(2).catch(codeIn);
      return "ENOSPC";
    };
    await store.add(1).catch(() => undefined);
    expect(await later).to.equal("STORE_UNWRITABLE");
  });

  it("keeps its journal if a snapshot finds no room, without a leftover file", async () => {
    const disk = new MemoryDisk();
    const store = await NumberStore.start(disk);
    await store.add(1);
    disk.onOperation = (name) => (/write .*tmp/.test(name) ? "ENOSPC" : undefined);
    expect(await codeOf(store.db.write())).to.equal("STORE_UNWRITABLE");
    expect(disk.paths().filter((path) => path.includes("snapshot"))).to.deep.equal([]);
    await store.add(2);
    expect((await NumberStore.start(disk)).numbers).to.deep.equal([1, 2]);
  });

  it("reports a failed disk once, and refuses every later write", async () => {
    for (const operation of ["sync", "write"]) {
      const disk = new MemoryDisk();
      let broken = 0;
      const store = await NumberStore.start(disk, () => broken++);
      disk.onOperation = (name) => (name.startsWith(operation) ? "EIO" : undefined);
      expect(await codeOf(store.add(1)), operation).to.equal("STORE_BROKEN");
      disk.onOperation = undefined;
      expect(await codeOf(store.add(2)), operation).to.equal("STORE_BROKEN");
      expect(broken, operation).to.equal(1);
    }
  });
});

function codeIn(error: unknown): string | undefined {
  return (error as KcoreError | undefined)?.problems[0]?.code;
}
