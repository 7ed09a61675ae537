import { expect } from "chai";
import { diskRestored } from "#engine/modules/disk-restored.ts";
import { contextOf, runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const sha256 = "0".repeat(64);
const MiB = 1024 ** 2;
const args = {
  disk: { serial: "S1" },
  size: 64 * MiB,
  source: "pieces.gz",
  pieces: [
    { offset: 0, length: 4 * MiB, sha256 },
    { offset: 63 * MiB - 512, length: MiB + 512, sha256 },
  ],
};
const context = contextOf({ files: { "pieces.gz": "packed" } });

describe("disk.restored", () => {
  it("wants what was saved, and the kernel's partitions to be the table's", () => {
    const { want } = stepOf(diskRestored, args, context);
    expect(want).to.deep.equal({ bytes: "as saved", partitions: "as the table says" });
  });

  it("takes only what a save can say", () => {
    const accepts = (more: object): boolean => diskRestored.args.safeParse({ ...args, ...more }).success;
    const [first, last] = args.pieces;
    expect(accepts({})).to.equal(true);
    expect(accepts({ disk: undefined, vg: "vg_a", lv: "a" })).to.equal(true);
    expect(accepts({ disk: undefined, array: "a" })).to.equal(true);
    expect(accepts({ disk: undefined })).to.equal(false);
    expect(accepts({ array: "a" })).to.equal(false);
    expect(accepts({ pieces: [] })).to.equal(false);
    expect(accepts({ pieces: [last, first] })).to.equal(false);
    expect(accepts({ pieces: [first, { ...last, offset: 4 * MiB - 512 }] })).to.equal(false);
    expect(accepts({ pieces: [{ ...first, length: 100 }] })).to.equal(false);
    expect(accepts({ pieces: [{ ...first, sha256: "x" }] })).to.equal(false);
    expect(accepts({ size: 32 * MiB })).to.equal(false);
  });

  it("writes each piece at its place, in blocks that fit", () => {
    const { apply } = stepOf(diskRestored, args, context);
    // From the end of the first to the second there are 59 MiB less a sector.
    expect(String(apply)).to.contain(`'1048576 0 4\n512 ${(59 * MiB - 512) / 512} ${(MiB + 512) / 512}'`);
  });

  it("forgets the recovery key of a container that came back: its header may hold another", () => {
    expect(String(stepOf(diskRestored, args, context).apply)).to.contain('/etc/kcore/luks"/$uuid.recovery"');
  });

  for (const shell of shellsOf(import.meta.filename))
    it(`refuses a disk that is not there, and changes nothing, on ${shell} (F-18)`, async () => {
      const run = await runStepOn(shell, stepOf(diskRestored, args, context), { bin: { lsblk: "exit 1" } });
      expect([run.outcome, run.problem?.code]).to.deep.equal(["failed", "DISK_NOT_FOUND"]);
    });
});
