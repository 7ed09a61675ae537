import type { RunModel } from "#engine/events/run-model.ts";

/** Options of commands that start runs and take a value in the next word. */
const optionsWithValue = new Set([
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
]);
const flags = new Set([
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
]);

/**
 * The command that repeats a step on one node: the run's own command with that node as its target. Steps in order
 * change nothing. Without a node, or if a parameter names the nodes, it is the command as it was.
 */
export function repeatCommand(command: string, node?: string): string {
  const words = splitWords(command);
  if (node === undefined || words === undefined || words[0] !== "kcore") return command;
  // `kcore exec … -- COMMAND`: the rest belongs to the node.
  const end = words.indexOf("--");
  const own = end < 0 ? words : words.slice(0, end);
  // NAME of `orchestrate`, NAMES of `state apply`; targets come after them.
  const names = own[1] === "orchestrate" ? 3 : own.length;
  const kept: string[] = [];
  let found = false;
  let positional = 0;
  for (let index = 0; index < own.length; index++) {
    const word = own[index] as string;
    if (word === "--on") {
      found = true;
      index += 1;
    } else if (word.startsWith("--on=")) found = true;
    else if (word === "--detach") continue;
    else if (optionsWithValue.has(word)) kept.push(word, ...own.slice((index += 1), index + 1));
    else if (word.startsWith("-")) {
      if (!flags.has(word) && !optionsWithValue.has(word.split("=")[0] as string)) return command;
      kept.push(word);
    } else if (++positional > names) found = true;
    else kept.push(word);
  }
  if (!found) return command;
  const rest = end < 0 ? [] : words.slice(end);
  return [...kept, "--on", node, ...rest].map(quoteWord).join(" ");
}

/** The words of a recorded command with single quotes; undefined for any other text. */
function splitWords(command: string): string[] | undefined {
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

/** A word of a recorded command, as a shell needs it. */
export function quoteWord(word: string): string {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Whether a run has ended with work left, so that “runs resume” continues it. */
export function mayResume({ state, outcome, dryRun, runId }: RunModel): boolean {
  return state === "finished" && outcome !== "done" && !dryRun && runId !== "";
}
