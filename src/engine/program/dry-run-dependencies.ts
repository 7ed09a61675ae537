import type { PlannedStep } from "#engine/states/planned-step.ts";
import { afterBoth, survives, type Effects, type Survival, type NodeResource } from "#engine/step/effects.ts";
import { foldersAbove } from "./batch.ts";
import { stepKey } from "./compile-step.ts";

/** The effects of a step whose module declares none. */
const unknownEffects: Effects = { writes: [{ is: "command", text: "" }], reads: [{ is: "command", text: "" }] };

/** The effects of a step and of its keys `creates`, `unless`, `onlyIf` and `runAs`. */
function effectsOf({ step, creates, unless, onlyIf, runAs }: PlannedStep): Effects {
  const { writes, reads } = step.effects ?? unknownEffects;
  const made: readonly NodeResource[] = creates === undefined ? [] : [{ is: "tree", path: creates }];
  const asked = [unless, onlyIf].filter((text) => text !== undefined);
  return {
    writes: [...writes, ...made],
    reads: [
      ...reads,
      ...made,
      ...asked.map((text): NodeResource => ({ is: "command", text })),
      ...(runAs === undefined ? [] : [{ is: "owner", name: runAs } as const]),
    ],
  };
}

/** By the key of an earlier step: the verdicts of the later step that survive the earlier step's change. */
export type Survivals = ReadonlyMap<string, Survival>;

/** The earlier steps on which a step depends. */
export interface Dependencies {
  readonly on: Survivals;
  /** Whether an earlier step makes the folder above the step's path. */
  readonly isFolderMade: boolean;
  /** Users and groups that earlier steps make. */
  readonly made: readonly string[];
}

interface EarlierChange {
  readonly key: string;
  readonly change: NodeResource;
}

/**
 * Finds the earlier steps of a node on which a step depends, in a dry run. Steps come in their order. Changes are indexed
 * by their paths, so that a thousand files cost a thousand lookups and not a million.
 */
export class DryRunDependencies {
  readonly #at = new Map<string, EarlierChange[]>();
  /** Earlier steps by each folder above a path that they change. */
  readonly #beneath = new Map<string, EarlierChange[]>();
  readonly #others: EarlierChange[] = [];
  readonly #all: EarlierChange[] = [];
  /** Steps that run the operator's own text. */
  readonly #commands = new Set<string>();

  /** Resolves a step's dependencies; from then on the step is one of the earlier ones. */
  next(key: string, plan: PlannedStep): Dependencies {
    const { writes, reads } = effectsOf(plan);
    const on = new Map<string, Survival>();
    const doubt = (earlier: string, survival: Survival): void => {
      on.set(earlier, afterBoth(on.get(earlier) ?? "22", survival));
    };
    let isFolderMade = false;
    const made = new Set<string>();
    for (const resource of reads)
      for (const { key: earlier, change } of this.#near(resource)) {
        const survival = survives(change, resource);
        if (survival !== undefined) doubt(earlier, survival);
        isFolderMade ||= "path" in resource && makesFolderOf(change, resource.path);
        if (survival !== undefined && makesAccount(change, resource)) made.add(change.name);
      }
    // Whether a watched step changes anything is not known either; if it does, so does this step.
    for (const id of [...plan.onChanges, ...plan.restartOn]) doubt(stepKey(id), "02");
    // A requisite that is a command declares that the step depends on the command's effects.
    const isSure = plan.step.always && [plan.creates, plan.unless, plan.onlyIf].every((text) => text === undefined);
    if (!isSure) for (const earlier of plan.require.map(stepKey)) if (this.#commands.has(earlier)) doubt(earlier, "00");
    for (const change of writes) this.#keep({ key, change });
    return { on, isFolderMade, made: [...made] };
  }

  #keep(earlier: EarlierChange): void {
    const { key, change } = earlier;
    this.#all.push(earlier);
    if (change.is === "command") this.#commands.add(key);
    if (!("path" in change)) {
      this.#others.push(earlier);
      return;
    }
    addTo(this.#at, change.path, earlier);
    for (const folder of foldersAbove(change.path)) addTo(this.#beneath, folder, earlier);
  }

  #near(resource: NodeResource): readonly EarlierChange[] {
    if (resource.is === "command" || resource.is === "program") return this.#all;
    if (!("path" in resource)) return this.#others;
    const { path } = resource;
    return [
      ...this.#others,
      ...[path, ...foldersAbove(path)].flatMap((at) => this.#at.get(at) ?? []),
      ...(this.#beneath.get(path) ?? []),
      ...(this.#beneath.get(folderOf(path)) ?? []).filter(({ change }) => change.is === "parents"),
    ];
  }
}

/** Whether a change makes the folder that a path lies in, if it is not there. */
function makesFolderOf(change: NodeResource, path: string): boolean {
  if (change.is === "folder") return change.path === folderOf(path);
  return change.is === "parents" && change.path.startsWith(`${folderOf(path)}/`);
}

function makesAccount(
  change: NodeResource,
  resource: NodeResource,
): change is Extract<NodeResource, { is: "user" | "group" }> {
  const isAccount = change.is === "user" || change.is === "group";
  return isAccount && !change.goes && (resource.is === "owner" || resource.is === "ownerGroup");
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

function addTo(map: Map<string, EarlierChange[]>, path: string, earlier: EarlierChange): void {
  const known = map.get(path);
  if (known) known.push(earlier);
  else map.set(path, [earlier]);
}
