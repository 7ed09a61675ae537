import { expect } from "chai";
import { PassThrough } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import type { RunEventBody } from "#engine/events/event.ts";
import { PeerTransfer } from "#engine/peer-transfer/peer-transfer.ts";
import { TransferMember } from "#engine/peer-transfer/member.ts";
import type { BlobPeer } from "#engine/session/peer-blobs.ts";
import { Blob } from "#engine/step/blob.ts";
import type { Channel, Host } from "#engine/transport/host.ts";
import { fakeChannel, runOnNode } from "#support/fake-session.ts";

const { nonce } = runOnNode;
const content = new Blob({
  sha256: "a".repeat(64),
  size: 5_000_000,
  sensitive: false,
  label: "image",
  read: () => Promise.reject(new Error("no test reads it")),
});
const name = "a.b";

type Say = (text: string) => void;

/** A node with prepared answers of peer-transfer.sh. */
class FakeNode {
  readonly events: RunEventBody[] = [];
  /** The commands that it got, without their arguments. */
  readonly commands: string[] = [];
  readonly peer: BlobPeer;
  isClosed = false;
  /** Answers a command of the bastion; “yes” by default. */
  answer: (word: string, say: Say) => unknown = (_, say) => say("yes");
  #stdout = new PassThrough();
  #isDeaf = false;

  constructor(node: string) {
    const host = {
      name: node,
      hostKey: "ssh-ed25519 AAAA",
      exec: () => Promise.resolve(this.#channel()),
      close: () => {
        this.isClosed = true;
        this.die();
        return Promise.resolve();
      },
    } as unknown as Host;
    this.peer = {
      node,
      host,
      endpoint: { name: node, transport: "ssh", address: node, port: 22, user: "root", hostKeys: [], jump: [] },
      run: { ...runOnNode, node },
      sudoPassword: () => Promise.resolve(undefined),
      emit: (event) => this.events.push(event),
    };
  }

  /** Ends peer-transfer.sh, but not the connection. */
  die(): void {
    this.#stdout.end();
  }

  /** Ignores all commands and requests to end. */
  freeze(): void {
    this.#isDeaf = true;
  }

  #channel(): Channel {
    const stdout = (this.#stdout = new PassThrough());
    stdout.write(`${nonce} hello\n`);
    return fakeChannel(stdout, {
      write: (text) => {
        if (!this.#isDeaf) for (const line of String(text).split("\n")) this.#hear(line);
        return Promise.resolve();
      },
      close: () => void (this.#isDeaf || stdout.end()),
    });
  }

  #hear(line: string): void {
    const [word = "", number = ""] = line.split(" ");
    if (/^(keep|admit|fetch|dismiss|drop|bye)$/.test(word)) this.commands.push(word);
    if (word === "bye") this.#stdout.end();
    if (/^(keep|admit|fetch)$/.test(word))
      this.answer(word, (text) => void this.#stdout.write(`${nonce} ${number} ${text}\n`));
  }
}

describe("PeerTransfer", () => {
  let warnings: string[];
  let transfer: PeerTransfer;
  beforeEach(() => {
    warnings = [];
    transfer = new PeerTransfer({
      emit: (event) => event.type === "warning" && warnings.push(`${event.node}: ${event.text}`),
    });
  });

  const withShortPatience = (): PeerTransfer =>
    new PeerTransfer({ emit: (event) => event.type === "warning" && warnings.push(event.text), patience: 200 });
  /** A node that gets the content from the bastion, and keeps it as a source. */
  async function source(label: string): Promise<FakeNode> {
    const node = new FakeNode(label);
    expect(await transfer.bring(node.peer, name, content)).to.equal("send");
    expect(await transfer.keep(node.peer, name, content)).to.equal(true);
    return node;
  }
  /** Gives the connection to the transfer, as a session does that has ended. */
  function hangUp({ peer }: FakeNode): boolean {
    transfer.leave(peer.node);
    return transfer.takeOver(peer.host);
  }

  /** A source whose session has ended. */
  async function endedSource(): Promise<FakeNode> {
    const node = await source("a");
    expect(hangUp(node)).to.equal(true);
    return node;
  }

  it("closes the connection of an ended session when the run ends", async () => {
    const a = await endedSource();
    const b = new FakeNode("b");
    expect([await transfer.bring(b.peer, name, content), a.isClosed]).to.deep.equal(["there", false]);
    await transfer.close();
    expect([a.isClosed, b.isClosed, warnings]).to.deep.equal([true, false, []]);
  });

  it("closes the connection of a source whose transfers failed", async () => {
    const a = await endedSource();
    const b = new FakeNode("b");
    b.answer = (_, say) => say("no its hash is wrong");
    expect(await transfer.bring(b.peer, name, content)).to.equal("send");
    await transfer.close();
    expect([a.isClosed, b.isClosed]).to.deep.equal([true, false]);
  });

  it("closes the connection of a source where peer-transfer.sh has ended", async () => {
    const a = await endedSource();
    a.die();
    await pause(5);
    expect(a.isClosed).to.equal(true);
  });

  it("ends although a node does not respond", async () => {
    transfer = withShortPatience();
    const a = await endedSource();
    a.freeze();
    await transfer.close();
    expect(a.isClosed).to.equal(true);
  });

  it("lets the bastion send a content whose transfer makes no progress, or too little", async () => {
    transfer = withShortPatience();
    await source("a");
    const b = new FakeNode("b");
    let fetched = 0;
    // Bytes from a source whose disk hangs, and from a malicious one.
    for (const bytes of [0, 1_000]) {
      const timers: NodeJS.Timeout[] = [];
      b.answer = (_, say) => timers.push(setInterval(() => say(`at ${(fetched += bytes)}`), 20));
      expect(await transfer.bring(b.peer, name, content)).to.equal("send");
      for (const timer of timers) clearInterval(timer);
      transfer.leave("b");
    }
    expect(warnings).to.deep.equal([
      "the bastion sends it image, which it could not get from a: it got no further for 0.2 s",
    ]);
    await transfer.close();
  });

  it("waits for a slow transfer that makes progress", async () => {
    transfer = withShortPatience();
    await source("a");
    const b = new FakeNode("b");
    b.answer = async (_, say) => {
      for (let bytes = 0; bytes <= content.size; bytes += 1_250_000) {
        say(`at ${bytes}`);
        await pause(120);
      }
      say("yes");
    };
    expect([await transfer.bring(b.peer, name, content), warnings]).to.deep.equal(["there", []]);
    await transfer.close();
  });

  it("emits and sends nothing for a node that left during a transfer", async () => {
    const a = await source("a");
    const b = new FakeNode("b");
    b.answer = (_, say) => {
      transfer.leave("b");
      say("at 3000000");
      say("yes");
    };
    expect(await transfer.bring(b.peer, name, content)).to.equal("left");
    const c = new FakeNode("c");
    a.answer = (_, say) => {
      transfer.leave("c");
      say("yes");
    };
    expect(await transfer.bring(c.peer, name, content)).to.equal("left");
    expect(await transfer.keep(c.peer, name, content)).to.equal(false);
    expect([b.events, c.events, c.commands, transfer.takeOver(b.peer.host)]).to.deep.equal([[], [], [], false]);
    expect([a.commands.at(-1), warnings]).to.deep.equal(["dismiss", []]);
    await transfer.close();
  });

  it("shortens and cleans a node's message in a warning", async () => {
    await source("a");
    const b = new FakeNode("b");
    b.answer = (_, say) => say(`no ${"x".repeat(100_000)}\u001b[2J`);
    expect([await transfer.bring(b.peer, name, content), warnings.length]).to.deep.equal(["send", 1]);
    expect(warnings[0]).to.match(/^b: the bastion sends it image, which it could not get from a: x{300}$/);
    await transfer.close();
  });

  it("TransferMember returns a node's refusal, and ends a node that sends too much", async () => {
    const a = new FakeNode("a");
    a.answer = (_, say) => say("no it is full");
    const member = new TransferMember(a.peer);
    const blob = { name, size: content.size, sha256: content.sha256 };
    expect([await member.keep(blob), member.isOver]).to.deep.equal(["it is full", false]);
    a.answer = (_, say) => {
      for (let many = 0; many < 200; many++) say(`at ${"1".repeat(100_000)}`);
    };
    expect(await member.keep(blob)).to.match(/^a sent more about its steps than they can tell/);
    expect([member.isOver, await member.keep(blob)]).to.deep.equal([true, "its connection ended"]);
  });
});
