import { expect } from "chai";
import { blobCommands } from "#engine/program/blob-commands.ts";
import { asAssignment, Blob, blobOf } from "#engine/step/blob.ts";
import { quote } from "#base/quote.ts";

const nonce = "0123456789abcdef0123456789abcdef";

async function commandsFor(blobs: Readonly<Record<string, Blob>>, now?: () => number): Promise<string[]> {
  const commands: string[] = [];
  for await (const command of blobCommands({ nonce }, new Map(Object.entries(blobs)), undefined, now))
    commands.push(Buffer.from(command).toString("latin1"));
  return commands;
}

describe("blobCommands", () => {
  it("sends small texts in one command, quoted", async () => {
    const text = "k_put a it\nk_put b 'x\n'\\''y '\nk_put c ''\n";
    expect(await commandsFor({ a: blobOf("it"), b: blobOf("x\n'y "), c: blobOf("") })).to.deep.equal([
      `texts ${text.length}\n${text}${nonce}\n`,
      "blobs\n",
    ]);
  });

  it("sends a content for a batch as an assignment", async () => {
    const text = `k_put a ${quote(`b_text=${quote("it's\n")}`)}\n`;
    expect(await commandsFor({ a: asAssignment(blobOf("it's\n")) })).to.deep.equal([
      `texts ${text.length}\n${text}${nonce}\n`,
      "blobs\n",
    ]);
  });

  it("sends binary and large contents in parts, each one command, with the hash of the whole", async () => {
    const zero = blobOf(new Uint8Array(2));
    const large = blobOf("x".repeat((1 << 20) + 1));
    expect(await commandsFor({ zero, large })).to.deep.equal([
      `part zero 2 0\n\0\0${nonce}\n`,
      `sum zero ${zero.sha256}\n`,
      `part large ${1 << 20} 0\n${"x".repeat(1 << 20)}${nonce}\n`,
      `part large 1 ${1 << 20}\nx${nonce}\n`,
      `sum large ${large.sha256}\n`,
      "blobs\n",
    ]);
  });

  describe("for a large content", () => {
    const partsFor = async (secondsEach: (part: number) => number): Promise<string[]> => {
      let [calls, time] = [0, 0];
      // Each part asks for the time before and after.
      const now = () => (calls++ % 2 === 0 ? time : (time += 1_000 * secondsEach((calls - 2) / 2)));
      const commands = await commandsFor({ a: blobOf("x".repeat(9 << 20)) }, now);
      return commands.flatMap((command) => /^part a (\d+)/.exec(command)?.[1] ?? []);
    };
    const mebibytes = (...parts: readonly number[]) => parts.map((part) => `${part << 20}`);

    it("sends parts of up to 4 MiB while the node takes each within a second", async () =>
      expect(await partsFor(() => 0.1)).to.deep.equal(mebibytes(1, 2, 4, 2)));

    it("sends parts of 1 MiB to a slow node", async () =>
      expect(await partsFor((part) => (part === 0 ? 0 : 2))).to.deep.equal(mebibytes(1, 2, 1, 1, 1, 1, 1, 1)));
  });

  it("sends changed bytes with the original hash, by which the node refuses them", async () => {
    const { sha256 } = blobOf("before");
    const changed = new Blob({ sha256, size: 6, sensitive: false, read: () => Promise.resolve(Buffer.from("after!")) });
    expect(await commandsFor({ changed })).to.deep.equal([
      `part changed 6 0\nafter!${nonce}\n`,
      `sum changed ${sha256}\n`,
      "blobs\n",
    ]);
  });

  it("sends no command without blobs", async () => expect(await commandsFor({})).to.deep.equal([]));
});
