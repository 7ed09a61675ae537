import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { whileOpening } from "#engine/step/encrypted-value.ts";
import { secret } from "#engine/step/secret.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import type { Roster } from "#engine/roster/roster.ts";
import { secretOf, type SecretReader } from "#engine/params/bind-params.ts";
import { expandSteps } from "#engine/states/expand-steps.ts";
import { statesOf } from "#engine/states/open-states.ts";
import { Unknown } from "#engine/expressions/unknown.ts";
import type { SecretReference } from "#engine/params/secret-reference.ts";
import type { Catalogue } from "./bind-context.ts";
import type { RunDependencies } from "./run-types.ts";

/** The dependencies of a run that states and actions need. A check reads no secret: each is Unknown. */
export type CatalogueDependencies = Pick<
  RunDependencies,
  "project" | "shipped" | "trust" | "fetch" | "actions" | "actionNames"
> & {
  readonly readSecret: (reference: SecretReference, at?: SourcePosition) => Promise<string | Unknown>;
};

/** The states, with the modules that their steps use, and the actions. */
export function openCatalogue(
  { project, shipped, trust, fetch, actions, actionNames, readSecret }: CatalogueDependencies,
  { roster, run }: { readonly roster: Roster; readonly run: Readonly<Record<string, unknown>> },
  modules: ReadonlyMap<string, () => Promise<ModuleDefinition>>,
): Catalogue {
  const states = statesOf({ project, shipped, ...omitUndefined({ trust, fetch }) });
  const known = new Map<string, Promise<ModuleDefinition>>();
  const moduleOf = (name: string) => {
    const module = known.get(name) ?? modules.get(name)?.();
    if (module) known.set(name, module);
    return module;
  };
  // A command that prints a secret runs once a run, not once for each expansion of each node's states.
  const secrets = new Map<string, ReturnType<SecretReader>>();
  const readOnce: SecretReader = (reference, at) => {
    const name = JSON.stringify(reference);
    const known =
      secrets.get(name) ?? readSecret(reference, at).then((text) => (text instanceof Unknown ? text : secret(text)));
    secrets.set(name, known);
    return known;
  };
  return {
    stateParams: (name, at) => {
      const { state, problems } = states.readPartly(name, at);
      // `expand` reports the file's other problems together with those of its steps.
      if (state === undefined) throw new KcoreError(problems);
      return state.params;
    },
    expand: async ({ apply, node, usedIds, registered }) => {
      const before = [...usedIds];
      return whileOpening(secretOf(readOnce), () => {
        // Expanding again after a value was opened must not use up the steps' ids twice.
        usedIds.clear();
        for (const id of before) usedIds.add(id);
        return expandSteps(states, {
          apply,
          node,
          nodes: roster.nodes,
          run,
          modules: async (name) => moduleOf(name),
          moduleNames: [...modules.keys()],
          readSecret: readOnce,
          usedIds,
          registered,
        });
      });
    },
    action: actions,
    actionNames,
    readSecret: readOnce,
  };
}
