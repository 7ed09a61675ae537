import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import { repairStore, restoreStore } from "#controller/store/restore.ts";
import { openStore } from "#controller/store/store.ts";
import type { DurableStore } from "#controller/store/store.ts";
import { codeOf } from "../../../support/rejection.ts";
import { makeTempDir } from "../../../support/temp-dir.ts";
import type { TempDir } from "../../../support/temp-dir.ts";

type Meta = JournalRecord & { readonly t: "meta" };
const record = (hlc: string): JournalRecord => ({ t: "meta", hlc, origin: "c1#old" });

describe("a controller's backup, restore and repair", () => {
  let dir: TempDir;
  let folder: string;
  const open = (at = folder): Promise<DurableStore> =>
    openStore({ folder: at, limits: { segmentBytes: 10 }, onBroken: () => undefined });
  const write = async (store: DurableStore, ...texts: readonly string[]): Promise<void> => {
    for (const text of texts) await store.append([record(text)]);
  };
  const readAll = async (at = folder): Promise<readonly Meta[]> => {
    const store = await open(at);
    const found = [...store.recovered] as Meta[];
    await store.close();
    return found;
  };
  const where = (): { folder: string; id: string; now: number } => ({ folder, id: "c1", now: 0 });
  const backUp = async (...texts: readonly string[]): Promise<string> => {
    const store = await open();
    const all: JournalRecord[] = [];
    store.attach(() => Promise.resolve(all));
    for (const text of texts) {
      all.push(record(text));
      await write(store, text);
    }
    const file = join(dir.path, "backup.json");
    await writeFile(file, await store.backup());
    await write(store, "after the backup");
    await store.close();
    return file;
  };

  beforeEach(async () => {
    dir = await makeTempDir("restore");
    folder = join(dir.path, "db");
  });
  afterEach(() => dir.remove());

  it("restores a backup as a new incarnation, and keeps what was there (F-26)", async () => {
    const file = await backUp("a", "b");
    const { aside, records } = await restoreStore({ file, ...where() });
    expect(records).to.equal(2);
    const found = await readAll();
    expect(found.slice(0, 2).map(({ hlc }) => hlc)).to.deep.equal(["a", "b"]);
    expect(found.at(-1)?.origin).to.match(/^c1#[0-9a-f]{8}$/);
    expect((await readdir(aside)).some((name) => name.startsWith("journal-"))).to.equal(true);
    expect((await stat(aside)).mode & 0o777).to.equal(0o700);
  });

  it("restores into an empty folder", async () => {
    const file = await backUp("a");
    folder = join(dir.path, "other");
    await restoreStore({ file, ...where() });
    expect((await readAll())[0]?.hlc).to.equal("a");
  });

  it("goes on after a restore like any other store", async () => {
    const file = await backUp("a");
    await restoreStore({ file, ...where() });
    const store = await open();
    await write(store, "c");
    await store.close();
    expect((await readAll()).map(({ hlc }) => hlc)).to.deep.equal(["a", undefined, "c"]);
  });

  it("changes nothing while the controller runs", async () => {
    const file = await backUp("a");
    const store = await open();
    expect(await codeOf(restoreStore({ file, ...where() }))).to.equal("STORE_LOCKED");
    expect(await codeOf(repairStore(where()))).to.equal("STORE_LOCKED");
    await store.close();
  });

  it("changes nothing when the backup is damaged", async () => {
    const file = await backUp("a", "b");
    const before = await readAll();
    const bytes = await readFile(file);
    bytes[bytes.length - 5] = 0x20;
    await writeFile(file, bytes);
    expect(await codeOf(restoreStore({ file, ...where() }))).to.equal("STORE_CORRUPT");
    expect(await codeOf(restoreStore({ ...where(), file: join(dir.path, "none") }))).to.equal("FILE_UNREADABLE");
    expect(await readAll()).to.deep.equal(before);
  });

  it("does not let a controller start on an interrupted restore", async () => {
    const file = await backUp("a");
    await mkdir(join(folder, "restoring-00000000"));
    expect(await codeOf(open())).to.equal("STORE_CORRUPT");
    await restoreStore({ file, ...where() });
    expect((await readAll())[0]?.hlc).to.equal("a");
  });

  it("repairs: keeps what is whole up to the damage, and all of the rest aside", async () => {
    const store = await open();
    await write(store, "a", "b", "c", "d");
    await store.close();
    const second = join(
      folder,
      (await readdir(folder)).filter((name) => name.startsWith("journal-")).toSorted()[1] ?? "",
    );
    const bytes = await readFile(second);
    bytes[60] = (bytes[60] ?? 0) ^ 1;
    await writeFile(second, bytes);
    expect(await codeOf(open())).to.equal("STORE_CORRUPT");
    const { notes, records, aside } = await repairStore(where());
    expect(records).to.equal(1);
    expect(notes.join()).to.match(/at byte 16: a frame's checksum is wrong/);
    expect(await readFile(join(aside, second.slice(folder.length + 1)))).to.deep.equal(bytes);
    expect((await readAll()).map(({ hlc, origin }) => [hlc, origin === "c1#old"])).to.deep.equal([
      ["a", true],
      [undefined, false],
    ]);
  });

  it("repairs to an empty state when nothing is whole: then the controller joins anew", async () => {
    await (await open()).close();
    await writeFile(join(folder, "snapshot-0000000000000009.json"), "rubbish");
    const { records } = await repairStore(where());
    expect(records).to.equal(0);
    expect(await readAll()).to.deep.equal([]);
  });
});
