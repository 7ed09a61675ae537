import { registry } from "#engine/modules/registry.ts";
import { openOwnModules } from "#engine/own-modules/open-modules.ts";
import { foldersOf } from "#engine/project/folders.ts";
import { loadRoster } from "#engine/roster/load-roster.ts";
import type { Roster } from "#engine/roster/roster.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { challengeOf } from "./action.ts";
import type { Catalogue } from "./bind-context.ts";
import { openCatalogue } from "./catalogue.ts";
import { Conductor } from "./conductor.ts";
import { loadOrchestration } from "./load-orchestration.ts";
import type { RunDependencies, RunRequest, RunResult } from "./run-types.ts";
import { preparePlan, type PlanInput } from "./prepare.ts";
import { settleParams } from "./settle-params.ts";

/**
 * Executes a request from its input to its last event: reads roster, orchestration and states, checks all of them,
 * renders every step of every node, and only then connects. Resolves after the last event of every node, every stage and
 * the run.
 * @throws KcoreError with every problem of the input, before the first event and the first connection
 */
export async function executeRun(request: RunRequest, deps: RunDependencies): Promise<RunResult> {
  const began = beginOf(deps);
  const input = await readInput(request, { ...deps, began });
  const plan = await preparePlan(input);
  const { params, ...asked } = input.request;
  const openSession = await deps.distribute?.({
    request: { ...asked, params: { ...input.settled.params, ...params } },
    began,
    roster: plan.roster,
    nodes: plan.nodes,
  });
  return new Conductor(plan, input.settled, { ...deps, ...omitUndefined({ openSession }) }).conduct();
}

/**
 * Reads the files from which a run's plan is made. `settled`: the request with the answers to its questions, without the secret ones.
 * @throws KcoreError with every problem
 */
export async function readInput(
  request: RunRequest,
  deps: RunDependencies,
): Promise<PlanInput & { readonly settled: RunRequest }> {
  const { trust, project, sources, facts, ask } = deps;
  const { what } = request;
  const written = { ...loadRoster(project, { ...omitUndefined({ trust, sources }) }), ...omitUndefined({ facts }) };
  const run = runScope(deps);
  const modules = openOwnModules(deps).beside(registry);
  const open = (roster: Roster): Catalogue => openCatalogue(deps, { roster, run }, modules);
  const first = open(written);
  const orchestration =
    what.kind === "orchestration" ? loadOrchestration(what.name, foldersOf("orchestrate", deps)) : undefined;
  const declared =
    what.kind === "state"
      ? what.names.flatMap((name) => [...first.stateParams(name).values()])
      : [...(orchestration?.params.values() ?? [])];
  const settled = await settleParams(declared, { request, roster: written }, ask);
  const { params, roster } = settled;
  const catalogue = roster === written ? first : open(roster);
  const input = { deps, roster, catalogue, run, ...omitUndefined({ orchestration }) };
  return { request: { ...settled.request, params }, settled: settled.request, ...input };
}

function beginOf({ earlier, now }: RunDependencies): number {
  return earlier.find(({ type }) => type === "run.started")?.at ?? now();
}

/** `run` in expressions. A resumed run keeps its challenge and its start time, so that it renders the same texts. */
function runScope(deps: RunDependencies): Readonly<Record<string, unknown>> {
  const { runId, nonce, revision, hooks } = deps;
  const began = deps.began ?? beginOf(deps);
  return {
    id: runId,
    challenge: challengeOf(nonce),
    time: new Date(began).toISOString(),
    revision: revision ?? null,
    hooks: hooks?.() ?? [],
  };
}
