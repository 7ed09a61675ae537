import { createHash } from "node:crypto";
import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { checkTable, listTables, openTables } from "#engine/partition-backups/saved-tables.ts";
import type { SavedDevice, SaveOccasion } from "#engine/partition-backups/saved-tables.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";
import { problemsOf } from "#support/steps.ts";

const pieces = [Buffer.alloc(4096, 1), Buffer.alloc(512, 2)];
const device: SavedDevice = {
  name: "S1/../x",
  ids: ["serial S1/../x"],
  size: 65_536,
  pieces: pieces.map((bytes, index) => ({
    offset: index * 32_768,
    length: bytes.length,
    sha256: createHash("sha256").update(bytes).digest("hex"),
  })),
  texts: { blkid: 'PTTYPE="gpt"' },
};
const occasion: SaveOccasion = { node: "n1", nodeId: "id1", run: "r1", before: "wipe", grants: [] };

describe("saved tables", () => {
  const at = folderOfEachTest("tables");
  let folder: string;
  let now: number;
  beforeEach(() => void ([folder, now] = [at("tables"), 1000]));

  const keep = async (more: Partial<SavedDevice> = {}, given: Partial<SaveOccasion> = {}) => {
    const save = await openTables(folder, () => now++).open();
    for (const bytes of pieces) await save.add(gzipSync(bytes));
    return save.keep({ ...device, ...more }, { ...occasion, ...given });
  };
  const problem = async (call: () => unknown) => (await problemsOf(call))[0]?.code;

  it("are complete, below the folder, and readable by their owner alone", async () => {
    const { id, isNew } = await keep();
    expect(isNew).to.equal(true);
    const [save] = await listTables(folder);
    expect(save).to.deep.include({ id, ...device });
    expect(save?.file.startsWith(`${folder}/id1/`)).to.equal(true);
    if (save) await checkTable(save);
    for (const name of await readdir(folder, { recursive: true })) {
      const { mode } = await stat(join(folder, name));
      expect((mode & 0o777).toString(8), name).to.equal(/\.(?:gz|json)$/.test(name) ? "600" : "700");
    }
  });

  it("are stored once for equal contents, with every occasion", async () => {
    const first = await keep();
    const other = await keep({ pieces: device.pieces.slice(0, 1) }, { before: "restore" });
    const again = await keep({}, { run: "r2" });
    expect([again.id, again.isNew, other.isNew]).to.deep.equal([first.id, false, true]);
    const saves = await listTables(folder);
    // The save of the last occasion is the newest.
    expect(saves.map(({ id }) => id)).to.deep.equal([other.id, first.id]);
    expect(saves[1]?.occasions.map(({ run }) => run)).to.deep.equal(["r1", "r2"]);
  });

  it("are deleted with their last occasion, when it is forgotten", async () => {
    const first = await keep();
    const again = await keep({}, { run: "r2" });
    await again.forget();
    expect((await listTables(folder)).map(({ occasions }) => occasions.map(({ run }) => run))).to.deep.equal([["r1"]]);
    await first.forget();
    expect(await listTables(folder)).to.deep.equal([]);
  });

  it("leave no file behind when they are dropped", async () => {
    const save = await openTables(folder, () => now).open();
    await save.add(gzipSync("x"));
    await save.drop();
    expect([await readdir(folder), await listTables(folder)]).to.deep.equal([[], []]);
    expect(await listTables(join(folder, "none"))).to.deep.equal([]);
  });

  it("are refused as damaged wherever a byte differs, and stored again", async () => {
    const { id } = await keep();
    const [save] = await listTables(folder);
    if (!save) throw new Error("nothing was kept");
    const whole = await readFile(save.file);
    const flipped = Buffer.from(whole);
    flipped[30] = (flipped[30] ?? 0) ^ 255;
    for (const bytes of [flipped, whole.subarray(0, -30), Buffer.concat([whole, gzipSync("more")]), Buffer.alloc(0)]) {
      await writeFile(save.file, bytes);
      expect(await problem(() => checkTable(save))).to.equal("DISK_SAVE_CORRUPT");
    }
    await writeFile(save.file, whole);
    const description = join(dirname(save.file), "save.json");
    const text = await readFile(description, "utf8");
    for (const changed of [text.replace('"size": 65536', '"size": 65537'), text.slice(0, 100), ""]) {
      await writeFile(description, changed);
      expect(await problem(() => listTables(folder))).to.equal("DISK_SAVE_CORRUPT");
    }
    expect(await keep()).to.include({ id, isNew: true });
    expect((await listTables(folder)).length).to.equal(1);
  });

  it("are stored again where their contents are damaged or missing", async () => {
    for (const [run, damage] of [
      ["r2", (file: string) => writeFile(file, "x")],
      ["r3", (file: string) => rm(file, { force: true })],
    ] as const) {
      await keep();
      await damage((await listTables(folder))[0]?.file ?? "");
      expect(await keep({}, { run })).to.include({ isNew: true });
      const [save] = await listTables(folder);
      expect(save?.occasions.map((one) => one.run)).to.include(run);
      if (save) await checkTable(save);
    }
  });
});
