import { expect } from "chai";
import type { PeerBlobs, BlobPeer } from "#engine/session/peer-blobs.ts";
import type { FollowerChannel } from "#engine/session/follower-channel.ts";
import { sendBlobs } from "#engine/session/send-blobs.ts";
import { TransferProgress } from "#engine/session/transfer-progress.ts";
import { blobOf, type FetchRequest } from "#engine/step/blob.ts";
import { remoteBlob, type Fetch } from "#engine/step/remote.ts";
import { KcoreError } from "#errors/problem.ts";
import { runOnNode } from "#support/fake-session.ts";

describe("sendBlobs with peer transfers", () => {
  const both = new Map([
    ["one.b", blobOf(Buffer.alloc(2_000_000, 1))],
    ["two.b", blobOf(Buffer.alloc(2_000_000, 2))],
  ]);

  /** The requests to the transfer, and the commands sent to the node, whose connection is lost during the wait for `lostAt`. */
  async function answer(ends: readonly ("there" | "left")[], { lostAt = "", offered = both } = {}) {
    const requested: string[] = [];
    const sent: string[] = [];
    let isOpen = true;
    const blobs: PeerBlobs = {
      takes: (_, { size }) => size > 1_000_000,
      bring: (_, name) => {
        requested.push(name);
        if (name === lostAt) isOpen = false;
        return Promise.resolve(ends[requested.length - 1] ?? "there");
      },
      keep: () => Promise.resolve(true),
      leave: () => undefined,
      takeOver: () => false,
    };
    const send = (text: string | Uint8Array): Promise<void> => (sent.push(String(text)), Promise.resolve());
    const ending = { closed: Promise.resolve(""), exit: Promise.resolve({}), end: () => undefined };
    const follower: FollowerChannel = {
      send,
      begin: () => undefined,
      bytesTaken: () => 0,
      endInput: () => undefined,
      ...ending,
    };
    const options = { node: "n1", bytesTaken: () => 0, emit: () => undefined, stall: 1_000, onStall: () => undefined };
    const progress = new TransferProgress({ ...options, now: Date.now });
    const fromPeers = { blobs, peer: {} as BlobPeer };
    const requestFor = (): FetchRequest => ({ signal: new AbortController().signal, onProgress: () => undefined });
    const given = { run: runOnNode, offered, progress, fromPeers, requestFor, isOpen: () => isOpen };
    await sendBlobs(follower, [...offered.keys()], given);
    return { requested, sent };
  }

  it("puts each content in place before it waits for the next", async () =>
    expect(await answer([])).to.deep.equal({ requested: ["one.b", "two.b"], sent: ["blobs\n", "blobs\n"] }));

  it("waits for no further content over a lost connection", async () => {
    expect(await answer(["left"], { lostAt: "one.b" })).to.deep.equal({ requested: ["one.b"], sent: [] });
    expect((await answer(["there"], { lostAt: "one.b" })).requested).to.deep.equal(["one.b"]);
  });

  const remote = (fetch: Fetch): typeof both => {
    const content = { url: "https://a/b", sha256: "0".repeat(64), label: "b", headers: {} };
    return new Map([["one.b", remoteBlob(content, fetch)]]);
  };

  it("fetches a remote content before it asks for a source", async () => {
    const here = { file: "/cache/b", sha256: "0".repeat(64), size: 2_000_000 };
    const offered = remote(() => Promise.resolve(here));
    expect(await answer([], { offered })).to.deep.equal({ requested: ["one.b"], sent: ["blobs\n"] });
  });

  it("sends the refusal of a failed fetch, and an empty content", async () => {
    const problem = { code: "DOWNLOAD_DIFFERS", message: "it's another", detail: "wanted", hint: "compare" } as const;
    const offered = remote(() => Promise.reject(new KcoreError(problem)));
    const { requested, sent } = await answer([], { offered });
    expect(requested).to.deep.equal([]);
    expect(sent.join("")).to.contain(`k_put one.b.refused 'DOWNLOAD_DIFFERS
it'\\''s another
wanted
hint: compare
'
k_put one.b ''
`);
    expect(sent.at(-1)).to.equal("blobs\n");
  });
});
