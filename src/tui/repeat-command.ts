import type { RunModel } from "#engine/events/run-model.ts";

/** Options of commands that start runs and take a value in the next word. */
const valueOptions = new Set([
  "--set",
  "--params",
  "--grant",
  "--concurrency",
  "--feed",
  "--passphrase-file",
  "--output",
  "-o",
  "--project",
  "--context",
  "--timeout",
  "--report",
  "--plan",
  "--facts-age",
  "--unknown-facts",
  "--only",
  "--from",
  "--tags",
  "--limit",
  "--batch",
]);
/** Options of the same commands that take no value. */
const flagOptions = new Set([
  "--dry-run",
  "--skip-health",
  "--yes",
  "--wait",
  "--shell",
  "--debug",
  "--group",
  "--quiet",
  "--verbose",
  "--times",
  "--fail-on-change",
  "--refresh-facts",
  "--no-stay",
  "--lock",
]);

/**
 * The command that repeats a step on some nodes: the run's own command with these nodes, joined by commas, as its target.
 * Returns the command as it was without nodes, if a parameter names the nodes, or if an option is unknown here.
 */
export function repeatCommand(command: string, nodes?: string): string {
  const words = splitCommand(command);
  if (nodes === undefined || words === undefined || words[0] !== "kcore") return command;
  // `kcore exec … -- COMMAND`: the rest belongs to the node.
  const end = words.indexOf("--");
  const own = end < 0 ? words : words.slice(0, end);
  // `kcore orchestrate NAME` may have targets after the name; the words of other commands are no targets.
  const mostNames = own[1] === "orchestrate" ? 3 : own.length;
  const kept: string[] = [];
  let hasTarget = false;
  let positional = 0;
  for (let index = 0; index < own.length; index++) {
    const word = own[index] as string;
    if (word === "--on") {
      hasTarget = true;
      index += 1;
    } else if (word.startsWith("--on=")) hasTarget = true;
    else if (word === "--detach") continue;
    else if (valueOptions.has(word)) kept.push(word, ...own.slice((index += 1), index + 1));
    else if (word.startsWith("-")) {
      if (!flagOptions.has(word) && !valueOptions.has(word.split("=")[0] as string)) return command;
      kept.push(word);
    } else if (++positional > mostNames) hasTarget = true;
    else kept.push(word);
  }
  if (!hasTarget) return command;
  const rest = end < 0 ? [] : words.slice(end);
  return [...kept, "--on", nodes, ...rest].map(quoteWord).join(" ");
}

/** The words of a recorded command with single quotes; undefined for any other text. */
function splitCommand(command: string): string[] | undefined {
  const words: string[] = [];
  const pattern = /\s*((?:[^\s'\\]|\\.|'[^']*')+)/y;
  let at = 0;
  while (at < command.trimEnd().length) {
    pattern.lastIndex = at;
    const match = pattern.exec(command);
    if (!match) return undefined;
    words.push(
      (match[1] as string).replace(
        /\\(.)|'([^']*)'/g,
        (_, escaped?: string, quoted?: string) => escaped ?? quoted ?? "",
      ),
    );
    at = pattern.lastIndex;
  }
  return words;
}

/** A word of a recorded command, quoted for a shell if that is needed. */
export function quoteWord(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Whether a run has ended with work left, so that “runs resume” continues it. */
export function mayResume({ state, outcome, dryRun, runId }: RunModel): boolean {
  return state === "finished" && outcome !== "done" && !dryRun && runId !== "";
}
