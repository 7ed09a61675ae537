import { savingText } from "#engine/program/without-runner.ts";
import type { RunVariables } from "#engine/program/bootstrap.ts";
import type { Host } from "#engine/transport/host.ts";
import { KcoreError } from "#errors/problem.ts";
import { openFollowerChannel } from "./follower-channel.ts";
import { limitExceeded } from "./node-budget.ts";
import { SaveReader, type SaveResult } from "./save-frames.ts";
import type { SaveOccasion, TableStore } from "#engine/partition-backups/saved-tables.ts";

/** Frames of one node at most: twice the portions of 64 KiB (frames.ts) in a GiB. */
const maxFrames = 1 << 15;

interface SaveOptions {
  readonly host: Host;
  readonly run: RunVariables;
  readonly names: readonly string[];
  readonly store: TableStore;
  readonly occasion: (name: string) => SaveOccasion;
  readonly sudoPassword: (again?: boolean) => Promise<string | undefined>;
  /** Ends the save. */
  readonly signal: AbortSignal;
}

/**
 * Saves the tables of these disks, over a channel of its own in the open connection. `isCut`: the channel ended before the node had sent
 * everything. Failures on the node or of the bastion's disk are in the results.
 */
export async function saveTables(
  options: SaveOptions,
): Promise<{ readonly results: ReadonlyMap<string, SaveResult>; readonly isCut: boolean }> {
  const { host, run, names, store, occasion, sudoPassword, signal } = options;
  const reader = new SaveReader(names, store, occasion);
  let taken: Promise<void> = Promise.resolve();
  let frames = 0;
  let why = "the connection ended before all of it had arrived";
  try {
    const channel = await openFollowerChannel({
      host,
      run,
      text: savingText(run, names),
      sudoPassword,
      onFrame: (frame) => {
        if (++frames > maxFrames) throw limitExceeded(run.node, "more frames than a disk has parts");
        // A frame's bytes are a view into a buffer that the next read overwrites.
        const bytes = frame.bytes && { bytes: Buffer.from(frame.bytes) };
        taken = taken.then(() => reader.take({ ...frame, ...bytes }));
      },
      onLimit: ({ problems }) => (why = problems[0]?.message ?? why),
      settled: () => taken,
    });
    const end = (): void => channel.end();
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
    const output = (await channel.closed).trim();
    signal.removeEventListener("abort", end);
    if (output !== "") why += `: ${output.split("\n").at(-1)?.slice(0, 512)}`;
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    why = error.message;
  }
  await taken;
  const isCut = !reader.isWhole;
  await reader.end(whyEnded(signal) ?? why);
  return { results: reader.results, isCut };
}

/** Why the signal ended the save: the time limit, or a stop of the run. */
function whyEnded({ aborted, reason }: AbortSignal): string | undefined {
  if (!aborted) return undefined;
  return reason instanceof DOMException && reason.name === "TimeoutError"
    ? "the node took too long to tell it"
    : "the run was stopped";
}
