import { actionNames, findAction } from "#actions/registry.ts";
import { usageError } from "#errors/problem.ts";
import { attemptKnown } from "#engine/expressions/unknown.ts";
import { registry } from "#engine/modules/registry.ts";
import { openCatalogue } from "#engine/orchestrate/catalogue.ts";
import { givenByUser } from "#engine/orchestrate/given-params.ts";
import { settleParams } from "#engine/orchestrate/settle-params.ts";
import { openOwnModules } from "#engine/own-modules/open-modules.ts";
import { matchTargets } from "#engine/roster/targets.ts";
import { statesOf } from "#engine/states/open-states.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import { MASK } from "#engine/step/secret.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { findProject, placesOf } from "../project/find-project.ts";
import { ownRoster } from "../roster/own-roster.ts";
import { printResult } from "../terminal/format-result.ts";
import { requestOf } from "../watch/run-request.ts";
import type { ListStatesFlags } from "./list-states.ts";

interface RenderedFlags extends ListStatesFlags {
  readonly on: readonly string[];
  readonly params: Readonly<Record<string, unknown>>;
}

/** Prints the steps of a state as nodes would get them. It connects to no node, and reads no secret. */
export async function printRendered(
  name: string,
  { project, output, on, params: given }: RenderedFlags,
): Promise<void> {
  const root = findProject(project);
  const places = { ...placesOf(root), project: root };
  const declared = [...statesOf(places).load(name).params.values()];
  const request = requestOf({ on }, { kind: "state", names: [name] }, { params: given });
  const { params, roster } = await settleParams(declared, { request, roster: ownRoster(root) }, ({ param = "" }) =>
    Promise.reject(usageError(`the parameter “${param}” is missing`, `--set ${param}=VALUE`)),
  );
  const run = { id: "show", time: new Date().toISOString(), revision: null, challenge: "show" };
  const readSecret = () => Promise.resolve(MASK);
  const dependencies = { ...places, actions: findAction, actionNames, readSecret };
  const catalogue = openCatalogue(dependencies, { roster, run }, openOwnModules(places).beside(registry));
  const apply = [{ state: name, given: givenByUser(params) }];
  const shown: { readonly node: string; readonly steps: readonly object[] }[] = [];
  for (const node of matchTargets(request.on ?? "", roster)) {
    const steps = await catalogue.expand({ apply, node, usedIds: new Set(), registered: new Set() });
    shown.push({ node: node.name, steps: steps.map(stepAsData) });
  }
  printResult(shown, output, () => shown.map(({ node, steps }) => `# ${node}\n${printYaml(steps)}`).join("\n"));
}

/** A step as its file would have it with this node's values; the values of a sensitive step are left out. */
function stepAsData({ title, module, args, ...step }: UnresolvedStep): object {
  const made = step.render({ steps: new Map() });
  if (made.kind === "skipped") return { id: title, skipped: made.reason };
  const isHidden = made.kind === "step" && (made.plan.sensitive || made.plan.step.sensitive === true);
  // JSON has the mask of a secret.
  const values = isHidden ? MASK : (attemptKnown(() => JSON.parse(JSON.stringify(args?.())) as unknown) ?? null);
  return { id: title, [module]: values, ...(made.kind === "unknown" && { unknown: `after ${made.after}` }) };
}
