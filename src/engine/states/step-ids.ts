import type { Problems } from "#engine/yaml/problems.ts";
import { unknownRequisite } from "./requisites.ts";
import type { ModuleStepSource, Requisite, RequisiteKey } from "./step-source.ts";

/** Maps an id of the file to the ids of the node's steps: several for `each`, none if all were left out. */
export type IdsByName = Map<string, readonly string[]>;

/** The ids of one node's steps, and the steps that a requisite names. */
export class StepIds {
  readonly #problems: Problems;
  readonly #used: Set<string>;
  /** By `state/id`, the steps of this node's states so far. */
  readonly #global: IdsByName = new Map();
  readonly #skipped = new Set<string>();

  /** `used`: the ids that this node's run uses already. */
  constructor(problems: Problems, used: Set<string> = new Set()) {
    this.#problems = problems;
    this.#used = used;
  }

  use(id: string): void {
    this.#used.add(id);
  }

  skip(id: string): void {
    this.#skipped.add(id);
  }

  has(name: string): boolean {
    return this.#global.has(name);
  }

  set(name: string, ids: readonly string[]): void {
    this.#global.set(name, ids);
  }

  /** The state's name; with `#2` and so on if an earlier use of the state on this node has it. */
  prefix(state: string): string {
    let prefix = state;
    for (let count = 2; this.#used.has(`${prefix}/`); count++) prefix = `${state}#${count}`;
    this.#used.add(`${prefix}/`);
    return prefix;
  }

  /** The ids for a step's requisites; `around`: the `require` of the includes around its state. */
  requisites(
    { requisites }: ModuleStepSource,
    local: IdsByName,
    around: readonly string[],
  ): { readonly ids: Readonly<Record<RequisiteKey, readonly string[]>>; readonly skip?: string } {
    const resolved = (key: RequisiteKey): string[] =>
      this.resolve(requisites[key], local).filter((id) => !this.#skipped.has(id));
    const found = {
      require: resolved("require"),
      onChanges: resolved("onChanges"),
      restartOn: resolved("restartOn"),
      onFailure: resolved("onFailure"),
    };
    // A reaction is skipped if all its named steps were left out: without them it would run unconditionally.
    const unmet = (["onFailure", "onChanges"] as const).find(
      (key) => requisites[key].length > 0 && found[key].length === 0,
    );
    const ids = { ...found, require: [...around.filter((id) => !this.#skipped.has(id)), ...found.require] };
    return unmet === undefined ? { ids } : { ids, skip: `${unmet}: a step that it names was left out` };
  }

  /** The ids for requisites. Unknown names of other states become problems here; `checkRequisites` reported unknown names of this file. */
  resolve(requisites: readonly Requisite[], local: IdsByName): string[] {
    return requisites.flatMap((requisite) => {
      const { name } = requisite;
      const ids = local.get(name) ?? this.#global.get(name) ?? this.#ofEarlierStages(name);
      if (ids === undefined && name.includes("/"))
        this.#problems.add(unknownRequisite(requisite, [...local.keys(), ...this.#global.keys()]));
      return ids ?? [];
    });
  }

  #ofEarlierStages(name: string): readonly string[] | undefined {
    const ids = [...this.#used].filter((id) => id === name || id.startsWith(`${name}[`));
    return ids.length === 0 ? undefined : ids;
  }
}
