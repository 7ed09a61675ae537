import { randomBytes } from "node:crypto";
import { KcoreError } from "#errors/problem.ts";
import { runnerlessText } from "#engine/program/without-runner.ts";
import type { Host } from "#engine/transport/host.ts";
import { openFollowerChannel } from "./follower-channel.ts";
import { runVariables, type SessionOptions } from "./session.ts";

/** Ends the node's process group `pid` over a channel of its own: TERM, after five seconds KILL. A lost connection ends the attempt. */
export async function endGroup(session: SessionOptions, host: Host, pid: string): Promise<void> {
  const run = { ...runVariables(session), nonce: randomBytes(16).toString("hex") };
  const text = runnerlessText(run, { kind: "end", pid });
  const { sudoPassword } = session;
  const nothing = { onFrame: () => undefined, onLimit: () => undefined };
  try {
    const channel = await openFollowerChannel({ host, run, text, sudoPassword, ...nothing });
    await channel.closed;
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
  }
}
