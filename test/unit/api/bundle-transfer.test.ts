import { createHash, randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { longestTransferMs, uploadBundle, type BundleSource } from "#api/bundle-transfer.ts";
import type { ApiClient } from "#api/client.ts";
import { codeOf } from "../../support/rejection.ts";
import { folderOfEachTest } from "../../support/temp-dir.ts";

const kibibyte = 1024;
interface Piece {
  readonly offset: number;
  readonly size: number;
  readonly data: string;
}
type PutReply = { held: number; whole: boolean };

describe("uploadBundle", () => {
  const bytes = randomBytes(2_000 * kibibyte);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const dir = folderOfEachTest("upload");
  let source: BundleSource;
  let received: { offset: number; length: number }[];
  let listed: PutReply | undefined;

  beforeEach(async () => {
    const file = dir("bundle");
    await writeFile(file, bytes);
    source = { bundle: { sha256, size: bytes.length }, file, start: 0 };
    received = [];
    listed = undefined;
  });

  /** A controller that answers with `put`, or else accepts every piece. */
  const clientOf = (put?: (piece: Piece, usual: PutReply) => PutReply | Promise<PutReply>): ApiClient =>
    ({
      async call(name: string, body: Piece) {
        if (name === "listBundles") return { bundles: listed ? [{ sha256, ...listed }] : [] };
        const data = Buffer.from(body.data, "base64");
        received.push({ offset: body.offset, length: data.length });
        expect(data.equals(bytes.subarray(body.offset, body.offset + data.length))).to.equal(true);
        const held = body.offset + data.length;
        const usual = { held, whole: held === body.size };
        return put ? put(body, usual) : usual;
      },
    }) as unknown as ApiClient;

  it("sends the bundle in order, in pieces that grow while each is quick", async () => {
    await uploadBundle(clientOf(), source);
    expect(received.map(({ length }) => length / kibibyte)).to.deep.equal([64, 128, 256, 512, 512, 512, 16]);
    expect(received.map(({ offset }) => offset / kibibyte)).to.deep.equal([0, 64, 192, 448, 960, 1472, 1984]);
  });

  it("halves the size of pieces after a slow one", async () => {
    const slow = async (_piece: Piece, usual: PutReply): Promise<PutReply> => {
      if (received.length === 1) await sleep(1_600);
      return usual;
    };
    await uploadBundle(clientOf(slow), source);
    expect(received.slice(0, 3).map(({ length }) => length / kibibyte)).to.deep.equal([64, 32, 64]);
  });

  it("resumes at the controller's offset, and sends an empty piece for a complete bundle that is not verified yet", async () => {
    listed = { held: 1_990 * kibibyte, whole: false };
    await uploadBundle(clientOf(), source);
    expect(received).to.deep.equal([{ offset: 1_990 * kibibyte, length: 10 * kibibyte }]);
    listed = { held: bytes.length, whole: false };
    await uploadBundle(clientOf(), source);
    expect(received.at(-1)).to.deep.equal({ offset: bytes.length, length: 0 });
    listed = { held: bytes.length, whole: true };
    await uploadBundle(clientOf(), source);
    expect(received).to.have.length(2);
  });

  it("skips what another client uploaded meanwhile", async () => {
    const other = (_piece: Piece, usual: PutReply): PutReply =>
      received.length === 1 ? { held: 1_990 * kibibyte, whole: false } : usual;
    await uploadBundle(clientOf(other), source);
    expect(received.map(({ offset }) => offset / kibibyte)).to.deep.equal([0, 1_990]);
  });

  it("sends the whole bundle once more if the controller's copy is damaged, and fails at the second time", async () => {
    listed = { held: 1_900 * kibibyte, whole: false };
    let resets = 1;
    const damaged = (_piece: Piece, usual: PutReply): PutReply =>
      usual.whole && resets-- > 0 ? { held: 0, whole: false } : usual;
    await uploadBundle(clientOf(damaged), source);
    expect(received.filter(({ offset }) => offset === 0)).to.have.length(1);
    resets = Infinity;
    expect(await codeOf(uploadBundle(clientOf(damaged), source))).to.equal("UPDATE_BUNDLE_INVALID");
  });

  it("fails for a file that is shorter than the bundle", async () => {
    await writeFile(source.file, bytes.subarray(0, 100_000));
    expect(await codeOf(uploadBundle(clientOf(), source))).to.equal("UPDATE_BUNDLE_INVALID");
  });

  it("has a time limit that grows with the size", () => {
    expect([longestTransferMs(0), longestTransferMs(32 * kibibyte * 100)]).to.deep.equal([60_000, 160_000]);
    // AbortSignal.timeout accepts whole milliseconds alone.
    expect(longestTransferMs(44_093_279) % 1).to.equal(0);
  });
});
