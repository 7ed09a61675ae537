import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import type { Frame } from "#engine/program/frames.ts";
import { SaveReader } from "#engine/session/save-frames.ts";
import { MemoryTables } from "#support/tables.ts";

const KiB = 1024;
const occasion = () => ({ node: "n1", nodeId: "id1", run: "r1", before: "wipe", grants: [] }) as const;
const sum = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

/** A node's frames about a disk with two pieces, with these changes. */
function framesOf({
  first = Buffer.alloc(4 * KiB, 1),
  last = Buffer.alloc(KiB, 2),
  size = 64 * KiB,
  sha256 = sum(last),
  lastAt = 63 * KiB,
  count = 2,
}: Partial<Record<"first" | "last", Buffer> & Record<"size" | "lastAt" | "count", number>> & {
  readonly sha256?: string;
} = {}): Frame[] {
  const text = gzipSync("label: gpt\n");
  const [one, two] = [gzipSync(first), gzipSync(last)];
  return [
    { type: "saving", rest: "" },
    { type: "save", rest: `0 ${size} sdb` },
    { type: "id", rest: "0 serial S1" },
    { type: "text", rest: `0 ${text.length} sfdisk` },
    ...out(text),
    { type: "piece", rest: `0 0 ${first.length} ${sum(first)} ${one.length}` },
    ...out(one, 10),
    { type: "piece", rest: `0 ${lastAt} ${last.length} ${sha256} ${two.length}` },
    ...out(two),
    { type: "saved", rest: `0 ${count}` },
    { type: "all", rest: "" },
  ];
}

/** Output frames of these bytes in portions. */
function out(bytes: Buffer, portion = bytes.length): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at < bytes.length; at += portion) {
    const part = bytes.subarray(at, at + portion);
    frames.push({ type: "out", rest: `bytes ${at} ${part.length} 0`, bytes: part });
  }
  return frames;
}

describe("SaveReader", () => {
  let tables: MemoryTables;
  beforeEach(() => {
    tables = new MemoryTables();
  });
  const read = async (frames: readonly Frame[], names = ["S1"]): Promise<SaveReader> => {
    const reader = new SaveReader(names, tables, occasion);
    for (const frame of frames) await reader.take(frame);
    await reader.end("the connection ended");
    return reader;
  };
  const unsaved = async (frames: readonly Frame[]): Promise<string | undefined> => {
    const result = (await read(frames)).results.get("S1");
    expect(tables.kept).to.deep.equal([]);
    return result && "unsaved" in result ? result.unsaved : undefined;
  };
  const without = (type: string, index = 0): Frame[] => {
    const frames = framesOf();
    frames.splice(
      frames.findIndex((frame, at) => frame.type === type && at >= index),
      1,
    );
    return frames;
  };

  it("stores a disk's tables when all bytes have arrived", async () => {
    expect((await read(framesOf())).isWhole).to.equal(true);
    const [{ device, gzip } = {}] = tables.kept;
    const texts = { sfdisk: "label: gpt\n" };
    expect(device).to.deep.include({ name: "S1", size: 64 * KiB, ids: ["serial S1"], texts });
    expect(device?.pieces.map(({ offset, length }) => [offset, length])).to.deep.equal([
      [0, 4 * KiB],
      [63 * KiB, KiB],
    ]);
    expect(gzip?.length).to.be.greaterThan(0);
  });

  const lastOut = framesOf().findLastIndex(({ type }) => type === "out");
  const header = framesOf().slice(0, 2);
  const bomb = gzipSync(Buffer.alloc(8 << 20));
  const piece = (bytes: number): Frame => ({ type: "piece", rest: `0 0 512 ${"0".repeat(64)} ${bytes}` });
  const incomplete: readonly (readonly [what: string, reason: RegExp, ...cases: readonly (readonly Frame[])[]])[] = [
    ["a wrong checksum", /bytes at 64512 differs from what the node read/, framesOf({ sha256: "0".repeat(64) })],
    ["a missing part of a piece", /^the node said less than it announced$/, without("out", lastOut)],
    [
      "a missing piece or a wrong count",
      /^pieces of it did not arrive$/,
      without("piece", lastOut - 1),
      framesOf({ count: 3 }),
      framesOf({ count: 1 }),
    ],
    [
      "pieces outside the disk or overlapping",
      /^the node told of pieces that no disk has$/,
      ...[{ size: 63 * KiB }, { lastAt: 0 }, { lastAt: 63 * KiB + 1 }, { last: Buffer.alloc(100) }].map(framesOf),
    ],
    ["a piece that unpacks to more than announced", /larger than/, [...header, piece(bomb.length), ...out(bomb)]],
    [
      "a piece larger than 8 MiB or empty",
      /^the node said more than a disk has$/,
      ...[0, (8 << 20) + 1, 2 ** 31].map((bytes) => [...header, piece(bytes)]),
    ],
    [
      "an early end",
      /^the connection ended$/,
      ...Array.from({ length: framesOf().length - 2 }, (_, length) => framesOf().slice(0, length)),
    ],
  ];
  for (const [what, reason, ...cases] of incomplete)
    it(`stores no table with ${what}`, async () => {
      for (const frames of cases) expect(await unsaved(frames)).to.match(reason);
    });

  it("returns the reason of a failure on the node or on the bastion's disk", async () => {
    expect(await unsaved([{ type: "unsaved", rest: "0 several disks have this name" }])).to.equal(
      "several disks have this name",
    );
    expect((await read([{ type: "absent", rest: "0" }])).results.get("S1")).to.include({ isAbsent: true });
    tables.failure = new Error("no space left on device");
    expect(await unsaved(framesOf())).to.equal("no space left on device");
    expect(tables.dropped).to.be.greaterThan(0);
    tables.open = () => Promise.reject(new Error("EACCES: permission denied, mkdir"));
    expect(await unsaved(framesOf())).to.equal("EACCES: permission denied, mkdir");
  });

  it("ignores disks that were not requested and repeated answers", async () => {
    const reader = await read([{ type: "save", rest: "7 512 sda" }, ...framesOf(), ...framesOf({ count: 9 })]);
    expect([[...reader.results.keys()], tables.kept.length]).to.deep.equal([["S1"], 1]);
  });
});
