import { factMembers } from "#engine/facts/paths.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import { type UntrustedSource, withUntrusted } from "#engine/expressions/untrusted-names.ts";
import { Unknown } from "#engine/expressions/unknown.ts";
import type { SourceNode } from "#engine/yaml/node.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { LateScope } from "./planned-step.ts";

const unknownFacts = new Unknown("facts", { facts: true }, factMembers);

/** Computes the values of parameters that depend on late values. */
export type LateParams = (late: LateScope) => Readonly<Record<string, unknown>>;

/** The paths, `params.x` or `item`, whose values depend on nodes' answers, each with its expression; undefined: the value is the answer. */
export type UntrustedPaths = ReadonlyMap<
  string,
  { readonly node: SourceNode; readonly scope: (late: LateScope | undefined) => Scope } | undefined
>;

/** The names that are the same for all steps of a node. */
interface FixedNames {
  /** Unknown in `kcore check`, whose result must hold for every node. */
  readonly node: NodeEntry | Unknown;
  /** Unknown where there is no roster. */
  readonly nodes: ReadonlyMap<string, NodeEntry> | Unknown;
  readonly run: Readonly<Record<string, unknown>>;
  /** Names that steps of other states register, for `kcore check`. */
  readonly registered?: Iterable<string>;
}

/** The names of expressions at one place: inside one use of a state, for one item. */
export class NodeScope {
  readonly #shared: FixedNames;
  /**
   * By register name, the id of the step that registers it; for a name in `registered`, the name itself. Grows as steps are expanded; all
   * scopes of the node share this map.
   */
  readonly #registers: Map<string, string>;
  readonly #params: Readonly<Record<string, unknown>> | undefined;
  readonly #late: LateParams | undefined;
  readonly #item: { readonly value: unknown } | undefined;
  readonly #untrusted: UntrustedPaths;

  constructor(
    shared: FixedNames,
    registers?: Map<string, string>,
    params?: Readonly<Record<string, unknown>>,
    late?: LateParams,
    item?: { readonly value: unknown },
    untrusted: UntrustedPaths = new Map(),
  ) {
    this.#shared = shared;
    this.#registers = registers ?? new Map([...(shared.registered ?? [])].map((name) => [name, name]));
    this.#params = params;
    this.#late = late;
    this.#item = item;
    this.#untrusted = untrusted;
  }

  /** The scope inside a state; the items around its include are not visible there. */
  forState(
    params: Readonly<Record<string, unknown>>,
    late: LateParams | undefined,
    untrusted: UntrustedPaths = new Map(),
  ): NodeScope {
    return new NodeScope(this.#shared, this.#registers, params, late, undefined, untrusted);
  }

  withItem(value: unknown, untrusted: UntrustedPaths = new Map()): NodeScope {
    const all = new Map([...this.#untrusted, ...untrusted]);
    return new NodeScope(this.#shared, this.#registers, this.#params, this.#late, { value }, all);
  }

  register(name: string, id: string): void {
    this.#registers.set(name, id);
  }

  /** The names that steps have registered so far: a step expanded now may use them. */
  registeredSteps(): ReadonlyMap<string, string> {
    return new Map(this.#registers);
  }

  /** The scope before the node's first step: facts and registered values are Unknown. */
  beforeSteps(registers: ReadonlyMap<string, string> = this.#registers): Scope {
    const steps = new Map([...registers].map(([name, id]) => [name, new Unknown(id, { steps: [name] })] as const));
    return this.#scopeOf(this.#params, unknownFacts, steps);
  }

  /** The scope with the values that the run has brought so far; the others stay Unknown. */
  withLate(late: LateScope, registers: ReadonlyMap<string, string>): Scope {
    const steps = new Map(
      [...registers].map(([name, id]) => [name, late.steps.get(name) ?? new Unknown(id, { steps: [name] })] as const),
    );
    const params = this.#late === undefined ? this.#params : { ...this.#params, ...this.#late(late) };
    return this.#scopeOf(params, late.facts ?? unknownFacts, steps, late);
  }

  #scopeOf(
    params: Readonly<Record<string, unknown>> | undefined,
    facts: unknown,
    steps: ReadonlyMap<string, unknown>,
    late?: LateScope,
  ): Scope {
    const { node, nodes, run } = this.#shared;
    const names = {
      node,
      nodes,
      vars: node instanceof Unknown ? node : node.vars,
      run,
      facts,
      steps,
      ...omitUndefined({ params, item: this.#item?.value }),
    };
    if (this.#untrusted.size === 0) return names;
    const bound = ([path, source]: readonly [string, ReturnType<UntrustedPaths["get"]>]): readonly [
      string,
      UntrustedSource,
    ] => [path, source && { node: source.node, scope: () => source.scope(late) }];
    return withUntrusted(names, [...this.#untrusted].map(bound));
  }
}
