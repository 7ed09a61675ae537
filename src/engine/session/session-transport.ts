import { formatBytes, formatSending } from "#base/units.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import type { Asker, Blob } from "#engine/step/blob.ts";
import { followerText, type RunVariables } from "#engine/program/bootstrap.ts";
import type { Frame } from "#engine/program/frames.ts";
import type { FollowerChannel } from "./follower-channel.ts";
import type { SessionOptions } from "./session.ts";
import type { Host } from "#engine/transport/host.ts";
import { connectFollower } from "./connect.ts";
import type { ConnectionEvent } from "./session-events.ts";
import { ownBug } from "./problems.ts";
import { type BlobAnswer, sendBlobs } from "./send-blobs.ts";
import { TransferProgress } from "./transfer-progress.ts";

const beatEvery = 5_000;
/** Milliseconds in which the host's connection would have ended if that was why the channel did. */
const judgement = 100;
/** Milliseconds for which a node may take nothing of what it asked for; a disk that is slow to flush needs some. */
const stallLimit = 120_000;

export interface TransportOptions {
  readonly session: SessionOptions;
  readonly run: RunVariables;
  /** Aborted when the session is stopped. */
  readonly stopping: AbortSignal;
  /** The output known so far, for an attach. */
  readonly seen: () => string;
  readonly tell: (event: ConnectionEvent) => void;
  /** @throws KcoreError NODE_LIMIT_EXCEEDED */
  readonly onFrame: (frame: Frame, offset: number) => void;
  readonly onLimit: (error: KcoreError) => void;
  /** The node takes nothing more of what it asked for. */
  readonly onStall: (problem: Problem) => void;
  readonly settled: () => Promise<void>;
  /** Something that no node can cause. */
  readonly onBug: (error: unknown) => void;
}

/** The sockets of a session: one connection at a time, with one follower. */
export class SessionTransport {
  readonly #options: TransportOptions;
  #host: Host | undefined;
  #link: FollowerChannel | undefined;
  #beat: NodeJS.Timeout | undefined;
  /** What was asked for last, until the node goes on. */
  #sending: TransferProgress | undefined;
  /** Bytes of the journal that were heard. */
  #offset = 0;
  #answers: Promise<void> = Promise.resolve();
  /** What is being made or ended. */
  #change: Promise<void> = Promise.resolve();

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  get host(): Host | undefined {
    return this.#host;
  }

  /** Resolves when nothing is being made or ended any more. */
  async settled(): Promise<void> {
    for (let seen; seen !== this.#change;) await (seen = this.#change);
  }

  /** Makes a connection as soon as the one before is closed. `mayStop`: a stop of the session ends the attempt. */
  connectFollower(how: { readonly attempt: number; readonly flight: string; readonly mayStop: boolean }): void {
    this.#change = this.#change.then(() => this.#dial(how));
  }

  carryOut(what: "check-host" | "start-beat" | "stop-beat" | "close-channel" | "disconnect"): void {
    switch (what) {
      case "check-host":
        return void this.#judge();
      case "start-beat":
        this.#beat = setInterval(() => this.say("beat\n"), beatEvery).unref();
        return;
      case "stop-beat":
        return clearInterval(this.#beat);
      case "close-channel":
        return this.#link?.end();
      case "disconnect":
        return this.#hangUp();
    }
  }

  say(text: string): void {
    void this.#link?.send(text);
  }

  /** Answers a question for blobs, one after the other: a runner asks nothing else until it has its answer. */
  sendBlobs(names: readonly string[], offered: ReadonlyMap<string, Blob>): void {
    const link = this.#link;
    this.#answers = this.#answers.then(async () => {
      if (!link || link !== this.#link) return;
      try {
        const { run } = this.#options;
        const isOpen = (): boolean => link === this.#link;
        const askerFor = (label: string): Asker => this.#askerFor(label);
        await sendBlobs(link, names, { run, offered, sending: this.#watch(link), isOpen, askerFor, ...this.#fed() });
      } catch (error) {
        const { stopping } = this.#options;
        // A fetch that nobody waits for any more: the runner was told.
        if (stopping.aborted && error === stopping.reason) return;
        // The runner waits for what never comes: a file of the project that changed while the run went on.
        this.say("stop\n");
        this.#options.onBug(error);
      }
    });
  }

  #askerFor(label: string): Asker {
    const { session, stopping } = this.#options;
    const { emit, node } = session;
    const tell: Asker["tell"] = ({ got, total }) => {
      const far = got === 0 ? "" : `: ${total === undefined ? formatBytes(got) : formatSending({ sent: got, total })}`;
      emit({ type: "node.waiting", node: node.name, reason: `for ${label}, which the bastion fetches${far}` });
    };
    return { signal: stopping, tell };
  }

  /** Where others may feed the node. */
  #fed(): Pick<BlobAnswer, "fed"> {
    const { session, run } = this.#options;
    const { feed, node, endpoint, sudoPassword, emit } = session;
    const host = this.#host;
    if (!feed || !host) return {};
    return { fed: { feed, party: { node: node.name, endpoint, host, run, sudoPassword, emit } } };
  }

  #watch(link: FollowerChannel): TransferProgress {
    const { session, onStall } = this.#options;
    const { emit, node, transferStall: stall = stallLimit } = session;
    this.#sending?.stop();
    const taken = (): number => link.taken();
    return (this.#sending = new TransferProgress({ node: node.name, taken, emit, stall, onStall, now: Date.now }));
  }

  /** The node goes on: what it asked for is there. */
  arrived(): void {
    this.#sending?.arrive();
    this.#sending = undefined;
  }

  /** Tells whether the host's connection ended with the channel. */
  async #judge(): Promise<void> {
    const isGone = this.#host?.closed.then(() => true) ?? true;
    const timeout = new Promise<false>((resolve) => setTimeout(resolve, judgement, false));
    this.#options.tell({ type: "host-checked", isHostGone: await Promise.race([isGone, timeout]) });
  }

  #hangUp(): void {
    this.#sending?.stop();
    const link = this.#link;
    const host = this.#host;
    this.#link = this.#host = undefined;
    link?.end();
    const { feed, node } = this.#options.session;
    feed?.leave(node.name);
    if (host && !feed?.inherits(host)) this.#change = this.#change.then(() => host.close());
  }

  async #dial(how: { readonly attempt: number; readonly flight: string; readonly mayStop: boolean }): Promise<void> {
    const { session, run, stopping, seen, tell, onFrame, onLimit, settled, onBug } = this.#options;
    const { flight, ...attempt } = how;
    const offset = this.#offset;
    try {
      const link: FollowerChannel = await connectFollower({
        ...attempt,
        session,
        run,
        stopping,
        offset,
        // The flight goes with the follower's text, without waiting for the hello.
        text: followerText(run, { offset, seen: seen() }) + flight,
        sudoPassword: session.sudoPassword,
        onHost: (host) => {
          this.#host = host;
          tell({ type: "reached" });
        },
        onFrame: (frame, offset) => {
          this.#offset = offset;
          onFrame(frame, offset);
        },
        onLimit,
        settled,
      });
      this.#link = link;
      tell({ type: "opened" });
      void link.closed.then((said) => this.#lost(link, said));
    } catch (error) {
      this.#host = undefined;
      if (!(error instanceof KcoreError)) onBug(error);
      const problem = error instanceof KcoreError ? (error.problems[0] as Problem) : ownBug(error);
      tell({ type: "refused", problem });
    }
  }

  #lost(link: FollowerChannel, said: string): void {
    if (this.#link !== link) return;
    this.#sending?.stop();
    this.#link = undefined;
    const { feed, node } = this.#options.session;
    feed?.leave(node.name);
    this.#options.tell({ type: "lost", said });
  }
}
