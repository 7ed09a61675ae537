import { registry } from "#engine/modules/registry.ts";
import { openOwnModules } from "#engine/own-modules/open-modules.ts";
import { loadRoster } from "#engine/roster/load-roster.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { challengeOf } from "./action.ts";
import { openCatalogue } from "./catalogue.ts";
import { Conductor } from "./conductor.ts";
import type { RunDependencies, RunRequest, RunResult } from "./run-types.ts";
import { preparePlan } from "./prepare.ts";
import { projectHooks } from "./project-hooks.ts";

/**
 * Executes a request from its input to its last event: reads roster, orchestration and states, checks all of them,
 * renders every step of every node, and only then connects. Resolves after the last event of every node, every stage and
 * the run.
 * @throws KcoreError with every problem of the input, before the first event and the first connection
 */
export async function executeRun(request: RunRequest, deps: RunDependencies): Promise<RunResult> {
  const { trust, project, sources, facts } = deps;
  const roster = { ...loadRoster(project, { ...omitUndefined({ trust, sources }) }), ...omitUndefined({ facts }) };
  const run = runScope(deps);
  const catalogue = openCatalogue(deps, { roster, run }, openOwnModules(deps).beside(registry));
  const plan = await preparePlan({ request, deps, roster, catalogue, run });
  return new Conductor(plan, request, deps).conduct();
}

/** `run` in expressions. A resumed run keeps its challenge and its start time, so that it renders the same texts. */
function runScope(deps: RunDependencies): Readonly<Record<string, unknown>> {
  const { runId, nonce, now, revision, earlier, project, trust } = deps;
  const began = earlier.find(({ type }) => type === "run.started")?.at ?? now();
  return {
    id: runId,
    challenge: challengeOf(nonce),
    time: new Date(began).toISOString(),
    revision: revision ?? null,
    hooks: projectHooks(project, trust),
  };
}
