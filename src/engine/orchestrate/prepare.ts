import { KcoreError } from "#errors/problem.ts";
import type { StageOutline } from "#engine/events/event.ts";
import type { NodeEntry, Roster } from "#engine/roster/roster.ts";
import { machineKey } from "#engine/roster/check.ts";
import { whileOpening } from "#engine/step/encrypted-value.ts";
import { secretOf, type SecretReader } from "#engine/params/bind-params.ts";
import { foldersOf, overriddenFiles } from "#engine/project/folders.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { UnknownValue } from "#engine/expressions/unknown.ts";
import { planAdHoc } from "./adhoc.ts";
import type { Catalogue } from "./bind-context.ts";
import { titleOf, type RunDependencies, type RunRequest } from "./run-types.ts";
import { StepCache } from "./step-cache.ts";
import { loadOrchestration, type Orchestration } from "./load-orchestration.ts";
import { StageOutputs } from "./outputs.ts";
import { givenToOrchestration } from "./given-params.ts";
import { CONCURRENCY } from "./live-run.ts";
import { registeredNames, type PlannedStage, type RunPlan, type StageScope } from "./plan.ts";
import { makeStages } from "./make-stages.ts";
import { NodeLimit } from "./node-limit.ts";
import { ChosenPart } from "./parts.ts";

export interface PlanInput {
  readonly request: RunRequest;
  readonly deps: RunDependencies;
  readonly roster: Roster;
  readonly catalogue: Catalogue;
  /** The orchestration of the request; absent: it is read here. */
  readonly orchestration?: Orchestration;
  /** `run` in expressions; the same when the run is resumed. */
  readonly run: Readonly<Record<string, unknown>>;
}

/**
 * Turns a request into a plan, and renders every step of every node once: finds all problems of the input before the
 * first connection.
 * @throws KcoreError with every problem.
 */
export async function preparePlan(input: PlanInput): Promise<RunPlan> {
  const { what, part } = input.request;
  const problems = new Problems();
  // Problems of steps are reported together with stages that could not be bound.
  const { whole, limit } = await planWhole(input, problems);
  refuseAliases(whole, problems);
  const chosen = part && new ChosenPart(part, whole, limit);
  const { readSecret } = input.catalogue;
  if (chosen) await renderAll(whole, (...made) => chosen.see(...made), problems, readSecret);
  const plan = chosen?.narrow() ?? whole;
  const stepCache = new StepCache(input.request.concurrency ?? CONCURRENCY);
  const planned = await renderAll(plan, (...made) => stepCache.keep(...made), problems, readSecret);
  const overridden = what.kind === "orchestration" || what.kind === "state" ? overriddenFiles(input.deps) : [];
  const warnings = overridden.map((file) => `${file} of the project is used instead of the one that kcore ships`);
  return { ...plan, stepCache, planned, warnings: [...plan.warnings, ...warnings] };
}

/**
 * The plan that {@link preparePlan} makes, for a process that gets some of its nodes. Only a run in part is rendered, since its steps decide
 * which part it is. @throws KcoreError with every problem
 */
export async function planForNodes(input: PlanInput): Promise<RunPlan> {
  if (input.request.part) return preparePlan(input);
  const problems = new Problems();
  const { whole } = await planWhole(input, problems);
  problems.throwIfAny();
  return whole;
}

/** Renders all steps of a node once, in the order of the plan, so that they get the ids that the whole run gives them. */
export async function renderNode(
  { stages, onFailure = [], roster }: RunPlan,
  node: string,
  read: SecretReader,
): Promise<void> {
  const has = ({ nodes }: PlannedStage): boolean => nodes?.includes(node) === true;
  const outputs = new StageOutputs(registeredNames([...stages, ...onFailure]), []);
  for (const stage of [...stages, ...onFailure])
    if (stage.skip === undefined && has(stage))
      await renderFor(node, stage, { roster, outputs, problems: new Problems(), read });
}

async function planWhole(
  input: PlanInput,
  problems: Problems,
): Promise<{ readonly whole: RunPlan; readonly limit: NodeLimit | undefined }> {
  const { what, part } = input.request;
  const limit = part?.limit === undefined ? undefined : new NodeLimit(part.limit, input.roster);
  const whole =
    what.kind === "orchestration"
      ? await planOrchestration(what, { ...input, limit }, problems)
      : await planAdHoc(what, { ...input, limit });
  return { whole, limit };
}

async function planOrchestration(
  what: Extract<RunRequest["what"], { kind: "orchestration" }>,
  input: PlanInput & { readonly limit: NodeLimit | undefined },
  problems: Problems,
): Promise<RunPlan> {
  const { request, deps, roster, catalogue, run, limit } = input;
  const { skipHealth, batch } = request;
  const { orchestration = loadOrchestration(what.name, foldersOf("orchestrate", deps)) } = input;
  const given = givenToOrchestration(orchestration, request, roster);
  const stageInput = { given, roster, catalogue, run, skipHealth, batch, limit, problems };
  const { stages, onFailure } = await makeStages(orchestration, stageInput);
  const nodes = new Set([...stages, ...onFailure].flatMap((stage) => stage.nodes ?? []));
  return {
    title: titleOf(what),
    roster,
    nodes: [...roster.nodes.keys()].filter((node) => nodes.has(node)),
    stages,
    ...(onFailure.length > 0 && { onFailure }),
    warnings: skipHealth ? ["health checks are left out (--skip-health)"] : [],
  };
}

/** Refuses one machine under two names, on which two sessions would work at once (F-16). */
function refuseAliases({ nodes, roster }: RunPlan, problems: Problems): void {
  const names = new Map<string, string>();
  for (const name of nodes) {
    const node = roster.nodes.get(name) as NodeEntry;
    const machine = machineKey(node);
    const other = names.get(machine);
    const at = roster.positions.get(name);
    if (other !== undefined)
      problems.add({
        code: "NODE_DUPLICATE",
        message: `“${other}” and “${name}” are one machine: both are ${node.address} port ${node.port}`,
        at,
        hint: "keep one of them, or give each a stateDir of its own",
      });
    else names.set(machine, name);
  }
}

type KeepSteps = (...made: readonly [PlannedStage, string, readonly UnresolvedStep[]]) => void;

/**
 * Expands every stage for each of its nodes, with the outputs of stages still unknown; gives the steps to `keep`.
 * @returns the number of steps of each stage
 * @throws KcoreError with all problems
 */
async function renderAll(
  { stages: first, onFailure = [], roster }: RunPlan,
  keep: KeepSteps,
  problems: Problems,
  read: SecretReader,
): Promise<NonNullable<RunPlan["planned"]>> {
  const stages = [...first, ...onFailure];
  const outputs = new StageOutputs(registeredNames(stages), []);
  const planned = new Map<PlannedStage, ReturnType<PlannedCounts["outline"]>>();
  for (const stage of stages) {
    const counts = new PlannedCounts();
    if (stage.skip !== undefined) {
      planned.set(stage, counts.outline());
      continue;
    }
    for (const name of stage.nodes ?? [undefined]) {
      const made = await renderFor(name, stage, { roster, outputs, problems, read });
      if (made !== "left-out" && made.steps && name !== undefined) keep(stage, name, made.steps);
      counts.add(made);
    }
    planned.set(stage, counts.outline());
  }
  problems.throwIfAny();
  return planned;
}

/** A stage on one node, as far as known before the run. */
interface RenderedStage {
  /** Absent: not known yet, or an action. */
  readonly steps?: readonly UnresolvedStep[];
  readonly isAction: boolean;
  /** The stage's condition is not known yet. */
  readonly isOpen: boolean;
}

/** Counts a stage's steps on its nodes, in the nodes' order. */
class PlannedCounts {
  readonly #counts: number[] = [];
  #isOpen = false;

  add(made: RenderedStage | "left-out"): void {
    if (made === "left-out") {
      this.#counts.push(0);
      return;
    }
    const { steps, isAction, isOpen } = made;
    const sure = steps?.filter(({ maybe }) => maybe !== true) ?? [];
    this.#isOpen ||= isOpen || (!isAction && (steps === undefined || sure.length < steps.length));
    this.#counts.push(isOpen ? 0 : isAction ? 1 : sure.length);
  }

  /** One number if all counts are the same, so that the record of a thousand nodes stays short. */
  outline(): Pick<StageOutline, "planned" | "open"> {
    const [first = 0] = this.#counts;
    const areAlike = this.#counts.every((count) => count === first);
    return { planned: areAlike ? first : this.#counts, ...(this.#isOpen && { open: true }) };
  }
}

/** The names of a stage's outputs if the stage runs; undefined while unknown. */
function outputNames({ task }: PlannedStage, made: RenderedStage | "left-out"): readonly string[] | undefined {
  if (made === "left-out") return undefined;
  return task.kind === "action" ? task.action.outputs : made.steps?.flatMap(({ register }) => register ?? []);
}

interface RenderInput {
  readonly roster: Roster;
  readonly outputs: StageOutputs;
  readonly problems: Problems;
  readonly read: SecretReader;
}

/** Renders a stage and its `onFailure` stages for a node, or without a node; adds their problems, and declares the stage's outputs. */
export async function renderFor(
  name: string | undefined,
  stage: PlannedStage,
  input: RenderInput,
): Promise<RenderedStage | "left-out"> {
  const { roster, outputs } = input;
  const scopeFor = (node?: string): StageScope =>
    outputs.stageScope(node === undefined ? undefined : roster.nodes.get(node));
  const made = await renderStage(stage, scopeFor(name), input);
  outputs.expect(stage.register, name, outputNames(stage, made));
  for (const inner of stage.onFailure)
    for (const node of name === undefined ? (inner.nodes ?? [undefined]) : [name])
      await renderStage(inner, scopeFor(node), input);
  return made;
}

async function renderStage(
  { task, when }: PlannedStage,
  scope: StageScope,
  { problems, read }: RenderInput,
): Promise<RenderedStage | "left-out"> {
  const isAction = task.kind === "action";
  let isOpen = false;
  try {
    if ((await whileOpening(secretOf(read), () => when?.(scope))) === false) return "left-out";
  } catch (error) {
    isOpen = true;
    addProblems(error, problems);
  }
  try {
    if (task.kind === "apply") return { steps: await task.expand(scope), isAction, isOpen };
    if (task.kind === "action") await whileOpening(secretOf(read), () => task.args(scope));
    else return { steps: [], isAction, isOpen };
  } catch (error) {
    addProblems(error, problems);
  }
  return { isAction, isOpen };
}

function addProblems(error: unknown, problems: Problems): void {
  if (error instanceof KcoreError) problems.add(...error.problems);
  else if (!(error instanceof UnknownValue)) throw error;
}
