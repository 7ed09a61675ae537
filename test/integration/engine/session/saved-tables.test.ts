import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { expect } from "chai";
import { FrameReader } from "#engine/program/frames.ts";
import { savingText } from "#engine/program/without-runner.ts";
import { SaveReader } from "#engine/session/save-frames.ts";
import type { Step } from "#engine/step/define.ts";
import { diskFunctions } from "#engine/step/fragments/disk-functions.ts";
import { grantedFunction, grantFunctions } from "#engine/step/fragments/granted.ts";
import { sh } from "#engine/step/sh.ts";
import { masterBootRecord, openLoopDisk, type LoopDisk } from "#support/loop-disk.ts";
import { draftOf, performOn, sessionOn } from "#support/sessions.ts";
import { shellsOf } from "#support/shells.ts";
import { runStepOn, shells } from "#support/steps.ts";
import { MemoryTables } from "#support/tables.ts";

const MiB = 1024 ** 2;
const fingerprint = "0123456789abcdef";

describe("saving a disk's table before a granted wipe, on this machine (F-18, ADR 0012)", () => {
  let folder: string;
  let disk: LoopDisk | undefined;
  let tables: MemoryTables;

  before(function () {
    folder = mkdtempSync(join(tmpdir(), "kcore-tables-"));
    chmodSync(folder, 0o755);
    disk = openLoopDisk(folder, masterBootRecord([1, 16], [17, 47]));
    if (!disk) this.skip();
  });
  after(() => {
    disk?.remove();
    rmSync(folder, { recursive: true, force: true });
  });
  beforeEach(() => {
    tables = new MemoryTables();
  });

  const name = (): string => basename(folder);
  const grant = (): string => `${name()}:${fingerprint}`;
  /** A step that wipes only with a grant. */
  const wipe = (): Step => ({
    want: { wiped: "yes" },
    probe: sh`[ ! -e ${join(folder, "wiped")} ] && fact wiped no || fact wiped yes`,
    guard: sh`${grantedFunction}
granted ${grant()} || refuse DISK_HAS_DATA "it holds data"`,
    apply: sh`: >${join(folder, "wiped")}`,
  });
  type Options = NonNullable<Parameters<typeof sessionOn>[1]>;
  const settings = (options: Options): Options => ({ grants: [grant()], tables, ...options });
  const perform = async (options: Options = {}, step = wipe()) => {
    const run = await performOn(join(folder, "state"), [draftOf("wipe", step)], settings(options));
    rmSync(join(folder, "wiped"), { force: true });
    return { ...run, end: run.problem ? `${run.problem.code} ${run.problem.message}` : run.outcome };
  };

  it("saves every byte of the table before the first segment is sent", async () => {
    const { end, events } = await perform();
    expect(end).to.equal("done");
    const types = events.map(({ type }) => type);
    expect(types.indexOf("node.saved")).to.be.greaterThan(types.indexOf("node.connected"));
    expect(types.indexOf("node.segment")).to.be.greaterThan(types.indexOf("node.saved"));
    const [kept] = tables.kept;
    expect(kept?.device.size).to.equal(64 * MiB);
    expect(kept?.occasion.before).to.equal("wipe");
    expect(kept?.device.ids).to.include(`byId ${name()}`);
    const image = readFileSync(disk?.image ?? "");
    const bytes = gunzipSync(kept?.gzip ?? "");
    let at = 0;
    for (const { offset, length, sha256 } of kept?.device.pieces ?? []) {
      expect(bytes.subarray(at, at + length).equals(image.subarray(offset, offset + length)), String(offset)).to.equal(
        true,
      );
      expect(
        createHash("sha256")
          .update(image.subarray(offset, offset + length))
          .digest("hex"),
      ).to.equal(sha256);
      at += length;
    }
    expect(at).to.equal(bytes.length);
    // The beginning, both partitions' beginnings, and the end, which has the table's other copy.
    const [first] = kept?.device.pieces ?? [];
    const last = kept?.device.pieces.at(-1);
    expect([first?.offset, (last?.offset ?? 0) + (last?.length ?? 0)]).to.deep.equal([0, 64 * MiB]);
    expect(kept?.device.texts["blkid"]).to.contain('PTTYPE="dos"');
  });

  it("keeps a save only if the wipe followed, or if its end is unknown", async () => {
    const held = { ...wipe(), guard: sh`refuse DISK_IN_USE "it is mounted"` };
    const refused = await perform({ grants: [grant(), `${name()}:${"f".repeat(16)}`] }, held);
    expect(tables.forgotten).to.deep.equal([name()]);
    expect(refused.events.slice(-2).map(({ type }) => type)).to.deep.equal(["node.unsaved", "node.finished"]);
    // The end of a lost node's wipe is not known, so its save stays.
    const lost = sessionOn(join(folder, "state"), settings({}));
    await lost.session.perform([{ stage: "s", drafts: [draftOf("wipe", held)] }]);
    await lost.session.finish("unreachable");
    const done = { ...wipe(), apply: sh`wiping ${fingerprint}; : >${join(folder, "wiped")}` };
    expect((await perform({}, done)).end).to.equal("done");
    expect(tables.forgotten).to.deep.equal([name()]);
    expect(tables.kept.map(({ occasion }) => occasion.grants)).to.deep.equal([
      [grant(), `${name()}:${"f".repeat(16)}`],
      [grant()],
      [grant()],
    ]);
  });

  it("withholds the grant when the save cannot be kept", async () => {
    tables.failure = new Error("no space left on device");
    const { end, events } = await perform();
    expect(end).to.match(/^DISK_NOT_SAVED .*no space left on device$/);
    expect(events.some(({ type }) => type === "warning")).to.equal(true);
    expect(tables.dropped).to.equal(1);
  });

  it("saves nothing for a disk that the node does not have", async () => {
    const other = `${name()}-other:${fingerprint}`;
    const { end, events } = await perform({ grants: [other] });
    expect(end).to.match(/^DISK_HAS_DATA /);
    // Other nodes of the run may have the disk.
    expect(events.some(({ type }) => type === "warning")).to.equal(false);
    expect(tables.kept).to.deep.equal([]);
  });

  it("saves nothing when two arrays have the granted name", async () => {
    const other = mkdtempSync(join(tmpdir(), "kcore-other-"));
    const second = openLoopDisk(other, Buffer.alloc(512, 1));
    const array = name().replaceAll("-", "_");
    const links = { [`any:${array}`]: disk?.device ?? "", [`host:${array}`]: second?.device ?? "" };
    try {
      for (const [link, device] of Object.entries(links)) symlinkSync(device, `/dev/disk/by-id/md-name-${link}`);
      const { events } = await perform({ grants: [`md/${array}:${fingerprint}`] });
      expect(tables.kept).to.deep.equal([]);
      expect(JSON.stringify(events)).to.contain("several disks have this name");
    } finally {
      for (const link of Object.keys(links)) rmSync(`/dev/disk/by-id/md-name-${link}`, { force: true });
      second?.remove();
      rmSync(other, { recursive: true });
    }
  });

  it("costs no exchange without a grant or in a dry run", async () => {
    for (const [options, wanted] of [
      [{ grants: [] }, /^DISK_HAS_DATA /],
      [{ dryRun: true }, /^done$/],
    ] as const) {
      const { end, events, session } = await perform(options);
      expect(end).to.match(wanted);
      expect(events.filter(({ type }) => type === "node.saved")).to.deep.equal([]);
      expect(session.exchanges).to.equal(1);
    }
    expect(tables.kept).to.deep.equal([]);
  });

  it("saves once a session, and again when the run is resumed", async () => {
    const shared = { runId: "resumed", nonce: "1".repeat(32) };
    const first = sessionOn(join(folder, "state"), settings(shared));
    await first.session.perform([]);
    await first.session.perform([{ stage: "s", drafts: [draftOf("wipe", wipe())] }]);
    await first.session.finish("done");
    rmSync(join(folder, "wiped"));
    expect(tables.kept.length).to.equal(1);
    expect((await perform({ ...shared, resumed: true })).end).to.equal("done");
    expect(tables.kept.length).to.equal(2);
  });

  describe("a disk named by its path", () => {
    const places = "/dev/disk/by-path";
    let isOurs: boolean;
    before(() => {
      isOurs = !existsSync(places);
      mkdirSync(places, { recursive: true });
      symlinkSync(disk?.device ?? "", join(places, `pci-${name()}`));
    });
    after(() => {
      rmSync(join(places, `pci-${name()}`));
      if (isOurs) rmdirSync(places);
    });

    it("is saved under that name", async () => {
      await perform({ grants: [`pci-${name()}:${fingerprint}`] });
      expect(tables.kept.map(({ device }) => device.name)).to.deep.equal([`pci-${name()}`]);
      expect(tables.kept[0]?.device.ids).to.include.members([`byId ${name()}`, `busPath pci-${name()}`]);
    });

    for (const shell of shellsOf(import.meta.filename))
      it(`is granted by its serial number, or by its path when it has none, on ${shell}`, async () => {
        const wanted = async (ids: string): Promise<string | undefined> => {
          const probe = sh`${diskFunctions}
${grantFunctions}
disk_ids() { echo ${ids}; }
device= disk=
is_granted sdb ${`pci-${name()}`} /none x sdb || fact grant "$grant"`;
          const { have } = await runStepOn(shell, { want: {}, probe });
          return have?.["grant"]?.replace(/:[0-9a-f]{16}$/, "");
        };
        expect(await wanted("sdb serial S1")).to.equal("S1");
        expect(await wanted("sda serial S1")).to.equal(`pci-${name()}`);
      });
  });

  for (const shell of shellsOf(import.meta.filename, [...shells, "mksh"]))
    it(`saves the same on ${shell}`, async function () {
      const nonce = "2".repeat(32);
      const [program = "", ...words] = shell.split(" ");
      const text = savingText({ nonce, stateDir: join(folder, "state"), runId: "r" }, [name(), "no'such $(disk)"]);
      const { stdout, error } = spawnSync(program, [...words, "-c", 'IFS= read -r k; eval "$k"'], {
        input: text,
        maxBuffer: 1 << 28,
      });
      if (error) return this.skip();
      const reader = new SaveReader([name(), "other"], tables, () => ({
        node: "n1",
        nodeId: "1",
        run: "r",
        before: "wipe",
        grants: [],
      }));
      for (const frame of new FrameReader(nonce).push(stdout)) await reader.take(frame);
      expect([reader.isWhole, tables.kept.length]).to.deep.equal([true, 1]);
      expect(reader.results.get("other")).to.include({ isAbsent: true });
    });

  it("saves everything before the data of a LUKS container", async () => {
    // LUKS2 On-Disk Format, 3: the part that is read.
    const header = Buffer.alloc(16 * MiB);
    header.write("LUKS\xba\xbe\0\x02", 0, "latin1");
    header.writeBigUInt64BE(16384n, 8);
    header.write(JSON.stringify({ segments: { 0: { type: "crypt", offset: String(12 * MiB) } } }), 4096);
    const before = readFileSync(disk?.image ?? "");
    try {
      disk?.write(header);
      const { stdout } = spawnSync("blkid", ["-p", disk?.device ?? ""], { encoding: "utf8" });
      expect(stdout).to.contain("crypto_LUKS");
      await perform();
      const covered = (tables.kept[0]?.device.pieces ?? []).filter(({ offset }) => offset < 13 * MiB);
      expect(covered.at(-1)).to.include({ offset: 12 * MiB, length: MiB });
    } finally {
      disk?.write(before);
    }
  });
});
