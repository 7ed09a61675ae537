import { Command } from "commander";
import { askOne } from "#api/ask.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { loadContext } from "#pki/contexts.ts";
import { contextHome } from "../contexts.ts";
import { addProjectOption, addResultOption, type CommonFlags } from "../options.ts";
import { formatTable } from "../table.ts";

interface Finding {
  readonly controller: string;
  readonly healthy: boolean;
  readonly version?: string;
  readonly nodes?: { readonly total: number; readonly ready: number };
  readonly reason?: string;
}

/** `kcore health`: asks every controller of the context; exits 1 when one is not healthy, 3 when none answers. */
export function healthCommand(): Command {
  return addResultOption(addProjectOption(new Command("health")))
    .description("Ask every controller of the context whether it answers and is in step with the others")
    .addHelpText("after", "\nExamples:\n  kcore health\n  kcore health -o json")
    .action(health);
}

async function health({ context, output }: CommonFlags & { readonly output: "table" | "json" }): Promise<void> {
  const { controllers, ca, cert, key } = await loadContext(contextHome(), context);
  const found = await Promise.all(controllers.map((endpoint) => look(endpoint, { ca, cert, key })));
  if (output === "json") process.stdout.write(`${JSON.stringify(found, undefined, 2)}\n`);
  else if (found.length === 0) process.stdout.write("no controller yet: kcore orchestrate deploy_node NODE\n");
  else
    process.stdout.write(
      formatTable(
        ["CONTROLLER", "HEALTH", "VERSION", "NODES", "REASON"],
        found.map(({ controller, healthy, version = "", nodes, reason = "" }) => [
          controller,
          healthy ? "ok" : "unhealthy",
          version,
          nodes ? `${nodes.ready}/${nodes.total} ready` : "",
          reason,
        ]),
      ),
    );
  if (found.some(({ healthy }) => !healthy))
    process.exitCode = found.every(({ version }) => version === undefined) ? exitCodes.unreachable : exitCodes.failed;
}

async function look(controller: string, credentials: { ca: string; cert: string; key: string }): Promise<Finding> {
  try {
    const { ready, reason, version, nodes, peers } = await askOne(
      controller,
      { credentials, clock: Date.now },
      (client) => client.call("ready", {}),
    );
    const behind = peers
      .filter(({ inStep }) => !inStep)
      .map((peer) => `${peer.controllerId}: ${peer.reason ?? "behind"}`);
    const why = [...(ready ? [] : [reason ?? "not ready"]), ...behind].join("; ");
    return { controller, healthy: why === "", version, nodes, ...(why === "" ? {} : { reason: why }) };
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    return {
      controller,
      healthy: false,
      reason: error.problems.map(({ message, code }) => `${message} [${code}]`).join("; "),
    };
  }
}
