import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { Roster } from "#engine/roster/roster.ts";
import { matchTargets } from "#engine/roster/targets.ts";
import { quote } from "#base/quote.ts";
import { sh } from "#engine/step/sh.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import { applyTask } from "./bind-apply.ts";
import type { Catalogue } from "./bind-context.ts";
import type { NodeLimit } from "./node-limit.ts";
import { titleOf, type RunRequest } from "./run-types.ts";
import { UsedNames } from "./used-names.ts";
import { givenByUser } from "./given-params.ts";
import { shareOf, type PlannedStage, type RunPlan, type StageTask } from "./plan.ts";

type AdHocWork = Exclude<RunRequest["what"], { kind: "orchestration" }>;

/** Seconds that a command of `kcore exec` may take. */
const EXEC_SECONDS = 3600;
/** The place of the steps of a command line. */
const COMMAND_LINE: SourcePosition = { file: "command line", line: 1, column: 1 };

interface AdHocInput {
  readonly request: RunRequest;
  readonly roster: Roster;
  readonly catalogue: Catalogue;
  readonly limit: NodeLimit | undefined;
}

/** The plan of a run without an orchestration: `state apply`, `exec`, `ping`, `facts`, or a look at locks. @throws KcoreError */
export async function planAdHoc(what: AdHocWork, input: AdHocInput): Promise<RunPlan> {
  const { request, roster } = input;
  if (request.on === undefined)
    throw new KcoreError({
      code: "TARGET_MISSING",
      message: `kcore ${what.kind === "state" ? "state apply" : what.kind} needs to know which nodes`,
      hint: "--on n1, --on 'role:worker', or --on '*' for all",
      detail: `the roster's nodes: ${[...roster.nodes.keys()].join(", ") || "none yet"}`,
    });
  const matched = matchTargets(request.on, roster).map(({ name }) => name);
  const nodes = input.limit?.within(matched) ?? matched;
  const stages = what.kind === "state" ? stagesOf(what.names, nodes, input) : [stage(what.kind, nodes, taskOf(what))];
  return Promise.resolve({ title: titleOf(what), roster, nodes, stages, warnings: [] });
}

function taskOf(what: Exclude<AdHocWork, { kind: "state" }>): StageTask {
  if (what.kind !== "exec") return { kind: "look" };
  const { argv, shell } = what;
  return { kind: "apply", expand: () => Promise.resolve([execStep(argv, shell)]) };
}

/** One step that runs the operator's words unchanged: no expression in them is evaluated. */
function execStep(argv: readonly string[], shell: boolean): UnresolvedStep {
  const text = argv.join(" ");
  // The title is the command as a shell reads it: a quoted word stays one word.
  const title = shell ? text : argv.map(quote).join(" ");
  const named = { id: "exec", title, state: "", module: "command.run", at: COMMAND_LINE } as const;
  const apply = shell ? sh`exec sh -c ${text}` : sh`exec ${argv}`;
  return {
    ...named,
    needs: { facts: false, steps: [] },
    tags: [],
    require: [],
    watches: [],
    answers: [],
    render: () => ({
      kind: "step",
      plan: {
        ...named,
        step: { want: {}, always: true, probe: sh`:`, apply },
        require: [],
        onChanges: [],
        restartOn: [],
        onFailure: [],
        timeout: EXEC_SECONDS,
        sensitive: false,
        exact: true,
      },
    }),
  };
}

function stagesOf(
  names: readonly string[],
  nodes: readonly string[],
  { catalogue, request }: AdHocInput,
): readonly PlannedStage[] {
  const context = { catalogue, usedNames: new UsedNames() };
  const given = givenByUser(request.params);
  const declared = names.map((name) => ({ name, params: new Set(catalogue.stateParams(name).keys()) }));
  refuseUnknown([...given.keys()], declared);
  const { batch } = request;
  const pace = batch === undefined ? {} : { batch: Math.max(1, shareOf(batch, nodes.length)) };
  return declared.map(({ name, params }, order) => {
    const own = new Map([...given].filter(([key]) => params.has(key)));
    const id = names.indexOf(name) === order ? name : `${name}@${order + 1}`;
    const task = applyTask(id, context, () => [{ state: name, given: own }]);
    return { ...stage(id, nodes, task), source: { id: name, order, tags: [] }, pace };
  });
}

function refuseUnknown(
  given: readonly string[],
  states: readonly { readonly name: string; readonly params: ReadonlySet<string> }[],
): void {
  const known = new Set(states.flatMap(({ params }) => [...params]));
  const unknown = given.filter((name) => !known.has(name));
  if (unknown.length === 0) return;
  const names = states.map(({ name }) => `“${name}”`).join(", ");
  throw new KcoreError(
    unknown.map((name) => {
      const hint = suggestHint(name, known, known.size === 0 ? "it takes none" : `there are: ${[...known].join(", ")}`);
      return {
        code: "PARAM_UNKNOWN",
        message: `no parameter “${name}” in ${names}`,
        ...(hint !== undefined && { hint }),
      } as const;
    }),
  );
}

function stage(id: string, nodes: readonly string[], task: StageTask): PlannedStage {
  const source = { id, order: 0, tags: [] };
  return { id, source, register: id, title: id, nodes, pace: {}, dependencies: new Set(), task, onFailure: [] };
}
