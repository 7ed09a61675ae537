import { expect } from "chai";
import type { BlobFeed, FedNode } from "#engine/session/blob-feed.ts";
import type { Link } from "#engine/session/link.ts";
import { sendBlobs } from "#engine/session/send-blobs.ts";
import { Sending } from "#engine/session/sending.ts";
import { blobOf } from "#engine/step/blob.ts";

describe("the answer to a question for blobs, where nodes feed one another", () => {
  const offered = new Map([
    ["one.b", blobOf(Buffer.alloc(2_000_000, 1))],
    ["two.b", blobOf(Buffer.alloc(2_000_000, 2))],
  ]);

  /** What the feed was asked, and what went over the line, which ends while `lostAt` is waited for. */
  async function answer(ends: readonly ("there" | "left")[], lostAt?: string) {
    const asked: string[] = [];
    const sent: string[] = [];
    let isOpen = true;
    const feed: BlobFeed = {
      takes: () => true,
      bring: (_, name) => {
        asked.push(name);
        if (name === lostAt) isOpen = false;
        return Promise.resolve(ends[asked.length - 1] ?? "there");
      },
      keep: () => Promise.resolve(true),
      leave: () => undefined,
      inherits: () => false,
    };
    const send = (text: string | Uint8Array): Promise<void> => (sent.push(String(text)), Promise.resolve());
    const link: Link = { send, taken: () => 0, closed: Promise.resolve(""), end: () => undefined };
    const options = { node: "n1", taken: () => 0, emit: () => undefined, stall: 1_000, onStall: () => undefined };
    const sending = new Sending({ ...options, now: Date.now });
    const run = {
      nonce: "f",
      stateDir: "/s",
      runId: "r",
      who: "w",
      node: "n",
      dryRun: false,
      grants: [],
      login: "root",
    };
    const fed = { feed, party: {} as FedNode };
    await sendBlobs(link, [...offered.keys()], { run, offered, sending, fed, isOpen: () => isOpen });
    return { asked, sent };
  }

  it("gives each its place before the next one is waited for", async () => {
    expect(await answer([])).to.deep.equal({ asked: ["one.b", "two.b"], sent: ["blobs\n", "blobs\n"] });
  });

  it("waits for nothing more over a line that was lost", async () => {
    expect(await answer(["left"], "one.b")).to.deep.equal({ asked: ["one.b"], sent: [] });
    expect((await answer(["there"], "one.b")).asked).to.deep.equal(["one.b"]);
  });
});
