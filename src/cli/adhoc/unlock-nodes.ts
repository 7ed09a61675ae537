import { exitCodes } from "#errors/problem.ts";
import { requireYes } from "../terminal/ask-operator.ts";
import { requestOf, type RunFlags } from "../watch/run-request.ts";
import { runHere } from "../watch/run-here.ts";
import { tellWait } from "../watch/step-results.ts";

export interface UnlockFlags extends RunFlags {
  readonly yes?: boolean;
}

/** `kcore node unlock TARGET`: ends the runners of the runs that hold the nodes; without `--yes`, shows these runs and asks first. */
export async function unlockNodes(target: string, flags: UnlockFlags): Promise<void> {
  const targeted = { ...flags, on: [target] };
  if (!flags.yes) {
    const held = await askNodes(targeted, { isLook: true });
    if (!held.some((text) => text.startsWith("held by run"))) return;
    await requireYes("End that run on these nodes? Its work there is broken off.", {});
  }
  await askNodes(targeted, { isLook: false });
}

/** Ends the runners of the run on those of the nodes that the run still holds. */
export async function abandonNodes(run: string, nodes: readonly string[], flags: UnlockFlags): Promise<void> {
  await askNodes({ ...flags, on: [nodes.join(",")] }, { isLook: false, run });
}

/** Prints the answer of each node, and returns these texts. `isLook`: no runner is ended. */
async function askNodes(
  flags: UnlockFlags,
  what: { readonly isLook: boolean; readonly run?: string },
): Promise<readonly string[]> {
  const { exitCode, model } = await runHere(flags, requestOf(flags, { kind: "unlock", ...what }), tellWait);
  if (exitCode !== exitCodes.done) process.exitCode = exitCode;
  return [...model.nodes.values()].map(({ name, milestone, problem, outcome }) => {
    const text = milestone ?? problem?.message ?? outcome ?? "";
    process.stdout.write(`${name}  ${text}\n`);
    return text;
  });
}
