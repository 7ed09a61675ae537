import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { diskGuid } from "#engine/step/disk-names.ts";
import { tablesFolder } from "#engine/partition-backups/saved-tables.ts";
import { kcoreProgram } from "#support/deploy.ts";
import { TestProject, type CommandEnd } from "#support/kcore.ts";
import { openLoopDisk, type LoopDisk } from "#support/loop-disk.ts";

const states = {
  "states/clear.yaml":
    "params: { disk: { type: string } }\nsteps: [{ id: clear, disk.cleared: { disks: [{ byId: '{{params.disk}}' }] } }]\n",
};

describe("kcore disk restore-table, on this machine (F-18)", () => {
  let project: TestProject;
  let disk: LoopDisk | undefined;

  before(function () {
    project = new TestProject(states);
    chmodSync(project.path, 0o755);
    disk = openLoopDisk(project.path, randomBytes(3 << 20));
    if (!disk) this.skip();
  });
  after(async () => {
    disk?.remove();
    await project.remove();
  });

  const name = (): string => disk?.byId ?? "";
  const restore = (...words: readonly string[]): Promise<CommandEnd> =>
    project.kcore("disk", "restore-table", "here", ...words);
  const clear = (...words: readonly string[]): Promise<CommandEnd> =>
    project.kcore("state", "apply", "clear", "--on", "here", "--params", JSON.stringify({ disk: name() }), ...words);
  const namedGrant = ({ stdout }: CommandEnd): string => /--grant (\S+:[0-9a-f]{16})/.exec(stdout)?.[1] ?? "";
  const namedSave = ({ stdout }: CommandEnd): string =>
    /saved the table of .* \(([0-9a-f]{12})\)/.exec(stdout)?.[1] ?? "";
  /** Clears the disk by a grant of its present contents. */
  const wipe = async (): Promise<CommandEnd> => {
    const wiped = await clear("--grant", namedGrant(await clear()));
    expect(wiped.code, wiped.stdout).to.equal(0);
    return wiped;
  };
  const content = (): Buffer => readFileSync(disk?.image ?? "");

  it("reports a node without saves, an unknown disk and an unknown node", async () => {
    const empty = await restore();
    expect([empty.code, empty.stdout]).to.deep.equal([
      0,
      "Nothing is saved of here: no disk of it was granted to a run of this project.\n",
    ]);
    const unknown = await restore("S1");
    expect([unknown.code, unknown.stderr]).to.satisfy(
      ([code, text]: [number, string]) => code === 2 && text.includes("DISK_SAVE_UNKNOWN"),
    );
    const unknownNode = await project.kcore("disk", "restore-table", "hare");
    expect(unknownNode.stderr).to.contain("ROSTER_NODE_UNKNOWN").and.contain("did you mean “here”");
  });

  it("restores the table once, and saves what it replaces", async () => {
    const before = content();
    const granted = await wipe();
    expect(granted.stdout).to.contain(`here  saved the table of ${name()} before it may be wiped`);

    const dry = await restore(name(), "--dry-run");
    expect([dry.code, content().equals(before)], dry.stdout + dry.stderr).to.deep.equal([0, false]);
    const blank = await restore(name());
    expect([blank.code, content().equals(before)], blank.stdout + blank.stderr).to.deep.equal([0, true]);
    const again = await restore(name(), "--verbose");
    expect(again.stdout).to.contain("disk  in order").and.contain("changed=0");

    // The disk has contents, so that a wipe needs a grant.
    disk?.write(randomBytes(512));
    const other = content();
    const refused = await restore(name());
    expect([refused.code, content().equals(other)]).to.deep.equal([1, true]);
    const grant = namedGrant(refused);
    const back = await restore(name(), "--grant", grant);
    expect([back.code, content().equals(before)], back.stdout).to.deep.equal([0, true]);

    const listed = await restore(name(), "--list", "--output", "json");
    const saves = JSON.parse(listed.stdout) as { save: string; occasions: { before: string }[]; contents: object }[];
    expect(saves.map(({ occasions }) => occasions[0]?.before)).to.have.members(["wipe", "restore", "restore"]);
    const otherSave = saves.findLast(({ occasions }) => occasions.every((one) => one.before === "restore"));
    const last = namedGrant(await restore(name(), "--save", otherSave?.save ?? ""));
    const there = await restore(name(), "--save", otherSave?.save ?? "", "--grant", last);
    expect([there.code, content().equals(other)], there.stdout).to.deep.equal([0, true]);
  });

  it("asks at a terminal, and wipes only for the exact name of the disk", async () => {
    await project.atTerminal(async (shell) => {
      const [{ save = "" } = {}] = JSON.parse((await restore(name(), "--list", "--output", "json")).stdout) as {
        save?: string;
      }[];
      disk?.write(randomBytes(1024));
      const other = content();
      const command = `'${kcoreProgram}' disk restore-table here ${name()} --save ${save} --output plain; echo "ended: $?"`;
      for (const [typed, told] of [
        ["yes", `That is not ${name()}. It is left as it is.`],
        ["", "It is left as it is."],
      ] as const) {
        await shell.enter(`clear; ${command}`);
        await shell.shows(/or only Enter to leave it:$/m);
        await shell.enter(typed);
        expect(await shell.shows(/ended: 1/)).to.contain(told);
        expect(content().equals(other)).to.equal(true);
      }
      await shell.enter(`clear; ${command}`);
      await shell.shows(/or only Enter to leave it:$/m);
      await shell.enter(name());
      await shell.shows(/ended: 0/);
      expect(content().equals(other)).to.equal(false);
    });
  });

  it("restores the table from before the newest wipe, not the save of a refused or of a resumed wipe", async () => {
    disk?.write(randomBytes(3 << 20));
    const before = content();
    // The grant is for other contents than the disk's: nothing is wiped, and no save is kept.
    const refused = await clear("--grant", `${name()}:${"0".repeat(16)}`);
    expect([refused.code, refused.stdout]).to.satisfy(
      ([code, text]: [number, string]) => code === 1 && text.includes("its saved table is not kept"),
    );
    const grant = namedGrant(await clear());
    expect((await clear("--grant", grant)).code).to.equal(0);
    // The mark of a wipe that was cut off lets another run continue that wipe.
    disk?.write(randomBytes(512));
    const [nodeId = ""] = readdirSync(tablesFolder(project.project));
    const mark = join(project.path, "state", "fresh", diskGuid({ node: "here", nodeId }, { byId: name() }));
    writeFileSync(mark, `${grant}\n`);
    const second = await clear("--grant", grant);
    expect(second.code, second.stdout).to.equal(0);
    const back = await restore(name());
    expect([back.code, content().equals(before)], back.stdout + back.stderr).to.deep.equal([0, true]);
  });

  it("refuses a damaged save, another disk size, and a disk whose present table cannot be saved", async () => {
    disk?.write(randomBytes(512));
    const granted = await wipe();
    const save = namedSave(granted);
    disk?.write(randomBytes(512));
    const before = content();

    const folder = tablesFolder(project.project);
    const isOfSave = (path: string): boolean => path.includes(save) && path.endsWith("pieces.gz");
    const pieces = join(folder, readdirSync(folder, { recursive: true, encoding: "utf8" }).find(isOfSave) ?? "");
    const bytes = readFileSync(pieces);
    writeFileSync(pieces, bytes.subarray(0, -20));
    expect((await restore(name(), "--save", save)).stderr).to.contain("DISK_SAVE_CORRUPT");
    writeFileSync(pieces, bytes);

    const apply = (size: number, ...more: readonly string[]): Promise<CommandEnd> => {
      const saved = { source: copy, pieces: [{ offset: 0, length: 512, sha256: "0".repeat(64) }] };
      const params = JSON.stringify({ kind: "disk", disk: { byId: name() }, size, ...saved });
      return project.kcore("state", "apply", "kcore/restore-table", "--on", "here", "--params", params, ...more);
    };
    const copy = join(project.path, "pieces.gz");
    writeFileSync(copy, bytes);
    const size = disk?.size ?? 0;
    expect((await apply(size - 1024 ** 2)).stdout).to.contain("DISK_SAVE_UNFIT");
    const mayRestore = ["--grant", `${name()}:restore`];
    const refused = await apply(size, ...mayRestore);
    const grant = namedGrant(refused);
    expect(grant, refused.stdout).to.not.equal("");
    // The folder of saves refuses new files.
    renameSync(folder, `${folder}.away`);
    writeFileSync(folder, "");
    try {
      const unsaved = await apply(size, ...mayRestore, "--grant", grant);
      expect(unsaved.stdout).to.contain("could not be saved").and.contain("DISK_NOT_SAVED");
    } finally {
      rmSync(folder);
      renameSync(`${folder}.away`, folder);
    }
    expect(content().equals(before)).to.equal(true);
  });

  it("removes only its own mark when the restored LUKS header holds a path as its UUID (S-6)", async () => {
    const victim = join(project.path, "state", "victim");
    writeFileSync(victim, "dear");
    // LUKS On-Disk Format: the UUID is 40 bytes of text.
    const header = Buffer.alloc(1 << 20);
    header.write("LUKS\xba\xbe\0\x02", 0, "latin1");
    header.writeBigUInt64BE(16384n, 8);
    header.write("../victim", 168);
    disk?.write(Buffer.alloc(4 << 20));
    disk?.write(header);
    const before = content();
    const granted = await wipe();
    const save = namedSave(granted);
    disk?.write(Buffer.alloc(4 << 20));
    const back = await restore(name(), "--save", save);
    expect([back.code, content().equals(before)], back.stdout).to.deep.equal([0, true]);
    expect(existsSync(victim)).to.equal(true);
  });
});
