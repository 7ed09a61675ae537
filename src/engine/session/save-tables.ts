import { savingText } from "#engine/program/without-runner.ts";
import type { RunVariables } from "#engine/program/bootstrap.ts";
import type { Host } from "#engine/transport/host.ts";
import { KcoreError } from "#errors/problem.ts";
import { openFollowerChannel } from "./follower-channel.ts";
import { limitExceeded } from "./node-budget.ts";
import { SaveReader, type SaveResult } from "./save-frames.ts";
import type { SaveOccasion, TableStore } from "#engine/tables/table-store.ts";

/** Frames of one node: a GiB in portions, and as many again. */
const mostFrames = 1 << 15;

interface SaveOptions {
  readonly host: Host;
  readonly run: RunVariables;
  readonly names: readonly string[];
  readonly store: TableStore;
  readonly occasion: (name: string) => SaveOccasion;
  readonly sudoPassword: (again?: boolean) => Promise<string | undefined>;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/**
 * Asks the node for what is to be kept of these, over a channel of its own of a connection that is there, and keeps it. `isCut`: the
 * connection ended before the node had said all. Never throws for what happens on the node or on the bastion's disk.
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
    const link = await openFollowerChannel({
      host,
      run,
      text: savingText(run, names),
      sudoPassword,
      onFrame: (frame) => {
        if (++frames > mostFrames) throw limitExceeded(run.node, "more frames than a disk has parts");
        // Copied now: what a frame holds is a view into what is read next.
        const bytes = frame.bytes && { bytes: Buffer.from(frame.bytes) };
        taken = taken.then(() => reader.take({ ...frame, ...bytes }));
      },
      onLimit: ({ problems }) => (why = problems[0]?.message ?? why),
      settled: () => taken,
    });
    const end = (): void => link.end();
    signal.addEventListener("abort", end);
    if (signal.aborted) end();
    const said = (await link.closed).trim();
    signal.removeEventListener("abort", end);
    if (said !== "") why += `: ${said.split("\n").at(-1)?.slice(0, 512)}`;
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    why = error.message;
  }
  await taken;
  const isCut = !reader.isWhole;
  await reader.end(whyEnded(signal) ?? why);
  return { results: reader.results, isCut };
}

/** The node's time was over, or somebody stopped the run. */
function whyEnded({ aborted, reason }: AbortSignal): string | undefined {
  if (!aborted) return undefined;
  return reason instanceof DOMException && reason.name === "TimeoutError"
    ? "the node took too long to tell it"
    : "the run was stopped";
}
