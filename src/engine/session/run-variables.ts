import type { RunVariables } from "#engine/program/bootstrap.ts";
import type { SessionOptions } from "./session.ts";

/** What the shells on the node are told of the session's run. A run that may wipe tells its grants later, when their disks were saved. */
export function runVariables({ node, runId, nonce, who, dryRun, grants }: SessionOptions): RunVariables {
  const login = node.transport === "local" ? (process.getuid?.() === 0 ? "root" : "user") : node.user;
  return { nonce, runId, who, dryRun, grants: dryRun ? grants : [], stateDir: node.stateDir, node: node.name, login };
}
