import type { RunModel } from "#engine/events/run-model.ts";
import type { Problem } from "#errors/problem.ts";
import { ask } from "../terminal/ask-operator.ts";
import { canPrompt } from "../terminal/prompt.ts";

interface GrantQuestion {
  readonly node: string;
  /** The disk's serial number, or another name from the refusal. */
  readonly name: string;
  /** The value for `--grant`, with @NODE, since another node may have a disk of that name with the same contents. */
  readonly grant: string;
  readonly problem: Problem;
}

/**
 * Asks the operator about each disk that a run was refused, and resolves with the grants, each with @NODE. It shows the disk
 * and its contents; typing the disk's name grants a wipe of exactly these contents. `--yes` does not answer, and without a
 * terminal there are no grants.
 */
export async function askForGrants(model: RunModel): Promise<readonly string[]> {
  if (!canPrompt()) return [];
  const grants: string[] = [];
  for (const { node, name, grant, problem } of grantsWanted(model)) {
    process.stderr.write(`\n${node}  ${problem.message}\n${indented(problem.detail)}`);
    const answer = await ask(`Type ${name} to wipe it on ${node} in another run, or only Enter to leave it`);
    if (answer?.trim() === name) grants.push(grant);
    else process.stderr.write(`${answer?.trim() ? `That is not ${name}. ` : ""}It is left as it is.\n`);
  }
  return grants;
}

/** The refusals that stand in spite of these grants, which end with @NODE. A refusal without a grant in its text always stands. */
export function ungranted<Refused extends Problem>(
  refusals: readonly Refused[],
  grants: readonly string[],
): readonly Refused[] {
  const given = new Set(grants.map((grant) => grant.slice(0, grant.lastIndexOf("@"))));
  return refusals.filter(({ message }) => {
    const wanted = grantsIn(message);
    return wanted.length === 0 || wanted.some(([grant]) => !given.has(grant));
  });
}

/** The grants that a refusal's message names, each with the disk's name in it. */
function grantsIn(message: string): readonly (readonly [string, string])[] {
  return [...message.matchAll(/--grant ((\S.*?):[0-9a-f]{16})$/gm)].map(([, grant = "", name = ""]) => [grant, name]);
}

/** The grants that the refusals of failed steps name, each once. */
export function grantsWanted({ nodes }: Pick<RunModel, "nodes">): readonly GrantQuestion[] {
  const found = new Map<string, GrantQuestion>();
  for (const { name: node, steps } of nodes.values())
    for (const { outcome, problem } of steps) {
      if (outcome !== "failed" || !problem) continue;
      for (const [grant, name] of grantsIn(problem.message))
        found.set(`${node} ${grant}`, { node, name, grant: `${grant}@${node}`, problem });
    }
  return [...found.values()];
}

function indented(detail: string | undefined): string {
  return detail === undefined || detail === "" ? "" : `${detail.replaceAll(/^/gm, "    ").trimEnd()}\n`;
}
