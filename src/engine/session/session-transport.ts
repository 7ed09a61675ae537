import { countdown } from "#base/wait.ts";
import { formatBytes, formatSending } from "#base/units.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import type { FetchRequest, Blob } from "#engine/step/blob.ts";
import { followerText, type RunVariables } from "#engine/program/bootstrap.ts";
import type { Frame } from "#engine/program/frames.ts";
import type { FollowerChannel } from "./follower-channel.ts";
import type { SessionOptions } from "./session.ts";
import type { Host } from "#engine/transport/host.ts";
import { connectFollower, isHostGone } from "./connect-follower.ts";
import { endGroup } from "./end-group.ts";
import type { ConnectionEvent } from "./session-events.ts";
import { ownBug } from "./problems.ts";
import { type BlobAnswer, sendBlobs } from "./send-blobs.ts";
import { TransferProgress } from "./transfer-progress.ts";

/** Milliseconds between two beats: after 30 s without one the runner counts the follower as gone (docs/runner.md). */
const beatEvery = 5_000;
/** Milliseconds without progress in sending blobs; a disk that is slow to flush needs some time. */
const stallLimit = 120_000;

export interface SessionTransportOptions {
  readonly session: SessionOptions;
  readonly run: RunVariables;
  /** Aborted when the session is stopped. */
  readonly stopping: AbortSignal;
  /** The output received so far, for an attach. */
  readonly seen: () => string;
  readonly onEvent: (event: ConnectionEvent) => void;
  /** @throws KcoreError NODE_LIMIT_EXCEEDED */
  readonly onFrame: (frame: Frame, offset: number) => void;
  readonly onLimit: (error: KcoreError) => void;
  /** Sending blobs makes no progress any more. */
  readonly onStall: (problem: Problem) => void;
  readonly settled: () => Promise<void>;
  /** An error that no node can cause. */
  readonly onBug: (error: unknown) => void;
}

/** The connections of a session: one at a time, with one follower. */
export class SessionTransport {
  readonly #options: SessionTransportOptions;
  #host: Host | undefined;
  #follower: FollowerChannel | undefined;
  #beat: NodeJS.Timeout | undefined;
  /** Progress of the last request for blobs, until the node continues. */
  #progress: TransferProgress | undefined;
  /** Bytes of the journal that were read. */
  #offset = 0;
  #answers: Promise<void> = Promise.resolve();
  /** Connections that are being made or closed. */
  #change: Promise<void> = Promise.resolve();
  /** The shell of a look: it waits for its next text, over a connection that the session has not asked for yet. */
  #shell: Promise<FollowerChannel> | undefined;
  #receive: (frame: Frame, offset: number) => void = () => undefined;

  constructor(options: SessionTransportOptions) {
    this.#options = options;
  }

  get host(): Host | undefined {
    return this.#host;
  }

  /** Whether the shell of an earlier look waits for its next text. */
  get hasShell(): boolean {
    return this.#shell !== undefined;
  }

  /** Resolves when no connection is being made or closed any more. */
  async settled(): Promise<void> {
    for (let seen; seen !== this.#change;) await (seen = this.#change);
  }

  /**
   * Lets a shell on the node look at its steps, without a runner; connects if necessary. Resolves with the look's frames, or with undefined if
   * the connection or the shell has ended without a verdict. Probes that take more than `limit` milliseconds are ended, with the shell.
   * `onFrame` may throw NODE_LIMIT_EXCEEDED. The next {@link connect} continues with the same shell.
   */
  async look(
    text: string,
    { limit, onFrame }: { readonly limit: number; readonly onFrame: (frame: Frame) => void },
  ): Promise<readonly Frame[] | undefined> {
    const { stopping } = this.#options;
    const { promise: answer, resolve } = Promise.withResolvers<readonly Frame[] | undefined>();
    const frames: Frame[] = [];
    let cancel = (): void => undefined;
    this.#receive = (frame) => {
      onFrame(frame);
      frames.push(frame);
      if (frame.type === "probing") cancel = countdown(limit, () => void this.#endGroup(frame.rest).then(end));
      if (frame.type === "look") resolve(frames);
    };
    if (this.#shell) void this.#shell.then((channel) => channel.begin(text, this.#offset));
    else this.#shell = this.#open({ attempt: 1, mayStop: true }, text);
    const shell = this.#shell;
    void this.#ended(shell).then(() => resolve(undefined));
    const end = (): void =>
      void shell.then(
        (channel) => channel.end(),
        () => undefined,
      );
    stopping.addEventListener("abort", end, { once: true });
    return answer.finally(() => {
      cancel();
      stopping.removeEventListener("abort", end);
    });
  }

  /** Resolves when the shell of a look has ended, and its connection is closed. */
  async #ended(shell: Promise<FollowerChannel>): Promise<void> {
    const isOpen = await shell.then(
      (channel) => channel.closed.then(() => true),
      () => false,
    );
    // If no connection could be made, `connect` tells why.
    if (this.#shell !== shell || !isOpen) return;
    this.#shell = undefined;
    const host = this.#host;
    this.#host = undefined;
    await host?.close();
    this.#options.onEvent({ type: "look-lost" });
  }

  /** Ends the processes of a look whose probes take too long. */
  async #endGroup(pid: string): Promise<void> {
    if (this.#host) await endGroup(this.#options.session, this.#host, pid);
  }

  /** Makes a connection once the previous one is closed. `mayStop`: a stop of the session ends the attempt. */
  connect(how: { readonly attempt: number; readonly flight: string; readonly mayStop: boolean }): void {
    this.#change = this.#change.then(() => this.#connect(how));
  }

  carryOut(what: "check-host" | "start-beat" | "stop-beat" | "close-channel" | "disconnect"): void {
    switch (what) {
      case "check-host":
        return void this.#checkHost();
      case "start-beat":
        this.#beat = setInterval(() => this.send("beat\n"), beatEvery).unref();
        return;
      case "stop-beat":
        return clearInterval(this.#beat);
      case "close-channel":
        return this.#follower?.end();
      case "disconnect":
        return this.#disconnect();
    }
  }

  send(text: string): void {
    void this.#follower?.send(text);
  }

  /** Answers a request for blobs. Answers follow each other, because a runner waits for its answer before it asks again. */
  sendBlobs(names: readonly string[], offered: ReadonlyMap<string, Blob>): void {
    const follower = this.#follower;
    this.#answers = this.#answers.then(async () => {
      if (!follower || follower !== this.#follower) return;
      try {
        const { run } = this.#options;
        const isOpen = (): boolean => follower === this.#follower;
        const requestFor = (label: string): FetchRequest => this.#requestFor(label);
        await sendBlobs(follower, names, {
          run,
          offered,
          progress: this.#watch(follower),
          isOpen,
          requestFor,
          ...this.#fromPeers(),
        });
      } catch (error) {
        const { stopping } = this.#options;
        // The stop ended a fetch, and the runner has got the stop, too.
        if (stopping.aborted && error === stopping.reason) return;
        // The blob cannot be sent, as when a file of the project changed during the run. The runner must not wait for it.
        this.send("stop\n");
        this.#options.onBug(error);
      }
    });
  }

  #requestFor(label: string): FetchRequest {
    const { session, stopping } = this.#options;
    const { emit, node } = session;
    const onProgress: FetchRequest["onProgress"] = ({ got, total }) => {
      const progress =
        got === 0 ? "" : `: ${total === undefined ? formatBytes(got) : formatSending({ sent: got, total })}`;
      emit({ type: "node.waiting", node: node.name, reason: `for ${label}, which the bastion fetches${progress}` });
    };
    return { signal: stopping, onProgress };
  }

  /** How this node gets contents from other nodes. */
  #fromPeers(): Pick<BlobAnswer, "fromPeers"> {
    const { session, run } = this.#options;
    const { peerBlobs: blobs, node, endpoint, sudoPassword, emit } = session;
    const host = this.#host;
    if (!blobs || !host) return {};
    return { fromPeers: { blobs, peer: { node: node.name, endpoint, host, run, sudoPassword, emit } } };
  }

  #watch(follower: FollowerChannel): TransferProgress {
    const { session, onStall } = this.#options;
    const { emit, node, transferStall: stall = stallLimit } = session;
    this.#progress?.stop();
    const bytesTaken = (): number => follower.bytesTaken();
    return (this.#progress = new TransferProgress({
      node: node.name,
      bytesTaken,
      emit,
      stall,
      onStall,
      now: Date.now,
    }));
  }

  /** The node continues: the blobs have arrived. */
  arrived(): void {
    this.#progress?.arrive();
    this.#progress = undefined;
  }

  async #checkHost(): Promise<void> {
    this.#options.onEvent({ type: "host-checked", isHostGone: await isHostGone(this.#host) });
  }

  #disconnect(): void {
    this.#progress?.stop();
    const host = this.#host;
    this.#follower?.end();
    void this.#shell?.then(
      (channel) => channel.end(),
      () => undefined,
    );
    this.#follower = this.#shell = this.#host = undefined;
    const { peerBlobs, node } = this.#options.session;
    peerBlobs?.leave(node.name);
    if (host && !peerBlobs?.takeOver(host)) this.#change = this.#change.then(() => host.close());
  }

  async #connect(how: { readonly attempt: number; readonly flight: string; readonly mayStop: boolean }): Promise<void> {
    const { run, seen, onEvent, onFrame, onBug } = this.#options;
    const { flight, ...attempt } = how;
    // The flight follows the text of the follower without waiting for the hello.
    const text = followerText(run, { offset: this.#offset, seen: seen() }) + flight;
    const shell = this.#shell;
    this.#shell = undefined;
    this.#receive = (frame, offset) => {
      this.#offset = offset;
      onFrame(frame, offset);
    };
    try {
      const follower = await (shell ?? this.#open(attempt, text));
      if (shell) {
        onEvent({ type: "reached" });
        follower.begin(text, this.#offset);
      }
      this.#follower = follower;
      onEvent({ type: "opened" });
      void follower.closed.then((output) => this.#lost(follower, output));
    } catch (error) {
      this.#host = undefined;
      if (!(error instanceof KcoreError)) onBug(error);
      const problem = error instanceof KcoreError ? (error.problems[0] as Problem) : ownBug(error);
      onEvent({ type: "refused", problem });
    }
  }

  #open(attempt: { readonly attempt: number; readonly mayStop: boolean }, text: string): Promise<FollowerChannel> {
    const { session, run, stopping, onEvent, onLimit, settled } = this.#options;
    return connectFollower({
      ...attempt,
      session,
      run,
      stopping,
      offset: this.#offset,
      text,
      sudoPassword: session.sudoPassword,
      onHost: (host) => {
        this.#host = host;
        onEvent({ type: "reached" });
      },
      onFrame: (frame, offset) => this.#receive(frame, offset),
      onLimit,
      settled,
    });
  }

  #lost(follower: FollowerChannel, output: string): void {
    if (this.#follower !== follower) return;
    this.#progress?.stop();
    this.#follower = undefined;
    const { peerBlobs, node } = this.#options.session;
    peerBlobs?.leave(node.name);
    this.#options.onEvent({ type: "lost", output });
  }
}
