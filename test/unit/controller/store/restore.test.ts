import { cp, mkdir, readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { KcoreError } from "#errors/problem.ts";
import type { WireRegister } from "#crdt/page.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import { keyRules } from "#controller/cluster/registers.ts";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import { openDatabase, type ControllerDatabase } from "#controller/store/database.ts";
import { realDisk } from "#controller/store/durable-disk.ts";
import { StateJournal } from "#controller/store/journal.ts";
import { recordsOf, recover } from "#controller/store/recover.ts";
import { repairStore, restampStore, restoreStore } from "#controller/store/restore.ts";
import { snapshotName, writeSnapshot } from "#controller/store/snapshot-file.ts";
import { oneRegister } from "../../../support/one-register.ts";
import { codeOf } from "../../../support/rejection.ts";
import { folderOfEachTest } from "../../../support/temp-dir.ts";

describe("a controller's backup, restore and repair", () => {
  const dir = folderOfEachTest("restore");
  let folder: string;
  const open = (at = folder): Promise<ControllerDatabase> =>
    openDatabase({ folder: at, rules: keyRules, onBroken: () => undefined });
  /** Appends records to a journal, a segment each, without a snapshot, as after a crash. */
  const write = async (...records: readonly JournalRecord[]): Promise<void> => {
    await ensurePrivateFolder(folder);
    const found = await recover(realDisk, folder);
    const journal = await StateJournal.open({
      folder,
      disk: realDisk,
      segmentBytes: 10,
      onBroken: () => undefined,
      ...found,
    });
    for (const record of records) await journal.append([JSON.stringify(record)]);
    await journal.close();
  };
  const readAll = async (at = folder): Promise<readonly JournalRecord[]> => [
    ...recordsOf(await recover(realDisk, at), at),
  ];
  const keysIn = (records: readonly JournalRecord[]): readonly string[] =>
    records.flatMap((record) => ("page" in record ? record.page.registers.map(([key]) => key) : []));
  const where = (): { folder: string; id: string; now: number } => ({ folder, id: "c1", now: 0 });
  const backUp = async (...records: readonly JournalRecord[]): Promise<string> => {
    const db = await open();
    for (const record of records) {
      await db.append([record]);
      db.data.apply(record);
    }
    const file = dir("backup.json");
    await writeFile(file, await db.backup());
    await db.append([oneRegister(records.length + 1, "after the backup")]);
    await db.close();
    return file;
  };

  const filesOf = async (at: string): Promise<readonly string[]> =>
    (await readdir(at)).filter((name) => /^(?:journal|snapshot)-/.test(name)).toSorted();

  beforeEach(() => (folder = dir("db")));

  it("F-26: restores a backup under a new origin, and keeps the former state aside", async () => {
    const file = await backUp(oneRegister(1), oneRegister(2));
    const { aside } = await restoreStore({ file, ...where() });
    const found = await readAll();
    expect(keysIn(found)).to.deep.equal(["k/1", "k/2"]);
    expect(found.at(-1))
      .to.have.property("origin")
      .that.matches(/^c1#[0-9a-f]{8}$/);
    expect((await readdir(aside)).some((name) => name.startsWith("journal-"))).to.equal(true);
    expect((await stat(aside)).mode & 0o777).to.equal(0o700);
    // The restored store accepts writes; a backup can also be restored into an empty folder.
    await write(oneRegister(3));
    expect(keysIn(await readAll())).to.deep.equal(["k/1", "k/2", "k/3"]);
    folder = dir("other");
    const restored = await restoreStore({ file, ...where() });
    expect(keysIn(await readAll())).to.deep.equal(["k/1", "k/2"]);
    expect([restored.aside, (await readdir(folder)).filter((name) => name.startsWith("before-"))]).to.deep.equal([
      "",
      [],
    ]);
  });

  it("counts a backup's contents as objects, nodes and controllers", async () => {
    const row = (key: string, text: string | null): WireRegister => [key, text, 1, 0, 0, 1, 0];
    const registers = [
      ...Array.from({ length: 50 }, (_, place) => row(`object/Order/${place}`, "{}")),
      row("object/Order/gone", null),
      row("node/n1/reg", "{}"),
      row("node/n1/approval", "{}"),
      row("controller/c1/auth", "{}"),
    ];
    const page = { origins: ["c1#a"], contexts: [[]], registers };
    const file = await backUp({ t: "apply", page, upto: [["c1#a", 1]] });
    const { registers: count, contents } = await restoreStore({ file, ...where() });
    expect([count, contents]).to.deep.equal([53, { objects: 50, nodes: 1, controllers: 1 }]);
  });

  it("refuses a damaged backup by the operator's name for it, and keeps the state", async () => {
    const file = await backUp(oneRegister(1));
    const whole = await readFile(file);
    const before = await readAll();
    const flipped = Buffer.from(whole);
    flipped.writeUInt8(flipped.readUInt8(whole.length - 4) ^ 1, whole.length - 4);
    for (const damaged of [flipped, whole.subarray(0, -1), Buffer.from("no backup"), Buffer.alloc(0)]) {
      await writeFile(file, damaged);
      const error = await restoreStore({ file, name: "lab-backup", ...where() }).catch((reason: unknown) => reason);
      const [problem] = (error as KcoreError).problems;
      expect(problem?.code).to.equal("BACKUP_DAMAGED");
      expect(problem?.message).to.match(/^the backup is damaged: lab-backup: .*; the controller's state is as it was$/);
      expect(problem?.hint).not.to.contain("repair");
    }
    await writeFile(file, whole.toString("latin1").replace("kcore-store/2", "kcore-store/3"), "latin1");
    const newer = await restoreStore({ file, name: "lab-backup", ...where() }).catch((reason: unknown) => reason);
    expect((newer as KcoreError).problems[0]?.code).to.equal("STORE_TOO_NEW");
    expect((newer as KcoreError).message)
      .to.contain("lab-backup")
      .and.not.contain(file);
    expect(await codeOf(restoreStore({ ...where(), file: dir("none") }))).to.equal("FILE_UNREADABLE");
    expect(await readAll()).to.deep.equal(before);
  });

  it("changes nothing while the controller runs", async () => {
    const file = await backUp(oneRegister(1));
    const db = await open();
    expect(await codeOf(restoreStore({ file, ...where() }))).to.equal("STORE_LOCKED");
    expect(await codeOf(repairStore(where()))).to.equal("STORE_LOCKED");
    await db.close();
  });

  it("does not let a controller start on an interrupted restore", async () => {
    const file = await backUp(oneRegister(1));
    await mkdir(join(folder, "restoring-00000000"));
    expect(await codeOf(open())).to.equal("STORE_CORRUPT");
    await restoreStore({ file, ...where() });
    expect(keysIn(await readAll())).to.deep.equal(["k/1"]);
  });

  it("repairs a damaged journal: keeps whole records, and moves the damaged files aside", async () => {
    await write(...["a", "b", "c", "d"].map((storeId) => ({ t: "meta", storeId, origin: "c1#old" }) as const));
    const second = join(
      folder,
      (await readdir(folder)).filter((name) => name.startsWith("journal-")).toSorted()[1] ?? "",
    );
    const bytes = await readFile(second);
    bytes[60] = (bytes[60] ?? 0) ^ 1;
    await writeFile(second, bytes);
    expect(await codeOf(open())).to.equal("STORE_CORRUPT");
    const { notes, records, aside } = await repairStore(where());
    // Later records without a write do not count.
    expect(records).to.equal(1);
    expect(notes.join()).to.match(/at byte 16: a frame's checksum is wrong/);
    expect(await readFile(join(aside, second.slice(folder.length + 1)))).to.deep.equal(bytes);
    const [first, last] = await readAll();
    expect(first).to.deep.include({ storeId: "a", origin: "c1#old" });
    expect(last).to.have.property("origin").that.does.not.equal("c1#old");
  });

  it("restamps writes that were stamped ahead, and lists them in a file beside the former state", async () => {
    await write(oneRegister(1), oneRegister(2));
    const { writes, file = "" } = await restampStore({ ...where(), rules: keyRules });
    expect(writes.map(({ key, was, from }) => [key, was, from])).to.deep.equal([
      ["k/1", "c1#old:1", 1_700_000_000_001],
      ["k/2", "c1#old:2", 1_700_000_000_002],
    ]);
    const listed = JSON.parse(await readFile(file, "utf8")) as readonly {
      readonly key: string;
      readonly from: string;
    }[];
    expect(listed.map(({ key, from }) => [key, from])).to.deep.equal([
      ["k/1", "2023-11-14T22:13:20.001Z"],
      ["k/2", "2023-11-14T22:13:20.002Z"],
    ]);
    expect(keysIn(await readAll())).to.deep.equal(["k/1", "k/2"]);
    expect(await restampStore({ ...where(), rules: keyRules })).to.deep.equal({ writes: [] });
  });

  describe("a journal with one changed byte", () => {
    /** Five writes, a frame each; a byte of the third one is changed. */
    const damage = async (third = oneRegister(3)): Promise<void> => {
      await write(oneRegister(1), oneRegister(2), third, oneRegister(4), oneRegister(5));
      const file = join(folder, "journal-0000000000000003.ndjson");
      const bytes = await readFile(file);
      const place = bytes.indexOf('"k/3');
      bytes[place + 3] = (bytes[place + 3] ?? 0) ^ 1;
      await writeFile(file, bytes);
      expect(await codeOf(open())).to.equal("STORE_CORRUPT");
    };

    it("loses only that record; later records are salvaged until the controller has caught up", async () => {
      await damage();
      const { records, behind, lostRecords } = await repairStore(where());
      expect({ records, behind, lostRecords }).to.deep.equal({ records: 4, behind: 2, lostRecords: 1 });
      const found = await readAll();
      expect(found.map((one) => one.t)).to.deep.equal(["apply", "apply", "salvaged", "salvaged", "meta"]);
      expect(found.slice(2, 4).map((one) => one.t === "salvaged" && one.page.registers[0]?.[0])).to.deep.equal([
        "k/4",
        "k/5",
      ]);
      expect(found.at(-1)).to.deep.include({ behind: true });
    });

    it("has the same result when a repair that a crash interrupted at any rename is repeated", async () => {
      await damage();
      const before = await filesOf(folder);
      const copy = dir("copy");
      await cp(folder, copy, { recursive: true });
      const { aside } = await repairStore({ ...where(), folder: copy });
      const made = await filesOf(copy);
      const due = await readAll(copy);
      const lostList = await readFile(join(aside, "lost.json"));
      // Interrupted before the n-th rename: of the former files, the folder itself, the new files.
      for (let renames = 0; renames <= before.length + made.length; renames++) {
        const cut = dir(`cut-${renames}`);
        const hasPlace = renames >= before.length;
        const [fresh, old] = [join(cut, `${hasPlace ? "placing" : "replacing"}-00000000`), join(cut, "damaged-1")];
        for (const path of [cut, fresh, old]) await mkdir(path, { mode: 0o700 });
        for (const [at, name] of before.entries()) await cp(join(folder, name), join(at < renames ? old : cut, name));
        for (const [at, name] of made.entries())
          await cp(join(copy, name), join(before.length + at < renames ? cut : fresh, name));
        await writeFile(join(old, "lost.json"), lostList, { mode: 0o600 });
        expect(await codeOf(open(cut))).to.equal("STORE_CORRUPT");
        const { lostRecords } = await repairStore({ ...where(), folder: cut });
        expect(lostRecords).to.equal(0);
        expect((await readAll(cut)).slice(0, due.length), `after ${renames} renames`).to.deep.equal(due);
        expect(await readFile(join(old, "lost.json"))).to.deep.equal(lostList);
      }
    });

    it("names the lost writes in its result and in a file", async () => {
      await damage();
      const { lost, lostFile = "", aside, notes } = await repairStore(where());
      const expected = [{ key: "k/2", at: "2023-11-14T22:13:20.003Z", writer: "c1", deleted: false }];
      expect(lost).to.deep.equal(expected);
      expect(lostFile.startsWith(`${aside}/`)).to.equal(true);
      expect(JSON.parse(await readFile(lostFile, "utf8"))).to.deep.equal({ lostRecords: 1, lost: expected });
      expect((await stat(lostFile)).mode & 0o777).to.equal(0o600);
      expect(notes.join("\n")).to.match(/bytes are damaged \(at byte 16: .*\nrecord 3 is lost here/);
    });

    it("reads key, time and writer of a lost record that is no valid JSON", async () => {
      await damage(oneRegister(3, 'k/3"q"', null));
      const third = join(folder, "journal-0000000000000003.ndjson");
      const text = await readFile(third, "latin1");
      await writeFile(third, text.replace('{"t":"apply"', '{"t":"ap\u0007ly'), "latin1");
      const { lost } = await repairStore(where());
      expect(lost).to.deep.equal([{ key: 'k/2"q"', at: "2023-11-14T22:13:20.003Z", writer: "c1", deleted: true }]);
    });

    it("merges later records at once if no other controller is left", async () => {
      await damage();
      await repairStore({ ...where(), alone: true });
      const found = await readAll();
      expect(found.map((one) => (one.t === "apply" ? one.upto[0]?.[1] : one.t))).to.deep.equal([1, 2, 4, 5, "meta"]);
      expect(found.at(-1)).to.deep.include({ ready: true, behind: false });
    });

    it("loses nothing if a snapshot has the damaged record", async () => {
      await write(oneRegister(1), oneRegister(2), oneRegister(3));
      await writeSnapshot(realDisk, join(folder, snapshotName(3)), {
        index: 3,
        entries: [1, 2, 3].map((seq) => oneRegister(seq)),
      });
      const third = join(folder, "journal-0000000000000003.ndjson");
      const bytes = await readFile(third);
      bytes[80] = (bytes[80] ?? 0) ^ 1;
      await writeFile(third, bytes);
      expect(await codeOf(open())).to.equal("STORE_CORRUPT");
      const { records, lostRecords, lostFile } = await repairStore(where());
      expect({ records, lostRecords, lostFile }).to.deep.equal({ records: 3, lostRecords: 0, lostFile: undefined });
    });

    it("does not count an incomplete last write as lost", async () => {
      await write(oneRegister(1), oneRegister(2), oneRegister(3));
      const last = join(folder, "journal-0000000000000003.ndjson");
      await truncate(last, (await stat(last)).size - 7);
      const { records, lostRecords, notes } = await repairStore(where());
      expect({ records, lostRecords }).to.deep.equal({ records: 2, lostRecords: 0 });
      expect(notes.join()).to.match(/were never finished/);
    });
  });

  it("repairs to an empty state, with which the controller joins again, if no record is whole", async () => {
    await (await open()).close();
    await writeFile(join(folder, "snapshot-0000000000000009.json"), "rubbish");
    const { records } = await repairStore(where());
    expect(records).to.equal(0);
    expect(await readAll()).to.deep.equal([]);
  });
});
