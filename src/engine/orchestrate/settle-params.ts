import type { ParamDeclaration } from "#engine/params/declare-params.ts";
import type { NodeEntry, Roster } from "#engine/roster/roster.ts";
import { Secret } from "#engine/step/secret.ts";
import { plainOf } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import type { RunDependencies, RunRequest } from "./run-types.ts";

/** A run's parameters, apart from the variables of the roster that `--set` changes. */
export interface SettledParams {
  readonly params: RunRequest["params"];
  /** The request with the answers; secret ones are in `params` alone. */
  readonly request: RunRequest;
  readonly roster: Roster;
}

/**
 * Asks for each parameter with a prompt that was not given. A given name that no parameter has, but a variable of the roster, changes
 * that variable on the nodes that have it: a state that asks whether a node has the variable gets the same answer as before.
 * @throws KcoreError QUESTION_UNANSWERED
 */
export async function settleParams(
  declared: readonly ParamDeclaration[],
  { request, roster }: Pick<SettledParams, "request" | "roster">,
  ask: RunDependencies["ask"],
): Promise<SettledParams> {
  const answers: Record<string, string> = {};
  const secrets: Record<string, Secret> = {};
  for (const { name, type, prompt } of declared) {
    const isGiven = Object.hasOwn(request.params, name) || (type === "target" && request.on !== undefined);
    if (prompt === undefined || isGiven || Object.hasOwn({ ...answers, ...secrets }, name)) continue;
    const answer = await ask({ kind: "param", param: name, text: prompt, secret: type === "secret" });
    if (type === "secret") secrets[name] = new Secret(answer);
    else answers[name] = answer;
  }
  const given = { ...request.params, ...answers };
  const names = new Set(declared.map(({ name }) => name));
  const nodes = [...roster.nodes.values()];
  // A value of --set is in the record, so a secret variable keeps its own.
  const has = ({ vars }: NodeEntry, name: string): boolean =>
    Object.hasOwn(vars, name) && !(vars[name] instanceof Secret);
  const isVariable = (name: string): boolean => !names.has(name) && nodes.some((node) => has(node, name));
  const variables = Object.entries(given).filter(([name]) => isVariable(name));
  const params = Object.entries(given).filter(([name]) => !isVariable(name));
  const changed = (node: NodeEntry): NodeEntry => {
    const own = variables.filter(([name]) => has(node, name));
    const values = own.map(([name, value]) => [name, variableOf(value, node.vars[name])] as const);
    return { ...node, vars: { ...node.vars, ...Object.fromEntries(values) } };
  };
  return {
    params: { ...Object.fromEntries(params), ...secrets },
    request: { ...request, params: given },
    roster:
      variables.length === 0 ? roster : { ...roster, nodes: new Map(nodes.map((one) => [one.name, changed(one)])) },
  };
}

/** A text in the place of a text stays one; in the place of another value it is read as YAML. */
function variableOf(value: unknown, before: unknown): unknown {
  return typeof value === "string" && typeof before !== "string" ? plainOf(parseSource("--set", value)) : value;
}
