import { Command } from "commander";
import type { ConflictView } from "#api/schemas.ts";
import { KcoreError } from "#errors/problem.ts";
import { openCluster } from "./open-cluster.ts";
import { addClusterOptions, type ClusterFlags } from "../options.ts";
import { printJson } from "../terminal/print-json.ts";

/** `kcore conflict ack|take-loser`. */
export function conflictCommand(): Command {
  const conflict = new Command("conflict").description("Resolve concurrent edits of the same thing").addHelpText(
    "after",
    `
Examples:
  kcore get conflicts
  kcore conflict ack 3f9a1c2e               what won is right
  kcore conflict take-loser 3f9a1c2e        what lost is right: it is written anew

An id may be shortened to its first four characters or more.`,
  );
  addClusterOptions(conflict.command("ack <id...>"))
    .description("Keep the value that won and close the conflict")
    .addHelpText("after", "\nExamples:\n  kcore conflict ack 3f9a1c2e")
    .action((ids: readonly string[], flags: ClusterFlags) => resolveConflicts(ids, flags, "ackConflict"));
  addClusterOptions(conflict.command("take-loser <id...>"))
    .description("Take the value that lost instead and close the conflict")
    .addHelpText("after", "\nExamples:\n  kcore conflict take-loser 3f9a1c2e")
    .action((ids: readonly string[], flags: ClusterFlags) => resolveConflicts(ids, flags, "takeLoser"));
  return conflict;
}

async function resolveConflicts(
  ids: readonly string[],
  flags: ClusterFlags,
  method: "ackConflict" | "takeLoser",
): Promise<void> {
  const { ask } = await openCluster(flags);
  const { conflicts } = await ask((client) => client.call("listConflicts", {}));
  for (const { id, key, winner, loser } of ids.map((word) => findConflict(conflicts, word))) {
    await ask((client) => client.call(method, {}, { id }));
    const resolution = method === "takeLoser" ? loser : winner;
    process.stdout.write(
      `${key}: ${resolution.value === null ? "deleted" : printJson(resolution.value)} it is (${id})\n`,
    );
  }
}

function findConflict(conflicts: readonly ConflictView[], word: string): ConflictView {
  const found = conflicts.filter(({ id }) => id === word || (word.length >= 4 && id.startsWith(word)));
  const [only] = found;
  if (only && found.length === 1) return only;
  throw new KcoreError({
    code: "CONFLICT_UNKNOWN",
    message: only ? `“${word}” fits ${found.length} conflicts` : `there is no conflict “${word}”`,
    hint: only ? "give more of the id" : "kcore get conflicts",
  });
}
