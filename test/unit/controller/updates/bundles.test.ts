import { createHash, randomBytes } from "node:crypto";
import { mkdir, readdir, readFile, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { Refused } from "#controller/cluster/refused.ts";
import { realDisk, type StoreDisk, type DiskFile } from "#controller/store/durable-disk.ts";
import {
  openBundleStore,
  bundlesToRemove,
  type BundleStore,
  type BundleStoreOptions,
  type BundleState,
} from "#controller/updates/bundles.ts";
import { folderOfEachTest } from "../../../support/temp-dir.ts";

const sha256Of = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
const gibibyte = 2 ** 30;

describe("the bundles on a controller's disk", () => {
  const dir = folderOfEachTest("bundles");
  let folder: string;
  const bytes = randomBytes(300_000);
  const sha256 = sha256Of(bytes);

  beforeEach(() => (folder = dir("bundles")));

  const open = (more: Partial<BundleStoreOptions> = {}): BundleStore =>
    openBundleStore({ folder, isNeeded: () => false, ...more });
  const put = (store: BundleStore, offset: number, length = 100_000, of: Buffer = bytes): Promise<BundleState> =>
    store.put(sha256Of(of), { offset, size: of.length, data: of.subarray(offset, offset + length) });
  const putAll = async (store: BundleStore, of: Buffer): Promise<void> => {
    expect(await put(store, 0, of.length, of)).to.deep.equal({ held: of.length, whole: true });
  };
  const read = async (store: BundleStore, name = sha256): Promise<Buffer> => {
    const { file } = await store.open(name);
    const content = await file.readFile();
    await file.close();
    return content;
  };
  const refusal = (work: Promise<unknown>): Promise<string> =>
    work.then(
      () => "taken",
      (error: unknown) => (error instanceof Refused ? `${error.status} ${error.code}` : String(error)),
    );
  /** The real disk, with these changes to its files. */
  const diskWith = (changed: (file: DiskFile) => Partial<DiskFile>): StoreDisk => {
    const wrapped =
      (open: StoreDisk["edit"]): StoreDisk["edit"] =>
      async (...args) => {
        const file = await open(...args);
        return { ...file, ...changed(file) };
      };
    return { ...realDisk, create: wrapped(realDisk.create), edit: wrapped(realDisk.edit) };
  };

  it("are stored piece by piece, each answered with the next offset, and can be opened when complete", async () => {
    const store = open();
    expect(await store.list()).to.deep.equal([]);
    expect(await put(store, 0)).to.deep.equal({ held: 100_000, whole: false });
    expect(await store.list()).to.deep.equal([{ sha256, held: 100_000, whole: false }]);
    expect(await refusal(store.open(sha256))).to.equal("404 UPDATE_BUNDLE_UNKNOWN");
    expect(await put(store, 100_000)).to.deep.equal({ held: 200_000, whole: false });
    expect(await put(store, 200_000)).to.deep.equal({ held: 300_000, whole: true });
    expect(await store.list()).to.deep.equal([{ sha256, held: 300_000, whole: true }]);
    expect((await read(store)).equals(bytes)).to.equal(true);
    expect(await readdir(folder)).to.deep.equal([sha256]);
    expect(((await stat(folder)).mode & 0o777).toString(8)).to.equal("700");
    expect(((await stat(join(folder, sha256))).mode & 0o777).toString(8)).to.equal("600");
  });

  it("accept only the next piece, and none once complete", async () => {
    const store = open();
    expect(await put(store, 100_000)).to.deep.equal({ held: 0, whole: false });
    expect(await store.list()).to.deep.equal([]);
    await put(store, 0);
    expect(await put(store, 0)).to.deep.equal({ held: 100_000, whole: false });
    expect(await put(store, 200_000)).to.deep.equal({ held: 100_000, whole: false });
    expect(await put(store, 100_000, 200_000)).to.deep.equal({ held: 300_000, whole: true });
    expect(await store.put(sha256, { offset: 0, size: 3, data: Buffer.from("abc") })).to.deep.equal({
      held: 300_000,
      whole: true,
    });
  });

  it("are stored once by concurrent uploads", async () => {
    const store = open();
    const upload = async (): Promise<void> => {
      for (let held: BundleState = { held: 0, whole: false }; !held.whole;) held = await put(store, held.held, 7_000);
    };
    await Promise.all([upload(), upload(), upload()]);
    expect((await read(store)).equals(bytes)).to.equal(true);
  });

  it("are dropped if their SHA-256 is not their name, and can be uploaded again", async () => {
    const store = open();
    await put(store, 0);
    const other = randomBytes(200_000);
    expect(await store.put(sha256, { offset: 100_000, size: bytes.length, data: other })).to.deep.equal({
      held: 0,
      whole: false,
    });
    expect(await readdir(folder)).to.deep.equal([]);
    await putAll(store, bytes);
  });

  it("are resumed after a restart at the bytes that had reached the disk", async () => {
    for (const reached of [100_000, 100_001, 163_840, 299_999]) {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await writeFile(join(folder, `${sha256}.part`), bytes.subarray(0, reached));
      const store = open();
      expect(await put(store, 100_000)).to.deep.equal({ held: reached === 100_000 ? 200_000 : reached, whole: false });
      const held = Math.max(reached, 200_000 * Number(reached === 100_000));
      expect(await put(store, held, 300_000)).to.deep.equal({ held: 300_000, whole: true });
      expect((await read(store)).equals(bytes), String(reached)).to.equal(true);
      await realDisk.unlink(join(folder, sha256));
    }
  });

  it("are verified after a restart if complete but not yet verified", async () => {
    await mkdir(folder, { mode: 0o700 });
    await writeFile(join(folder, `${sha256}.part`), bytes);
    expect(await put(open(), 300_000)).to.deep.equal({ held: 300_000, whole: true });
  });

  it("are removed if damaged on the disk, and can be uploaded again", async () => {
    await putAll(open(), bytes);
    const damaged = Buffer.from(bytes);
    damaged[150_000] = (damaged[150_000] ?? 0) ^ 1;
    await writeFile(join(folder, sha256), damaged);
    const store = open();
    expect(await refusal(store.open(sha256))).to.equal("404 UPDATE_BUNDLE_UNKNOWN");
    await putAll(store, bytes);
    expect((await read(store)).equals(bytes)).to.equal(true);
  });

  it("are refused with 507 while the disk is full, and resumed when there is room", async () => {
    let isFull = false;
    const disk = diskWith((file) => ({
      async write(data, position) {
        if (!isFull) return file.write(data, position);
        // A part of it fits.
        await file.write(data.subarray(0, 10), position);
        throw Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" });
      },
    }));
    const store = open({ disk });
    await put(store, 0);
    isFull = true;
    expect(await refusal(put(store, 100_000))).to.equal("507 UPDATE_BUNDLE_NO_ROOM");
    expect(await store.list()).to.deep.equal([{ sha256, held: 100_000, whole: false }]);
    isFull = false;
    expect(await put(store, 100_000, 200_000)).to.deep.equal({ held: 300_000, whole: true });
  });

  it("are refused with 507 if less than 128 MiB would be left for the controller's state", async () => {
    let free = 128 * 2 ** 20 + 299_999;
    const store = open({ freeBytes: () => Promise.resolve(free) });
    expect(await refusal(put(store, 0))).to.equal("507 UPDATE_BUNDLE_NO_ROOM");
    expect(await readdir(folder)).to.deep.equal([]);
    free += 1;
    await putAll(store, bytes);
  });

  it("do not count a piece whose sync failed", async () => {
    let fails = true;
    const disk = diskWith((file) => ({
      sync: () => (fails ? Promise.reject(Object.assign(new Error("EIO"), { code: "EIO" })) : file.sync()),
    }));
    const store = open({ disk });
    expect(await refusal(put(store, 0))).to.equal("Error: EIO");
    fails = false;
    expect(await put(store, 0)).to.deep.equal({ held: 100_000, whole: false });
  });

  it("are refused with a name that is no SHA-256, beyond their size, or above 1 GiB", async () => {
    const store = open();
    const names = ["../x", "", ".", `${sha256}.part`, sha256.toUpperCase(), `${sha256}/..`, `a/${sha256.slice(2)}`];
    for (const name of names) {
      expect(await refusal(store.put(name, { offset: 0, size: 1, data: Buffer.of(1) })), name).to.equal(
        "400 API_INVALID",
      );
      expect(await refusal(store.open(name)), name).to.equal("400 API_INVALID");
    }
    expect(await refusal(store.put(sha256, { offset: 2, size: 3, data: Buffer.alloc(2) }))).to.equal("400 API_INVALID");
    const huge = { offset: 0, size: gibibyte + 1, data: Buffer.of(1) };
    expect(await refusal(store.put(sha256, huge))).to.equal("413 API_INVALID");
  });

  it("are neither read nor written through symbolic links, and other files are not listed", async () => {
    await mkdir(folder, { mode: 0o700 });
    await writeFile(dir("secret"), "secret");
    await symlink(dir("secret"), join(folder, `${sha256}.part`));
    await symlink(dir("secret"), join(folder, sha256Of(Buffer.from("secret"))));
    await writeFile(join(folder, "notes"), "");
    await mkdir(join(folder, "0".repeat(64)));
    const store = open();
    expect(await refusal(put(store, 6))).to.match(/ELOOP/);
    expect(await refusal(store.open(sha256Of(Buffer.from("secret"))))).to.match(/ELOOP/);
    expect(await readFile(dir("secret"), "utf8")).to.equal("secret");
    expect((await store.list()).map(({ sha256 }) => sha256)).to.not.include("0".repeat(64));
  });

  it("are kept if an update needs them, and otherwise the newest four", async () => {
    const all = Array.from({ length: 7 }, (_, index) => randomBytes(100 + index));
    const names = all.map(sha256Of);
    const needed = new Set([names[0]]);
    const store = open({ isNeeded: (name) => needed.has(name) });
    for (const [index, one] of all.entries()) {
      await putAll(store, one);
      await utimes(join(folder, sha256Of(one)), index, index);
    }
    expect((await store.list()).map((one) => one.sha256)).to.have.members([names[0], ...names.slice(3)]);
  });

  it("include incomplete ones in the limit of four", async () => {
    const store = open();
    for (let index = 0; index < 9; index++) await put(store, 0, 10, randomBytes(100));
    expect(await store.list()).to.have.length(4);
  });

  it("are limited to 2 GiB that no update needs", () => {
    const one = (name: string, changed: number) => ({ sha256: name, whole: true, bytes: gibibyte * 0.75, changed });
    const all = [one("old", 1), one("middle", 2), one("new", 3), one("coming", 0), one("needed", 0)];
    const found = bundlesToRemove(all, { coming: "coming", isNeeded: (name) => name === "needed" });
    expect(found.map(({ sha256 }) => sha256)).to.deep.equal(["old"]);
  });
});
