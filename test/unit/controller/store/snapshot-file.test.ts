import { expect } from "chai";
import { readSnapshot, snapshotName, writeSnapshot } from "#controller/store/snapshot-file.ts";
import { problemsOfRejection } from "#support/problems.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";

const path = `/db/${snapshotName(3)}`;

describe("a snapshot's file", () => {
  const written = async (): Promise<{ disk: MemoryDisk; bytes: Buffer }> => {
    const disk = new MemoryDisk();
    await writeSnapshot(disk, path, { index: 3, entries: [{ n: 1 }, { n: 2 }] });
    return { disk, bytes: disk.contentOf(path) };
  };
  const refused = async (bytes: Buffer, name = path): Promise<string> => {
    const disk = new MemoryDisk();
    disk.place(name, bytes);
    return (await problemsOfRejection(readSnapshot(disk, name))).join();
  };

  it("has the written entries", async () => {
    const { disk } = await written();
    const { index, entries } = await readSnapshot(disk, path);
    expect([index, ...entries]).to.deep.equal([3, { n: 1 }, { n: 2 }]);
  });

  it("is refused with a changed byte, another length, or another snapshot's name", async () => {
    const { bytes } = await written();
    const changed = Buffer.from(bytes.toString("latin1").replace('{"n":2}', '{"n":3}'), "latin1");
    expect(await refused(changed)).to.match(/its checksum does not match.*STORE_CORRUPT/);
    for (const wrong of [bytes.subarray(0, -1), Buffer.concat([bytes, Buffer.from("[]\n")])])
      expect(await refused(wrong)).to.match(/it has \d+ bytes where 18 belong.*STORE_CORRUPT/);
    expect(await refused(bytes, `/db/${snapshotName(4)}`)).to.match(/the snapshot 3 under another's name/);
  });
});
