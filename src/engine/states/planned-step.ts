import type { SourcePosition } from "#errors/problem.ts";
import type { StepFacts, Retry, Step } from "#engine/step/define.ts";
import type { ManagedRemnant } from "./remnants.ts";

/** The values that a registered step gives to later steps: `steps.NAME` in expressions. */
export interface Registered {
  readonly changed: boolean;
  readonly rc: number;
  /** At most 64 KiB, UTF-8 with invalid bytes replaced, without the final line break. */
  readonly stdout: string;
  /** The facts found last (after apply, if it was applied). */
  readonly facts: StepFacts;
}

/** One step of one node, rendered: all that the program compiler and the views need. */
export interface PlannedStep {
  /** Unique within the node's run: `state/id`, with `[item]` for an `each`. */
  readonly id: string;
  /** As the state file names it. */
  readonly title: string;
  readonly state: string;
  readonly module: string;
  readonly at: SourcePosition;
  readonly step: Step;
  readonly leaves?: readonly ManagedRemnant[];
  /** Ids of earlier steps. If one of them failed, this step does not run. */
  readonly require: readonly string[];
  /** Ids of earlier steps. This step runs only if one of them changed something. */
  readonly onChanges: readonly string[];
  /** Ids of earlier steps. If one of them changed something, this step's reaction follows. */
  readonly restartOn: readonly string[];
  /** Ids of earlier steps. This step runs only if one of them failed. */
  readonly onFailure: readonly string[];
  /** An sh text: the step is skipped unless the text succeeds on the node. */
  readonly onlyIf?: string;
  /** An sh text: the step is in order if the text succeeds on the node. */
  readonly unless?: string;
  /** An absolute path: the step is in order if the path exists on the node. */
  readonly creates?: string;
  readonly retry?: Retry;
  /** Seconds. */
  readonly timeout?: number;
  readonly runAs?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly sensitive: boolean;
  /** The change stays only if a new connection confirms it in time (docs/runner.md, On trial). */
  readonly risk?: "connectivity";
  /** Seconds for a new connection to confirm the change. */
  readonly confirm?: number;
  /** The step is a check: further checks follow its failure, and a warning counts as in order. */
  readonly severity?: "error" | "warning";
  /** The trouble that the failure of a check brings. */
  readonly reason?: string;
  /** The command or the work that mends the failure of a check. */
  readonly remedy?: string;
  /** The name NAME of `steps.NAME` for later steps. */
  readonly register?: string;
  readonly milestone?: string;
  /** The step's output is recorded byte for byte, and more of it is kept: it is the output that an operator asked for. */
  readonly exact?: true;
}

/** The values that become known only while the node runs. */
export interface LateScope {
  /** Node facts; undefined until they were gathered. */
  readonly facts?: Readonly<Record<string, unknown>>;
  /** By register name; `undefined` value: registered by a step that a dry run did not apply (unknown). */
  readonly steps: ReadonlyMap<string, Registered | undefined>;
}

export type RenderedStep =
  | { readonly kind: "step"; readonly plan: PlannedStep }
  | { readonly kind: "skipped"; readonly id: string; readonly title: string; readonly reason: string }
  /** The step depends on a value that a dry run cannot know; `after` names the step or other source that would give the value. */
  | { readonly kind: "unknown"; readonly id: string; readonly title: string; readonly after: string };

/**
 * One step of one node before its late values are known. `each` and `include` are expanded; all that can be
 * checked without late values was checked during the expansion.
 */
export interface UnresolvedStep {
  readonly id: string;
  readonly title: string;
  readonly state: string;
  readonly module: string;
  readonly at: SourcePosition;
  /** The values that `render` waits for; a segment ends before the first step whose needs are not met yet. */
  readonly needs: { readonly facts: boolean; readonly steps: readonly string[] };
  /** The name NAME of `steps.NAME` for later steps, if the step registers its result. */
  readonly register?: string;
  /** Of the step, and of the includes that brought it. */
  readonly tags: readonly string[];
  /** Ids of the earlier steps in `require`. */
  readonly require: readonly string[];
  /** Ids of steps that the run leaves out and that watch this one: their reactions are owed, too. */
  readonly alsoOwes?: readonly string[];
  /** Ids of the earlier steps in `restartOn` and `onChanges`: after a change of one of them, this step's reaction is owed. */
  readonly watches: readonly string[];
  /** Ids of the earlier steps whose failure makes this step run (`onFailure`). */
  readonly answers: readonly string[];
  /** The place of the argument that a failure's text `said` names; undefined: the step has no arguments. */
  readonly argumentAt?: (said: string) => SourcePosition | undefined;
  /** The module's arguments with the values that are known before the run. @throws UnknownValue, KcoreError */
  readonly args?: () => unknown;
  /** The step may be left out, or become several: its `each`, or the include that brought it, waits for an unknown value. */
  readonly maybe?: boolean;
  /** The step has the key `severity`. */
  readonly isCheck?: true;
  /** A condition of the step depends on nodes' answers. */
  readonly isUntrusted?: true;
  /** @throws KcoreError with the problem's place in the state or template file. */
  render(late: LateScope): RenderedStep;
}
