import type { SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { bindParams, type GivenParam, givenFromNode, type SecretReader } from "#engine/params/bind-params.ts";
import { evaluate } from "#engine/expressions/evaluate.ts";
import { Problems } from "#engine/yaml/problems.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import { attemptKnown, type Unknown } from "#engine/expressions/unknown.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { States } from "./open-states.ts";
import { checkStep, type Condition } from "./check-step.ts";
import { makeUnresolvedStep } from "./unresolved-step.ts";
import type { UnresolvedStep } from "./planned-step.ts";
import { lateParams, untrustedParams } from "./late-params.ts";
import { NodeScope } from "./node-scope.ts";
import type { State } from "./state.ts";
import { type IdsByName, StepIds } from "./step-ids.ts";
import { instancesOf } from "./step-instances.ts";
import type { IncludeSource, ModuleStepSource } from "./step-source.ts";

/** One use of a state, with its parameters. */
export interface StateUse {
  readonly state: string;
  readonly given?: ReadonlyMap<string, GivenParam>;
  /** The place that names the state, for problems. */
  readonly at?: SourcePosition;
}

export interface ExpandOptions {
  readonly apply: readonly StateUse[];
  readonly node: NodeEntry;
  /** Replaces the node in expressions: an Unknown, for a check that holds for any node. */
  readonly unknownNode?: Unknown;
  readonly nodes: ReadonlyMap<string, NodeEntry> | Unknown;
  /** `run` in expressions. */
  readonly run: Readonly<Record<string, unknown>>;
  readonly modules: (name: string) => Promise<ModuleDefinition | undefined>;
  /** For suggestions. */
  readonly moduleNames: readonly string[];
  readonly readSecret: SecretReader;
  /** Step ids that this node's run uses already; the ids of the steps made here are added. */
  readonly usedIds?: Set<string>;
  /** Names that steps of other states register, for `kcore check`. */
  readonly registered?: Iterable<string>;
}

/**
 * The steps of one node, in order, `include` and `each` expanded. The checks that need no answer of the node run here;
 * expressions over facts, registered values or Unknowns wait for the step's `render`.
 * @throws KcoreError with every problem of every step at its place.
 */
export async function expandSteps(states: States, options: ExpandOptions): Promise<readonly UnresolvedStep[]> {
  const expander = new Expander(states, options);
  for (const use of options.apply) await expander.apply(use);
  return expander.done();
}

/** The conditions, the `require` and the tags of the includes around a state. */
interface IncludeContext {
  readonly conditions: readonly Condition[];
  readonly require: readonly string[];
  readonly tags: readonly string[];
}

class Expander {
  readonly #states: States;
  readonly #options: ExpandOptions;
  readonly #problems = new Problems();
  readonly #unresolved: UnresolvedStep[] = [];
  readonly #ids: StepIds;
  readonly #scope: NodeScope;

  constructor(states: States, options: ExpandOptions) {
    this.#states = states;
    this.#options = options;
    this.#ids = new StepIds(this.#problems, options.usedIds);
    this.#scope = new NodeScope({ ...options, node: options.unknownNode ?? options.node });
  }

  done(): readonly UnresolvedStep[] {
    this.#problems.throwIfAny();
    return this.#unresolved;
  }

  async apply({ state: name, given = new Map(), at }: StateUse): Promise<void> {
    await this.#problems.attemptAsync(async () => {
      const state = this.#open(name, at);
      if (state) await this.#state(state, given, { conditions: [], require: [], tags: [] }, this.#scope, at);
    });
  }

  /** The readable part of a state; faults are reported. */
  #open(name: string, at: SourcePosition | undefined): State | undefined {
    const { state, problems } = this.#states.readPartly(name, at);
    this.#problems.add(...problems);
    return state;
  }

  async #state(
    state: State,
    given: ReadonlyMap<string, GivenParam>,
    around: IncludeContext,
    outer: NodeScope,
    at: SourcePosition | undefined,
  ): Promise<void> {
    const { readSecret } = this.#options;
    const scope = outer.beforeSteps();
    const base: Scope = { node: scope["node"], nodes: scope["nodes"], vars: scope["vars"], run: scope["run"] };
    const params = await bindParams(state.params, given, {
      owner: `state “${state.name}”`,
      scope: base,
      readSecret,
      ...omitUndefined({ at }),
    });
    const inner = outer.forState(
      params,
      lateParams(state.params, given, params, outer),
      untrustedParams(given, params, outer),
    );
    const prefix = this.#ids.prefix(state.name);
    const local: IdsByName = new Map();
    for (const step of state.steps) {
      const ids = await this.#problems.attemptAsync(() =>
        step.kind === "include"
          ? this.#include(step, around, inner, local)
          : this.#moduleStep(step, { state, prefix, around, scope: inner, local }),
      );
      if (step.id === undefined) continue;
      local.set(step.id, ids ?? []);
      this.#ids.set(`${state.name}/${step.id}`, ids ?? []);
    }
  }

  async #include(step: IncludeSource, around: IncludeContext, outer: NodeScope, local: IdsByName): Promise<string[]> {
    const first = this.#unresolved.length;
    const require = this.#ids.resolve(step.requisites.require, local);
    for (const { scope, late } of instancesOf(step, outer)) {
      const conditions =
        step.when === undefined ? around.conditions : [...around.conditions, { node: step.when, scope }];
      // An include that is left out is not checked: its parameters may be valid only if it applies.
      const applies = allHold(conditions);
      if (applies === false) continue;
      const begin = this.#unresolved.length;
      const state = this.#open(step.include, step.includeAt);
      if (state === undefined) continue;
      const given = givenFromNode(step.with, scope.beforeSteps());
      const inner = { conditions, require: [...around.require, ...require], tags: [...around.tags, ...step.tags] };
      await this.#state(state, given, inner, scope, step.with?.at ?? step.includeAt);
      if (late !== undefined || applies === undefined)
        for (const [index, made] of this.#unresolved.entries())
          if (index >= begin) this.#unresolved[index] = { ...made, maybe: true };
    }
    this.#nameLeftOut(step.include, step.includeAt);
    return this.#unresolved.slice(first).map(({ id }) => id);
  }

  /** Lets requisites name steps of an included state that was left out; such names stand for no step. */
  #nameLeftOut(name: string, at: SourcePosition): void {
    for (const step of this.#open(name, at)?.steps ?? []) {
      if (step.kind === "include") this.#nameLeftOut(step.include, step.includeAt);
      const id = `${name}/${step.id}`;
      if (step.id !== undefined && !this.#ids.has(id)) this.#ids.set(id, []);
    }
  }

  async #moduleStep(
    step: ModuleStepSource,
    {
      state,
      prefix,
      around,
      scope,
      local,
    }: {
      readonly state: State;
      readonly prefix: string;
      readonly around: IncludeContext;
      readonly scope: NodeScope;
      readonly local: IdsByName;
    },
  ): Promise<string[]> {
    const module = await this.#module(step);
    const requisites = this.#ids.requisites(step, local, around.require);
    const ids: string[] = [];
    for (const { label, scope: inner, late } of instancesOf(step, scope)) {
      const id = `${prefix}/${step.id}${label}`;
      this.#ids.use(id);
      ids.push(id);
      const conditions =
        step.when === undefined ? around.conditions : [...around.conditions, { node: step.when, scope: inner }];
      const { templates, files } = this.#states;
      if (module === undefined) {
        this.#problems.add(...checkStep({ source: step, scope: inner, conditions, templates }));
        continue;
      }
      const made = this.#problems.attempt(() =>
        makeUnresolvedStep({
          id,
          title: `${step.id}${label}`,
          state: state.name,
          source: step,
          module,
          scope: inner,
          conditions,
          requisites: requisites.ids,
          tags: [...around.tags, ...step.tags],
          files,
          templates,
          node: this.#options.node,
          ...omitUndefined({ skip: requisites.skip, late }),
        }),
      );
      if (made === undefined) continue;
      this.#unresolved.push(made.step);
      if (made.isSkipped) this.#ids.skip(id);
    }
    if (step.register !== undefined) this.#scope.register(step.register, ids.at(-1) ?? `${prefix}/${step.id}`);
    return ids;
  }

  async #module({ module, moduleAt }: ModuleStepSource): Promise<ModuleDefinition | undefined> {
    const found = await this.#options.modules(module);
    if (found !== undefined) return found;
    const { moduleNames } = this.#options;
    const ownName = await this.#ownNameOf(module);
    const hint =
      ownName === undefined
        ? suggestHint(module, moduleNames, `kcore modules --search ${module.split(".").at(-1)}`)
        : `here it is “${ownName}”`;
    this.#problems.add({ code: "STATE_MODULE_UNKNOWN", message: `no state module “${module}”`, at: moduleAt, hint });
    return undefined;
  }

  /** kcore's module for a name of Salt or Ansible, with or without the name of a collection; undefined if there is none. */
  async #ownNameOf(foreign: string): Promise<string | undefined> {
    const last = foreign.split(".").at(-1) ?? "";
    for (const name of [foreign, /^\w+\.\w+\.\w+$/.test(foreign) ? last : foreign])
      for (const own of this.#options.moduleNames) {
        // A step that uses a broken module of the project reports that module's problem.
        const module = await this.#options.modules(own).catch(() => undefined);
        if (module?.alsoKnownAs?.includes(name)) return own;
      }
    return undefined;
  }
}

/** The result of all conditions together; undefined: not all are known. The steps report problems of the conditions. */
function allHold(conditions: readonly Condition[]): boolean | undefined {
  const all = conditions.map(({ node, scope }) => attemptKnown(() => evaluate(node, scope.beforeSteps()) !== false));
  return all.includes(false) ? false : all.includes(undefined) ? undefined : true;
}
