import { expect } from "chai";
import { keyRules } from "#controller/cluster/registers.ts";
import { StateJournal } from "#controller/store/journal.ts";
import { decodeFrame, encodeFrame } from "#controller/store/journal-frames.ts";
import { recover, type Recovered } from "#controller/store/recover.ts";
import { segmentHead, segmentName } from "#controller/store/segments.ts";
import { snapshotName, writeSnapshot } from "#controller/store/snapshot-file.ts";
import { ControllerDatabase } from "#controller/store/database.ts";
import { codeOf } from "../../../support/rejection.ts";
import { MemoryDisk } from "../../../support/memory-disk.ts";

const folder = "/db";
const path = `${folder}/journal-0000000000000001.ndjson`;
const sector = 512;

/** The bytes of a journal with a frame for each group of records, and the offset of the last frame. */
async function journalOf(...groups: readonly (readonly string[])[]): Promise<{ bytes: Buffer; last: number }> {
  const disk = new MemoryDisk();
  const options = { folder, disk, segments: [], end: 0, next: 1, segmentBytes: 1e9, onBroken: () => undefined };
  const journal = await StateJournal.open(options);
  let last = 0;
  for (const records of groups) {
    last = disk.paths().includes(path) ? disk.contentOf(path).length : 16;
    await journal.append(records);
  }
  return { bytes: disk.contentOf(path), last };
}

async function recoverFrom(bytes: Buffer): Promise<Recovered> {
  const disk = new MemoryDisk();
  disk.place(path, bytes);
  return recover(disk, folder);
}

const padded = (size: number): string => JSON.stringify({ t: "meta", storeId: "x".repeat(Math.max(0, size - 24)) });

describe("a journal", () => {
  it("F-29: has frames in this format", () => {
    expect(encodeFrame(7, ['{"a":1}', '{"b":2}'], 0).toString("latin1")).to.equal(
      '#00000010 60c39c9b 00000000000007 000002\n{"a":1}\n{"b":2}\n',
    );
  });

  it("is refused with an incomplete write before its last segment", async () => {
    const { bytes } = await journalOf(["1"], ["2"]);
    const disk = new MemoryDisk();
    disk.place(path, Buffer.concat([bytes, Buffer.from("#000000")]));
    const next = Buffer.concat([segmentHead, encodeFrame(3, ["3"], segmentHead.length)]);
    disk.place(`${folder}/${segmentName(3)}`, next);
    expect(await codeOf(recover(disk, folder))).to.equal("STORE_CORRUPT");
    disk.place(path, bytes);
    expect((await recover(disk, folder)).records).to.deep.equal(["1", "2", "3"]);
  });

  it("is refused if it ends before the number of a damaged snapshot", async () => {
    const { bytes } = await journalOf(["1"], ["2"]);
    const disk = new MemoryDisk();
    disk.place(path, bytes);
    await writeSnapshot(disk, `${folder}/${snapshotName(1)}`, { index: 1, entries: [] });
    expect((await recover(disk, folder)).next).to.equal(3);
    disk.place(`${folder}/${snapshotName(5)}`, Buffer.from("damaged"));
    expect(await codeOf(recover(disk, folder))).to.equal("STORE_CORRUPT");
  });
});

describe("a store with records of a newer version", () => {
  it("does not open", async () => {
    for (const record of [{ t: "meta", format: 2 }, { t: "meta", format: "new" }, { t: "unheard-of" }]) {
      const { bytes } = await journalOf([JSON.stringify(record)]);
      const disk = new MemoryDisk();
      disk.place(path, bytes);
      const db = new ControllerDatabase({ folder, rules: keyRules, disk, onBroken: () => undefined });
      expect(await codeOf(db.read()), JSON.stringify(record)).to.equal("STORE_TOO_NEW");
    }
  });
});

describe("a frame of the journal", () => {
  it("is damaged if its head has another number of records", () => {
    expect(decodeFrame(encodeFrame(1, ["1", "2"], 0), 0)).to.deep.include({ records: ["1", "2"] });
    expect(decodeFrame(encodeFrame(1, ["1\n2"], 0), 0))
      .to.have.property("damage")
      .that.contains("count of records");
  });
});

describe("a journal's end", () => {
  it("is damaged, not incomplete, if any byte of the last complete record changed", async () => {
    // The frame's end lies at every offset around the edge of a sector.
    for (const size of [30, 387, 388, 389, 390, 391, 392, 393, 700]) {
      const { bytes, last } = await journalOf([padded(60)], [padded(size), padded(40)]);
      for (let at = last; at < bytes.length; at++)
        for (const value of [0, (bytes[at] ?? 0) ^ 1, (bytes[at] ?? 0) ^ 0x80, 0x30, 0x66]) {
          if (value === bytes[at]) continue;
          const changed = Buffer.from(bytes);
          changed[at] = value;
          expect(await codeOf(recoverFrom(changed)), `byte ${at - last} of ${size} as ${value}`).to.equal(
            "STORE_CORRUPT",
          );
        }
    }
  });

  it("is damaged if any byte of the only record changed", async () => {
    const { bytes } = await journalOf([padded(60)]);
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 2;
      expect(await codeOf(recoverFrom(changed)), `byte ${at}`).to.be.oneOf(["STORE_CORRUPT", "STORE_TOO_NEW"]);
    }
  });

  it("is an incomplete write if the last write is truncated at any byte", async () => {
    const { bytes, last } = await journalOf([padded(60)], [padded(900), padded(40)]);
    for (let end = last; end < bytes.length; end++) {
      const { records, notes } = await recoverFrom(bytes.subarray(0, end));
      expect(records, `${end - last} bytes`).to.have.length(1);
      expect(notes, `${end - last} bytes`).to.have.length(end === last ? 0 : 1);
    }
    for (let end = 0; end < 16 + 50; end++)
      expect((await recoverFrom(bytes.subarray(0, end))).records).to.have.length(0);
  });

  it("is an incomplete write if any sectors of the last write are missing", async () => {
    for (const size of [1, 600, 1100, 1970]) {
      const { bytes, last } = await journalOf([padded(490)], [padded(size), padded(40)]);
      const first = Math.floor(last / sector);
      const count = Math.ceil(bytes.length / sector) - first;
      for (let missing = 1; missing < 2 ** count; missing++) {
        const torn = Buffer.from(bytes);
        for (let place = 0; place < count; place++)
          if (missing & (1 << place))
            torn.fill(
              0,
              Math.max(last, (first + place) * sector),
              Math.min(bytes.length, (first + place + 1) * sector),
            );
        expect((await recoverFrom(torn)).records, `sectors ${missing} of ${size}`).to.have.length(1);
      }
    }
  });

  it("is an incomplete write if the last sector is missing, for every length of the frame", async () => {
    for (let size = 30; size < 30 + sector; size++) {
      const { bytes, last } = await journalOf([padded(60)], [padded(700), padded(size)]);
      const torn = Buffer.from(bytes);
      torn.fill(0, Math.max(last, Math.floor((bytes.length - 1) / sector) * sector));
      expect((await recoverFrom(torn)).records, `${bytes.length}`).to.have.length(1);
    }
  });
});
