import { randomBytes } from "node:crypto";
import { appendFile, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect } from "chai";
import { PageReader } from "#crdt/page.ts";
import { keyRules } from "#controller/cluster/registers.ts";
import { openDatabase, type ControllerDatabase, type DatabaseLimits } from "#controller/store/database.ts";
import { eventually } from "../../../support/cluster.ts";
import { oneRegister } from "../../../support/one-register.ts";
import { makeTempDir, type TempDir } from "../../../support/temp-dir.ts";
import { codeOf } from "../../../support/rejection.ts";

describe("a controller's database", () => {
  let dir: TempDir;
  let folder: string;
  let db: ControllerDatabase | undefined;
  let seq = 0;
  const open = async (limits: Partial<DatabaseLimits> = {}): Promise<ControllerDatabase> => {
    await db?.close();
    db = undefined;
    return (db = await openDatabase({
      folder,
      rules: keyRules,
      limits,
      onBroken: () => undefined,
      monotonic: () => 0,
    }));
  };
  const names = (): readonly string[] => [...(db?.data.map.all() ?? [])].map(({ key }) => key).toSorted();
  const add = async (...added: readonly string[]): Promise<void> => {
    const records = added.map((name) => oneRegister(++seq, name));
    await db?.append(records);
    for (const record of records) db?.data.apply(record);
  };
  /** Replaces the folder by a copy as after a power failure, without the snapshot of an orderly stop. */
  const cutPower = async (): Promise<void> => {
    const copy = join(dir.path, `left-${randomBytes(4).toString("hex")}`);
    await mkdir(copy, { mode: 0o700 });
    for (const name of await readdir(folder)) await writeFile(join(copy, name), await readFile(join(folder, name)));
    await db?.close();
    db = undefined;
    folder = copy;
  };
  const files = async (kind: string): Promise<readonly string[]> =>
    (await readdir(folder)).filter((name) => name.startsWith(kind)).toSorted();
  const last = async (kind: string): Promise<string> => join(folder, (await files(kind)).at(-1) ?? "none");

  beforeEach(async () => {
    dir = await makeTempDir("store");
    folder = join(dir.path, "db");
  });
  afterEach(async () => {
    await db?.close();
    db = undefined;
    await dir.remove();
  });

  it("has acknowledged records after a power failure, in order", async () => {
    await open();
    await add("a");
    await add("b", "ü\u2028\n");
    await cutPower();
    await open();
    expect(names()).to.deep.equal(["a", "b", "ü\u2028\n"]);
  });

  it("takes no snapshot during a large merge, which would lack records acknowledged after it", async () => {
    const { data } = await open();
    const merge = oneRegister(++seq, "merged");
    await db?.append([merge]);
    data.beginMerge(merge, new PageReader().read(merge.page));
    const later = oneRegister(++seq, "later");
    await db?.append([later]);
    const snapshot = db?.write();
    for (let turn = 0; turn < 3; turn++) await nextTurn();
    data.mergeNext(Infinity);
    data.apply(later);
    await snapshot;
    await cutPower();
    await open();
    expect(names()).to.deep.equal(["later", "merged"]);
  });

  it("ends a snapshot that waits for a merge when closed, and has the merged records in the journal", async () => {
    const { data } = await open();
    const merge = oneRegister(++seq, "merged");
    await db?.append([merge]);
    data.beginMerge(merge, new PageReader().read(merge.page));
    const snapshot = db?.write();
    await open();
    await snapshot;
    expect(names()).to.deep.equal(["merged"]);
  });

  it("S-23: has files 0600 in a folder 0700 with any umask, also after each rewrite", async () => {
    const before = process.umask(0);
    try {
      await mkdir(folder, { mode: 0o777 });
      await open({ segmentBytes: 10, snapshotRecords: 2 });
      for (const name of ["a", "b", "c", "d", "e"]) await add(name);
      await db?.write();
      const modes = await Promise.all(
        (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).mode & 0o777),
      );
      expect(modes).to.have.length.greaterThan(2);
      expect(new Set(modes)).to.deep.equal(new Set([0o600]));
      expect((await stat(folder)).mode & 0o777).to.equal(0o700);
    } finally {
      process.umask(before);
    }
  });

  it("S-23: follows no symbolic link in place of its files", async () => {
    const victim = join(dir.path, "victim");
    await writeFile(victim, "precious");
    await mkdir(folder, { mode: 0o700 });
    await symlink(victim, join(folder, "journal-0000000000000001.ndjson"));
    expect(await codeOf(open())).to.equal("FILE_UNREADABLE");
    expect(await readFile(victim, "utf8")).to.equal("precious");
  });

  it("locks its folder", async () => {
    await open();
    expect(await codeOf(openDatabase({ folder, rules: keyRules, onBroken: () => undefined }))).to.equal("STORE_LOCKED");
  });

  for (const [what, hasSnapshots, spoil] of [
    ["a journal with a missing segment", false, async () => rm(join(folder, (await files("journal"))[1] ?? ""))],
    ["a snapshot without the journal of later acknowledged records", true, async () => rm(await last("journal"))],
    [
      "a journal that begins later than any undamaged snapshot",
      true,
      async () => {
        for (const name of await files("snapshot")) await writeFile(join(folder, name), "");
      },
    ],
  ] as const)
    it(`refuses ${what}`, async () => {
      await open({ segmentBytes: 10 });
      for (const name of ["a", "b", "c"]) {
        await add(name);
        if (hasSnapshots) await db?.write();
      }
      await cutPower();
      await spoil();
      expect(await codeOf(open())).to.equal("STORE_CORRUPT");
    });

  it("skips a damaged snapshot if an older one and the journal have the same state", async () => {
    await open({ segmentBytes: 10 });
    for (const name of ["a", "b", "c"]) {
      await add(name);
      await add(`${name}2`);
      await db?.write();
    }
    await add("d");
    await cutPower();
    expect(await files("snapshot")).to.have.length(2);
    await appendFile(await last("snapshot"), "x");
    await open();
    expect(names()).to.deep.equal(["a", "a2", "b", "b2", "c", "c2", "d"]);
    expect(db?.notes[0]).to.match(/an older one is used/);
  });

  it("refuses files of a newer kcore as such", async () => {
    await open();
    await add("a");
    await db?.write();
    await cutPower();
    const [snapshot, journal] = [await last("snapshot"), await last("journal")];
    const text = await readFile(snapshot, "latin1");
    await writeFile(snapshot, text.replace("kcore-store/2", "kcore-store/3"), "latin1");
    expect(await codeOf(open())).to.equal("STORE_TOO_NEW");
    await writeFile(snapshot, text, "latin1");
    await writeFile(
      journal,
      (await readFile(journal, "latin1")).replace("kcore-journal/1", "kcore-journal/2"),
      "latin1",
    );
    expect(await codeOf(open())).to.equal("STORE_TOO_NEW");
  });

  it("removes files that a snapshot replaces, and incomplete snapshots", async () => {
    await open({ segmentBytes: 10 });
    await writeFile(join(folder, "snapshot-0000000000000009.json.0123456789abcdef.tmp"), "half");
    for (const name of ["a", "b", "c", "d", "e"]) {
      await add(name);
      await db?.write();
    }
    expect(await files("journal")).to.have.length(1);
    await open();
    expect(await files("snapshot")).to.have.length(2);
    expect((await readdir(folder)).filter((name) => name.endsWith(".tmp"))).to.deep.equal([]);
  });

  it("writes a snapshot after the given number of records", async () => {
    await open({ snapshotRecords: 3 });
    for (const name of ["a", "b", "c"]) await add(name);
    const isWritten = async (): Promise<boolean> => (await files("snapshot")).some((name) => name.endsWith(".json"));
    await eventually(isWritten);
    expect(await files("snapshot")).to.deep.equal(["snapshot-0000000000000003.json"]);
  });
});
