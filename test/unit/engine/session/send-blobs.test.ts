import { expect } from "chai";
import type { BlobFeed, FedNode } from "#engine/session/blob-feed.ts";
import type { Link } from "#engine/session/link.ts";
import { sendBlobs } from "#engine/session/send-blobs.ts";
import { Sending } from "#engine/session/sending.ts";
import { type Blob, blobOf } from "#engine/step/blob.ts";

const nonce = "f".repeat(32);

describe("the answer to a question for blobs", () => {
  const large = (byte: number): Blob => blobOf(Buffer.alloc(100_000, byte));
  const offered = new Map([
    ["a", large(1)],
    ["b", large(2)],
    ["small", blobOf("x")],
  ]);

  /** What is done in turn, where the feed says this of its contents. */
  async function answered(ends: Readonly<Record<string, "there" | "send" | "left">>): Promise<string[]> {
    const done: string[] = [];
    const link = {
      send: (text: string | Uint8Array) => {
        done.push(String(text).split(/[ \n]/, 2).join(" ").trim());
        return Promise.resolve();
      },
    } as unknown as Link;
    const feed: BlobFeed = {
      takes: (_, { size }) => size > 1000,
      bring: (_, name) => {
        done.push(`bring ${name}`);
        return Promise.resolve(ends[name] ?? "left");
      },
      keep: (_, name) => {
        done.push(`keep ${name}`);
        return Promise.resolve(true);
      },
      leave: () => undefined,
      keeps: () => false,
    };
    const sending = new Sending({
      node: "n1",
      taken: () => 0,
      emit: () => undefined,
      stall: 1000,
      onStall: () => undefined,
      now: () => 0,
    });
    const run = { nonce, stateDir: "/s", runId: "r", who: "w", node: "n1", dryRun: false, grants: [], login: "root" };
    await sendBlobs(link, ["a", "b", "small", "never offered"], {
      run,
      offered,
      sending,
      fed: { feed, party: { node: "n1" } as FedNode },
    });
    sending.stop();
    return done.filter((one) => /^[a-z]/.test(one));
  }

  it("gives what nobody else brings its place when it is kept for others, and what is there at once", async () => {
    expect(await answered({ a: "send", b: "there" })).to.deep.equal([
      "texts 14",
      "blobs",
      "bring a",
      "part a",
      "sum a",
      "keep a",
      "blobs",
      "bring b",
      "blobs",
    ]);
  });

  it("ends where the node waits for nothing any more", async () => {
    expect(await answered({ a: "left", b: "send" })).to.deep.equal(["texts 14", "blobs", "bring a"]);
  });
});
