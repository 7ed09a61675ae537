import { Unknown, type Members } from "#engine/expressions/unknown.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { Outputs } from "./action.ts";
import { ALL_NODES, type PlannedStage, type RegisteredNames, type StageScope } from "./plan.ts";

/** The node's name in maps for an action or stage without nodes. */
const EVERYWHERE = "";

/** A stage's registered name, its node, and its outputs there. */
export type StageOutput = readonly [name: string, node: string | undefined, value: Outputs | Unknown];

/** The outputs of finished stages, for expressions: `stages.NAME`. */
export class StageOutputs {
  readonly #names: RegisteredNames;
  readonly #order: readonly string[];
  readonly #untrusted: ReadonlySet<string>;
  readonly #expected = new Map<string, Map<string, Members | null>>();
  readonly #given = new Map<string, Map<string, Outputs | Unknown>>();

  /** `names`: every name that a stage registers. `order`: the roster's nodes, in the order in which their values come. */
  constructor(names: RegisteredNames, order: readonly string[]) {
    this.#names = names;
    this.#order = order;
    this.#untrusted = new Set([...names].flatMap(([name, { untrusted }]) => (untrusted ? [name] : [])));
  }

  /** The scope of a stage's late expressions, for this node or without a node. */
  stageScope(node?: NodeEntry): StageScope {
    const valueOn: StageScope["valueOn"] = (name, other) => this.get(name, other);
    const valuesOf: StageScope["valuesOf"] = (name) => this.valuesOf(name);
    return { ...(node && { node }), stages: this.scope(node?.name), untrusted: this.#untrusted, valueOn, valuesOf };
  }

  /** Declares the names of a stage's outputs on a node, if known, so that a path to any other name fails before the run. */
  expect(name: string, node: string | undefined, names: readonly string[] | undefined): void {
    const values = this.#expected.get(name) ?? new Map<string, Members | null>();
    values.set(node ?? EVERYWHERE, names ? Object.fromEntries(names.map((one) => [one, null])) : null);
    this.#expected.set(name, values);
  }

  /** Keeps a finished stage's outputs; an Unknown stays unknown for the rest of the run. */
  set(name: string, node: string | undefined, value: Outputs | Unknown): void {
    const values = this.#given.get(name) ?? new Map<string, Outputs | Unknown>();
    values.set(node ?? EVERYWHERE, value);
    this.#given.set(name, values);
  }

  /** The kept outputs that these stages can use on a node, each as the arguments of {@link set}. */
  usedBy(stages: readonly PlannedStage[], node: string): readonly StageOutput[] {
    const used = new Map<string, Set<string>>();
    for (const { dependencies, others } of stages)
      for (const name of dependencies) {
        const nodes = used.get(name) ?? new Set([EVERYWHERE, node]);
        for (const other of others?.get(name) ?? []) nodes.add(other === "" ? node : other);
        used.set(name, nodes);
      }
    return [...used].flatMap(([name, nodes]) =>
      [...(this.#given.get(name) ?? [])].flatMap(([at, value]): readonly StageOutput[] =>
        nodes.has(ALL_NODES) || nodes.has(at) ? [[name, at === EVERYWHERE ? undefined : at, value]] : [],
      ),
    );
  }

  get(name: string, node: string | undefined): Outputs | Unknown {
    const found = <T>(values: ReadonlyMap<string, T> | undefined): T | undefined =>
      values?.get(node ?? EVERYWHERE) ?? values?.get(EVERYWHERE);
    return found(this.#given.get(name)) ?? unknownOf(name, found(this.#expected.get(name)));
  }

  /**
   * The root `stages` for a stage on a node: the node's own values. Without a node, a stage with nodes gives a map of
   * values by node name.
   */
  scope(node?: string): Readonly<Record<string, unknown>> {
    const scope = Object.create(null) as Record<string, unknown>;
    for (const [name, { perNode }] of this.#names)
      scope[name] = perNode && node === undefined ? this.valuesOf(name) : this.get(name, node);
    return scope;
  }

  /** The values of a stage with nodes, by node name in the roster's order; an Unknown before the first. */
  valuesOf(name: string): unknown {
    const values = this.#given.get(name);
    if (values === undefined) return unknownOf(name, this.#expected.get(name));
    const inOrder = this.#order.flatMap((node) => (values.has(node) ? [[node, values.get(node)]] : []));
    return Object.assign(Object.create(null) as Record<string, unknown>, Object.fromEntries(inOrder));
  }
}

function unknownOf(name: string, members?: Members | null): Unknown {
  return new Unknown(`stage ${name}`, { stages: [name] }, members ?? undefined);
}
