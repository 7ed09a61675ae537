import { cleanText } from "#engine/events/clean.ts";
import { formatProblem } from "#errors/problem.ts";
import type { NodeResult } from "./step-results.ts";

/** What goes to stdout and what to stderr. */
export interface Drawn {
  readonly out: string;
  readonly err: string;
}

/** Each answer once, with the nodes that gave it: the most frequent first, those of failed commands without their ends. */
export function drawGroups(results: readonly NodeResult[]): Drawn {
  const groups = [...Map.groupBy(results, ({ stdout, stderr, ...end }) => JSON.stringify([stdout, stderr, endOf(end)]))]
    .map(([, alike]) => alike)
    .toSorted((a, b) => b.length - a.length);
  let [out, err] = ["", ""];
  for (const alike of groups) {
    const [{ stdout, stderr, ...end }] = alike as [NodeResult, ...NodeResult[]];
    const [who, why] = [namesOf(alike), endOf(end)];
    if (stdout !== "" || (why === undefined && stderr === ""))
      out += block(who, stdout === "" ? "(no output)" : stdout);
    if (why === undefined && stderr !== "") err += block(`${who}  on stderr`, stderr);
  }
  for (const alike of groups) {
    const [{ stderr, ...end }] = alike as [NodeResult, ...NodeResult[]];
    const why = endOf(end);
    if (why !== undefined) err += block(`${namesOf(alike)}  ${why}`, stderr);
  }
  return { out, err };
}

/** What failed, and how: alike ends once with their nodes. */
export function drawFailures(results: readonly NodeResult[]): string {
  const failed = results.filter((result) => endOf(result) !== undefined);
  return [...Map.groupBy(failed, endOf)].map(([why, alike]) => `${namesOf(alike)}  ${why}\n`).join("");
}

/** How a node's command ended, if not well; with the hint of why it was not even begun. */
function endOf({ outcome, exitCode, problem }: Omit<NodeResult, "node" | "stdout" | "stderr">): string | undefined {
  if (exitCode === 0) return undefined;
  if (exitCode !== undefined) return `exit code ${exitCode}`;
  const said = problem?.detail === undefined ? "" : `\n${problem.detail.replaceAll(/^/gm, "  | ")}`;
  const hint = problem?.hint === undefined ? "" : `\n  hint: ${problem.hint}`;
  return cleanText(
    `${outcome.replace("-", " ")}${problem ? `: ${formatProblem({ ...problem, at: undefined })}${said}${hint}` : ""}`,
  );
}

function namesOf(alike: readonly NodeResult[]): string {
  const names = alike.map(({ node }) => node).join(", ");
  return alike.length > 1 ? `${names} (${alike.length} nodes)` : names;
}

function block(head: string, text: string): string {
  const lines = text === "" ? [] : text.replace(/\n$/, "").split("\n");
  return [head, ...lines.map((line) => `  ${line}`)].map((line) => `${line}\n`).join("");
}
