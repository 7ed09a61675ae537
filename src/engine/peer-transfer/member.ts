import { randomBytes } from "node:crypto";
import { within } from "#base/wait.ts";
import type { KcoreError } from "#errors/problem.ts";
import { peerTransferText } from "#engine/program/without-runner.ts";
import type { Frame } from "#engine/program/frames.ts";
import { type FollowerChannel, openFollowerChannel } from "#engine/session/follower-channel.ts";
import { NodeBudget } from "#engine/session/node-budget.ts";
import type { BlobPeer } from "#engine/session/peer-blobs.ts";
import type { KeyPair } from "#engine/transport/key-pair.ts";

/** Bytes that a node must fetch within its time limit, so that a malicious source cannot hold it up with a trickle. */
const minFetched = 1 << 20;
/** Bytes that a node hashes in a millisecond at least. */
const hashRate = 1_000;
/** Milliseconds that a node gets to remove the transfer's files. */
const closeLimit = 5_000;
/** Milliseconds between two beats. */
const beatEvery = 5_000;
const connectionEnded = "its connection ended";
/** The message of peer-transfer.sh for received bytes of a wrong hash. */
export const wrongHash = "its hash is wrong";

/** A content, by its name on the node. */
export interface TransferContent {
  readonly name: string;
  readonly size: number;
  readonly sha256: string;
}

/** The reason for which an order failed, in the words of the node or of kcore; undefined after success. */
type TransferFailure = string | undefined;

interface TransferRequest {
  /** Bytes that count as progress: fewer do not restart the time limit. */
  readonly step: number;
  /** Bytes that the node hashes at the end. */
  readonly size: number;
  readonly resolve: (failure: TransferFailure) => void;
  readonly progress: (bytes: number) => void;
  /** Bytes at the last progress. */
  got: number;
  timer: NodeJS.Timeout | undefined;
}

/** One node's part in the transfer: a channel to peer-transfer.sh there. Its methods never reject: they resolve with a failure. */
export class TransferMember {
  readonly peer: BlobPeer;
  /** Resolves when peer-transfer.sh has ended. */
  readonly closed: Promise<void>;
  readonly #budget: NodeBudget;
  readonly #patience: number;
  readonly #admitted = new Set<KeyPair>();
  readonly #requests = new Map<number, TransferRequest>();
  /** Commands given before the channel is open. */
  readonly #unsent: string[] = [];
  #channel: FollowerChannel | undefined;
  #last = 0;
  #isOver = false;
  #beat: NodeJS.Timeout | undefined;

  /** `patience`: milliseconds for which the node may make no progress with its order. */
  constructor(peer: BlobPeer, patience = 30_000) {
    this.peer = peer;
    this.#patience = patience;
    this.#budget = new NodeBudget(peer.node, () => this.#last);
    this.closed = this.#open();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Keeps the content for other nodes while the bastion sends it to this node. */
  keep(content: TransferContent): Promise<TransferFailure> {
    return this.#request(`keep NUMBER ${contentWords(content)}`, { size: content.size });
  }

  /** Lets the key's holder begin to read the content for two minutes, unless all keys are dismissed before. */
  admit({ name }: TransferContent, key: KeyPair): Promise<TransferFailure> {
    this.#admitted.add(key);
    return this.#request(`admit NUMBER ${name} ${key.line}`);
  }

  /** The key is no longer needed. Once no key is needed, the node withdraws all keys. */
  dismiss(key: KeyPair): void {
    if (this.#admitted.delete(key) && this.#admitted.size === 0) void this.#channel?.send("dismiss\n");
  }

  /** Removes the content that the node keeps for others. */
  drop({ name }: TransferContent): void {
    void this.#channel?.send(`drop ${name}\n`);
  }

  /** Fetches the content from the given member's node into the run's blobs; this node also keeps it for others. */
  fetch(
    content: TransferContent,
    { peer }: TransferMember,
    key: KeyPair,
    progress: (bytes: number) => void,
  ): Promise<TransferFailure> {
    const { address, port, user } = peer.endpoint;
    const where = `${address} ${port} ${user} ${peer.host.hostKey}`;
    const text = `fetch NUMBER ${contentWords(content)} ${where}\n${key.secret.trimEnd()}\n`;
    return this.#request(text, { size: content.size, step: minFetched, progress });
  }

  /** Ends the transfer on the node: resolves when the node has removed the transfer's files, or the time for that is over. */
  async close(): Promise<void> {
    void this.#channel?.send("bye\n");
    await within(Math.min(closeLimit, this.#patience), this.closed);
    this.#end();
  }

  async #open(): Promise<void> {
    const { host, run, sudoPassword } = this.peer;
    try {
      const channel = await openFollowerChannel({
        host,
        run,
        sudoPassword,
        text: peerTransferText(run, { id: randomBytes(8).toString("hex") }),
        onFrame: (frame) => this.#takeFrame(frame),
        onLimit: ({ problems }: KcoreError) => this.#end(problems[0]?.message),
      });
      this.#channel = channel;
      for (const text of this.#unsent.splice(0)) void channel.send(text);
      this.#beat = setInterval(() => void channel.send("beat\n"), beatEvery).unref();
      if (this.#isOver) channel.end();
      const output = (await channel.closed).trim();
      this.#end(output === "" ? undefined : output.split("\n").at(-1));
    } catch (error) {
      this.#end(error instanceof Error ? error.message : String(error));
    }
  }

  #request(
    text: string,
    { size = 0, step = 1, progress = () => undefined }: Partial<TransferRequest> = {},
  ): Promise<TransferFailure> {
    if (this.#isOver) return Promise.resolve(connectionEnded);
    const { promise, resolve } = Promise.withResolvers<TransferFailure>();
    const request: TransferRequest = { size, step, resolve, progress, got: 0, timer: undefined };
    const number = (this.#last += 1);
    this.#requests.set(number, request);
    this.#wait(request, size === 0);
    const line = `${text.replace("NUMBER", String(number))}\n`;
    if (this.#channel) void this.#channel.send(line);
    else this.#unsent.push(line);
    return promise;
  }

  /** Restarts the time limit for progress. The limit is longer for a node that has all bytes and hashes them. */
  #wait(request: TransferRequest, isThere: boolean): void {
    clearTimeout(request.timer);
    const limit = this.#patience + (isThere ? request.size / hashRate : 0);
    const silent = `it got no further for ${Math.round(limit / 100) / 10} s`;
    request.timer = setTimeout(() => this.#end(silent), limit).unref();
  }

  #takeFrame({ type, rest }: Frame): void {
    this.#budget.spend(type.length + rest.length);
    const request = this.#requests.get(Number(type));
    if (!request) return;
    const [word, ...words] = rest.split(" ");
    if (word === "at") {
      const bytes = Math.min(request.size, Number(words[0]) || 0);
      const isThere = bytes === request.size && request.got < bytes;
      if (isThere || bytes - request.got >= request.step) {
        request.got = bytes;
        this.#wait(request, isThere);
      }
      return request.progress(bytes);
    }
    this.#requests.delete(Number(type));
    clearTimeout(request.timer);
    request.resolve(word === "yes" ? undefined : words.join(" "));
  }

  #end(why = connectionEnded): void {
    this.#isOver = true;
    clearInterval(this.#beat);
    this.#channel?.end();
    for (const { resolve, timer } of this.#requests.values()) {
      clearTimeout(timer);
      resolve(why);
    }
    this.#requests.clear();
  }
}

function contentWords({ name, size, sha256 }: TransferContent): string {
  return `${name} ${size} ${sha256}`;
}
