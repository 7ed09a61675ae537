import type { Problem } from "#errors/problem.ts";
import { Unknown } from "#engine/expressions/unknown.ts";
import { bindParams, type GivenParam } from "#engine/params/bind-params.ts";
import type { ParamDeclarations } from "#engine/params/declare-params.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { expandSteps, type ExpandOptions } from "./expand-steps.ts";
import type { States } from "./open-states.ts";
import type { State } from "./state.ts";

/** Placeholder for the node of checked steps: the results of a check do not depend on the node. */
const PLACEHOLDER_NODE = {
  name: "any",
  id: "00000000-0000-4000-8000-000000000000",
  stateDir: "/var/lib/kcore",
} as NodeEntry;

const UNKNOWN_NODE = new Unknown("the node");

/** The inputs that are the same for all checked states. */
export type CheckInput = Pick<ExpandOptions, "nodes" | "run" | "modules" | "moduleNames">;

/**
 * Checks each state on its own: finds the faults that it has on every node, with all parameters. A requisite may name
 * steps of any other state, since an orchestration may apply that state before.
 */
export class StateChecker {
  readonly #states: States;
  readonly #input: CheckInput;
  readonly #all: readonly State[];

  constructor(states: States, input: CheckInput) {
    this.#states = states;
    this.#input = input;
    this.#all = states.list().flatMap(({ name }) => states.readPartly(name).state ?? []);
  }

  /** @returns every problem of the state and of its included states */
  async check(name: string): Promise<readonly Problem[]> {
    const { state, problems } = this.#states.readPartly(name);
    if (state === undefined) return problems;
    const others = this.#all.filter((other) => other.name !== name).flatMap(({ steps }) => steps);
    const registered = others.flatMap((step) => (step.kind === "module" ? (step.register ?? []) : []));
    const found = new Problems();
    await found.attemptAsync(() => this.#checkDefaults(state));
    await found.attemptAsync(() =>
      expandSteps(this.#states, {
        ...this.#input,
        apply: [{ state: name, given: unknownParams(state.params.keys()) }],
        node: PLACEHOLDER_NODE,
        unknownNode: UNKNOWN_NODE,
        readSecret: leaveUnknown,
        usedIds: new Set(this.#idsBeside(name)),
        registered,
      }),
    );
    return found.list;
  }

  /** Checks defaults apart from steps, which are checked with all parameters given. */
  async #checkDefaults({ name, params }: State): Promise<void> {
    const { nodes, run } = this.#input;
    const scope = { node: UNKNOWN_NODE, vars: UNKNOWN_NODE, nodes, run };
    await bindParams(params, unknownsWithoutDefault(params), {
      owner: `state “${name}”`,
      scope,
      readSecret: leaveUnknown,
    });
  }

  #idsBeside(name: string): readonly string[] {
    return this.#all
      .filter((other) => other.name !== name)
      .flatMap((other) => other.steps.flatMap(({ id }) => (id === undefined ? [] : [`${other.name}/${id}`])));
  }
}

/** An unknown value for each parameter without a default. */
export function unknownsWithoutDefault(params: ParamDeclarations): Map<string, GivenParam> {
  const withoutDefault = [...params.values()].filter((param) => param.default === undefined);
  return unknownParams(withoutDefault.map(({ name }) => name));
}

function unknownParams(names: Iterable<string>): Map<string, GivenParam> {
  return new Map([...names].map((name) => [name, { value: new Unknown(`the parameter ${name}`) }]));
}

/** The SecretReader of checks: reads no secret, and runs no command that prints one. */
export function leaveUnknown(): Promise<Unknown> {
  return Promise.resolve(new Unknown("a secret"));
}
