import { createTail } from "#base/tail.ts";
import { createChunkQueue } from "#engine/transport/chunk-queue.ts";
import type { Channel } from "#engine/transport/host.ts";
import type { FollowerChannel } from "./follower-channel.ts";

/** A program of the bastion's on a node, in place of an operator's command. */
export interface Dialogue {
  /** The program's text of sh. */
  readonly text: string;
  /** Speaks with the program of one node, whose stdin ends with it. A KcoreError is the node's problem; a {@link ProgramEnded} leaves that to the program's end. */
  readonly speak: (node: string, program: NodeProgram) => Promise<void>;
}

/** The program, or the connection to its node, is gone. */
export class ProgramEnded extends Error {}

const stdoutLimit = 1 << 20;
const stderrLimit = 64 << 10;

/** A program that runs as root on a node, by its streams. The node sends at most some 3 MiB more than is read. */
export class NodeProgram implements Pick<Channel, "stdout" | "write" | "end" | "stderrTail"> {
  readonly #stderr = createTail(stderrLimit);
  readonly #stdout = createChunkQueue(stdoutLimit, () => this.#room?.resolve());
  #room: PromiseWithResolvers<void> | undefined;
  #channel: FollowerChannel | undefined;
  #isOver = false;

  get stdout(): AsyncIterable<Uint8Array> {
    return this.#stdout;
  }

  /** Resolves when all of the output was read. */
  get drained(): Promise<void> {
    return this.#stdout.drained;
  }

  /** Takes output of the node. */
  take(stream: "out" | "err", bytes: Uint8Array): void {
    if (stream === "err") this.#stderr.push(bytes);
    else if (!this.#stdout.push(bytes)) this.#room ??= Promise.withResolvers();
  }

  /** Resolves when more output may be taken. */
  async settled(): Promise<void> {
    await this.#room?.promise;
    this.#room = undefined;
  }

  open(channel: FollowerChannel): void {
    this.#channel = channel;
    void channel.closed.then(() => {
      this.#isOver = true;
      this.#stdout.end();
    });
  }

  /** Ends the program, which may wait for its output to be read. */
  close(): void {
    this.#stdout.discard();
    this.#room?.resolve();
    this.#channel?.end();
  }

  /** @throws ProgramEnded */
  async write(bytes: Uint8Array | string): Promise<void> {
    if (!this.#isOver) await this.#channel?.send(bytes);
    if (this.#isOver) throw new ProgramEnded();
  }

  end(): void {
    this.#channel?.endInput();
  }

  stderrTail(): string {
    return this.#stderr.text();
  }
}
