import { mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { openStore } from "#controller/store.ts";
import type { NodeRecord, Store } from "#controller/store.ts";
import { KcoreError } from "#errors/problem.ts";

const record = (id: string, changes: Partial<NodeRecord> = {}): NodeRecord => ({
  id,
  hostname: id,
  address: "192.0.2.1",
  dc: "DC1",
  roles: [],
  labels: {},
  cpu: 1,
  memory: 1,
  version: "1",
  approval: "approved",
  alive: true,
  registeredAt: 1,
  lastSeenAt: 1,
  certificateExpiresAt: 1,
  key: "k",
  ...changes,
});

describe("the controller's store", () => {
  let dir: string;
  let folder: string;
  const stores: Store[] = [];
  const open = async (ids: { cluster?: string; controllerId?: string } = {}): Promise<Store> => {
    const store = await openStore({ folder, cluster: "lab", controllerId: "c1", ...ids });
    stores.push(store);
    return store;
  };
  const reopen = async (store: Store): Promise<Store> => {
    await store.close();
    return open();
  };
  const problemOf = async (work: Promise<unknown>): Promise<string> => {
    const error = await work.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    return error instanceof KcoreError ? `${error.problems[0]?.code}: ${error.message}` : String(error);
  };
  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), "kcore-store-"));
    folder = join(dir, "db");
  });
  afterEach(async () => {
    for (const store of stores.splice(0)) await store.close();
    await rm(dir, { recursive: true, force: true });
  });

  it("keeps nodes over a restart", async () => {
    const store = await open();
    await store.update("a", () => record("a"));
    expect((await reopen(store)).get("a")).to.deep.equal(record("a"));
  });

  it("S-23: keeps file 0600 and folder 0700 after every write, whatever the umask, and nothing else", async () => {
    const umask = process.umask(0);
    try {
      const store = await open();
      for (const id of ["a", "b"]) {
        await store.update(id, () => record(id));
        expect((await stat(join(folder, "state.json"))).mode & 0o777).to.equal(0o600);
      }
      expect((await stat(folder)).mode & 0o777).to.equal(0o700);
      expect(await readdir(folder)).to.deep.equal(["state.json"]);
    } finally {
      process.umask(umask);
    }
  });

  it("S-23: replaces a planted link instead of following it", async () => {
    const store = await open();
    const victim = join(dir, "victim");
    await writeFile(victim, "untouched");
    await symlink(victim, join(folder, "state.json"));
    await store.update("a", () => record("a"));
    expect(await readFile(victim, "utf8")).to.equal("untouched");
    expect((await stat(join(folder, "state.json"))).isFile()).to.equal(true);
  });

  it("shows a change only when it is on the disk, and shares writes", async () => {
    const store = await open();
    const writes = Array.from({ length: 50 }, (_, index) => store.update(`n${index}`, () => record(`n${index}`)));
    expect(store.list()).to.deep.equal([]);
    await Promise.all(writes);
    expect(store.list().length).to.equal(50);
    const text = await readFile(join(folder, "state.json"), "utf8");
    expect(text.match(/"hostname"/g)?.length).to.equal(50);
  });

  it("makes every change on the latest record", async () => {
    const store = await open();
    await store.update("a", () => record("a", { cpu: 0 }));
    const add = (): Promise<NodeRecord> =>
      store.update("a", (before) => ({ ...record("a"), cpu: (before?.cpu ?? 0) + 1 }));
    await Promise.all(Array.from({ length: 20 }, add));
    expect(store.get("a")?.cpu).to.equal(20);
  });

  it("passes on what a change throws, and keeps the others of the same write", async () => {
    const store = await open();
    const bad = store.update("a", () => {
      throw new Error("no");
    });
    const good = store.update("b", () => record("b"));
    expect(await problemOf(bad)).to.equal("Error: no");
    await good;
    expect(store.list().map(({ id }) => id)).to.deep.equal(["b"]);
  });

  it("F-6: changes nothing when it cannot write, and heals by itself", async () => {
    const store = await open();
    await store.update("a", () => record("a"));
    await rm(folder, { recursive: true });
    expect(await problemOf(store.update("b", () => record("b")))).to.match(/^STORE_UNWRITABLE/);
    expect(store.get("b")).to.equal(undefined);
    await (await import("node:fs/promises")).mkdir(folder, { mode: 0o700 });
    await store.update("c", () => record("c"));
    expect(store.list().map(({ id }) => id)).to.deep.equal(["a", "c"]);
  });

  it("refuses a damaged, cut, empty or foreign file and leaves it alone", async () => {
    const store = await open();
    await store.update("a", () => record("a"));
    await store.close();
    const file = join(folder, "state.json");
    const good = await readFile(file, "utf8");
    for (const text of [
      good.replace('"approved"', '"rejected"'),
      good.slice(0, -20),
      "",
      "{}",
      "null",
      "[]",
      `${good}x`,
    ]) {
      await writeFile(file, text);
      expect(await problemOf(open()), JSON.stringify(text.slice(0, 40))).to.match(/^STORE_CORRUPT: .*state\.json/);
      expect(await readFile(file, "utf8")).to.equal(text);
    }
    await writeFile(file, good.replace("kcore-store/1", "kcore-store/9"));
    expect(await problemOf(open())).to.contain("kcore-store/9");
  });

  it("refuses another cluster's or controller's state", async () => {
    const store = await open();
    await store.update("a", () => record("a"));
    await store.close();
    expect(await problemOf(open({ cluster: "other" }))).to.contain("belongs to controller c1 of the cluster “lab”");
    expect(await problemOf(open({ controllerId: "c2" }))).to.match(/^CONFIG_INVALID/);
  });

  it("is held by one process at a time", async () => {
    const store = await open();
    expect(await problemOf(open())).to.match(/^STORE_LOCKED/);
    await store.close();
    await open();
  });
});
