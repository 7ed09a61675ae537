import { Command, Option } from "commander";
import { formatDuration } from "#base/units.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { printRows } from "../terminal/format-result.ts";
import { addRunOptions } from "../watch/run-options.ts";
import { requestOf, requireTarget, type RunFlags } from "../watch/run-request.ts";
import { visible } from "#errors/draw.ts";
import { runHere } from "../watch/run-here.ts";
import { tellWait } from "../watch/step-results.ts";

interface PingFlags extends RunFlags {
  readonly output: "table" | "json";
}

/** `kcore ping --on TARGET`. */
export function pingCommand(): Command {
  const command = new Command("ping").description(
    "Connect to nodes, check their keys and shells, and tell how long it took",
  );
  addRunOptions(command, { full: false })
    .addOption(new Option("-o, --output <format>", "how to print").choices(["table", "json"]).default("table"))
    .addHelpText("after", "\nExamples:\n  kcore ping --on '*'\n  kcore ping --on 'dc:DC1' -o json")
    .action(ping);
  return command;
}

async function ping(flags: PingFlags): Promise<void> {
  requireTarget(flags, "ping");
  const times = new Map<string, { start: number; end?: number }>();
  const onEvent = (event: RunEvent) => {
    if (event.type === "node.connecting" && !times.has(event.node)) times.set(event.node, { start: event.at });
    // The time ends when the node is finished, not when it is connected: its shell has to answer, too.
    const time = event.type === "node.finished" ? times.get(event.node) : undefined;
    if (time) time.end = event.at;
    tellWait(event);
  };
  const { exitCode, model } = await runHere(flags, requestOf(flags, { kind: "ping" }), onEvent);
  const results = [...model.nodes.values()].map(({ name, outcome = "interrupted", fingerprint, problem }) => {
    const { start, end } = times.get(name) ?? {};
    return {
      node: name,
      outcome,
      ...(start === undefined || end === undefined ? {} : { milliseconds: end - start }),
      ...(fingerprint ? { fingerprint } : {}),
      ...(problem ? { problem } : {}),
    };
  });
  process.exitCode = exitCode;
  const rows = results.map(({ node, outcome, milliseconds, fingerprint, problem }) => [
    node,
    outcome === "done" ? "ok" : outcome,
    milliseconds === undefined ? "" : milliseconds < 1000 ? `${milliseconds} ms` : formatDuration(milliseconds),
    problem ? `${problem.message} [${problem.code}]` : (fingerprint ?? ""),
  ]);
  if (flags.output === "json" || rows.length > 0)
    printRows(results, flags.output, ["NODE", "RESULT", "TIME", "HOST KEY"], rows);
  if (flags.output !== "json") {
    for (const { node, problem } of results)
      if (problem?.detail) process.stdout.write(`${node}:\n${visible(problem.detail).replaceAll(/^/gm, "  | ")}\n`);
    const hints = new Set(results.flatMap(({ problem }) => problem?.hint ?? []));
    for (const hint of hints) process.stdout.write(`  hint: ${hint}\n`);
  }
}
