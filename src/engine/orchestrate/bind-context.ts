import type { SourcePosition } from "#errors/problem.ts";
import type { NodeEntry, Roster } from "#engine/roster/roster.ts";
import type { GivenParam, SecretReader } from "#engine/params/bind-params.ts";
import type { SourceNode } from "#engine/yaml/node.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import type { StepDraft } from "#engine/states/planned-step.ts";
import type { Action } from "./action.ts";
import type { UsedNames } from "./used-names.ts";

/** Steps of some states for one node. */
export interface StatesUse {
  readonly apply: readonly {
    readonly state: string;
    readonly at?: SourcePosition;
    readonly given: Map<string, GivenParam>;
  }[];
  readonly node: NodeEntry;
  /** Step ids and register names of earlier stages over the node. */
  readonly taken: Set<string>;
  readonly registered: ReadonlySet<string>;
}

/** What binding needs to know of states and actions. */
export interface Catalogue {
  /** @throws KcoreError STATE_NOT_FOUND, and with every problem of the state's file */
  stateParams(name: string, at?: SourcePosition): Iterable<string>;
  /** @throws KcoreError with every problem */
  draft(use: StatesUse): Promise<readonly StepDraft[]>;
  action(name: string): Promise<Action | undefined>;
  readonly actionNames: readonly string[];
  /** Reads each secret once a run. */
  readonly readSecret: SecretReader;
}

/** What is the same for all stages of a run (or wave). */
export interface BindContext {
  readonly roster: Roster;
  /** `params`, `nodes` and `run`. */
  readonly scope: Scope;
  /** `when` of the includes around. */
  readonly conditions: readonly { readonly node: SourceNode; readonly scope: Scope }[];
  readonly catalogue: Catalogue;
  readonly skipHealth: boolean;
  readonly problems: Problems;
  readonly usedNames: UsedNames;
}
