import type { NodeEntry } from "#engine/roster/roster.ts";
import { KcoreError } from "#errors/problem.ts";
import { selectNodes, wavesOf } from "#rollout/select.ts";
import { selectionFaults } from "#rollout/selection-faults.ts";
import { bringsOf, targetIdOf, type Bundle, type UpdateSpec } from "#rollout/spec.ts";
import type { RolloutNode } from "#rollout/view.ts";
import { backward, forward, gateId, hooksOf, type Ground, type Stage, type Wave } from "./stages.ts";

export interface UpdateRun {
  readonly name: string;
  readonly spec: UpdateSpec;
  /** Absent for NixOS systems, which nodes build themselves. `file`: where the bastion has the bundle's bytes, and nothing else. */
  readonly runtime?: { readonly bundle: Bundle; readonly file: string } | undefined;
  /** Everybody of the roster. */
  readonly nodes: Iterable<NodeEntry>;
  /** Take back what the update brought. */
  readonly isBack: boolean;
}

/** An orchestration made of a manifest: its text, and its parameters. */
export interface Composed {
  readonly text: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/**
 * Makes the orchestration that carries an update out over SSH: the same nodes in the same groups as controllers would take.
 * @throws KcoreError TARGET_EMPTY, UPDATE_INVALID
 */
export function composeUpdate(run: UpdateRun): Composed {
  const { name, spec, runtime, isBack } = run;
  const nodes = [...run.nodes].map(rolloutNode);
  const selected = selectNodes(nodes, spec.selector);
  if (selected.length === 0)
    throw new KcoreError({
      code: "TARGET_EMPTY",
      message: `the selector of “${name}” means no node of the roster`,
      hint: "kcore roster show tells names, ids, datacenters and labels; allNodes: true means all",
    });
  const faults = isBack ? [] : selectionFaults(spec, { nodes, of: "the roster", selected });
  if (faults.length > 0)
    throw new KcoreError(faults.map((text) => ({ code: "UPDATE_INVALID", message: `“${name}”: ${text}` })));
  const names = new Map(selected.map(({ id, hostname }) => [id, hostname]));
  const { waves: groups, canaries } = wavesOf(selected, spec, "");
  const waves = groups.map((ids, index) =>
    waveOf(
      index,
      groups.length,
      ids.map((id) => names.get(id) ?? id),
    ),
  );
  const ground: Ground = {
    spec,
    order: { update: name, owner, target: "{{params.target}}", signed: "{{stages.sign}}", ...runsOf(spec) },
  };
  const all = { on: [...names.values()] };
  const stages = isBack ? takenBack(waves, ground, all) : brought(waves, ground, { ...all, canaries });
  const onFailure = !isBack && spec.rollback.automatic ? afterFailure(waves, ground) : undefined;
  const { bundle } = runtime ?? {};
  const params = {
    target: targetIdOf({ spec, bundle }),
    spec,
    hooks: hooksOf(spec),
    ...(runtime && {
      version: runtime.bundle.version,
      bundle: runtime.bundle,
      file: { file: runtime.file, sha256: runtime.bundle.sha256, size: runtime.bundle.size },
    }),
  };
  const orchestration = {
    description: `${isBack ? "Takes the update" : "Carries the update"} “${name}” ${isBack ? "back" : "out"} over SSH`,
    params: Object.fromEntries(
      Object.keys(params).map((key) => [key, { type: types[key as keyof typeof types], required: true }]),
    ),
    stages,
    ...(onFailure && { onFailure }),
  };
  return { text: JSON.stringify(orchestration, undefined, 1), params };
}

const types = { target: "string", version: "string", spec: "map", bundle: "map", file: "map", hooks: "map" } as const;
/** Each run is an owner of its own, and stays the same one when it is resumed. */
const owner = "bastion-{{run.id}}";

/** What tells that a node is where it shall be: whether no boot has to keep it; of NixOS, with no boot to come, what the next one begins with. */
function runsOf({ activation: { mode, rebootPolicy } }: UpdateSpec): Pick<Ground["order"], "tried" | "system"> {
  const isLater = mode === "boot" && rebootPolicy === "never";
  return { tried: mode === "test", system: isLater ? "/nix/var/nix/profiles/system" : "/run/current-system" };
}

function rolloutNode({ id, name, dc, labels, roles }: NodeEntry): RolloutNode {
  const isController = roles.includes("controller");
  return { id, hostname: name, dc, labels, isController, isApproved: true, isReady: true, version: "" };
}

function waveOf(index: number, count: number, nodes: readonly string[]): Wave {
  const shown = nodes.length > 3 ? `${nodes.slice(0, 3).join(", ")} and ${nodes.length - 3} more` : nodes.join(", ");
  return {
    suffix: index === 0 ? "" : `@${index + 1}`,
    label: count === 1 ? "" : `${index + 1} of ${count}: ${shown}`,
    nodes,
  };
}

type Everybody = { readonly on: readonly string[] };

/** What comes before anybody is touched: the bastion's word, and a look at all. */
function beginning({ spec, order }: Ground, { on }: Everybody): readonly Stage[] {
  const { update, owner: who, target, tried, system } = order;
  const bundle = bringsOf(spec) === "runtime" && { bundle: "{{params.bundle}}" };
  const sign = { update, owner: who, spec: "{{params.spec}}", ...bundle, at: "{{run.time}}" };
  return [
    { id: "sign", title: "Sign", run: "update.sign", with: sign },
    {
      id: "look",
      title: "Look at the nodes",
      on,
      apply: "update/look",
      with: { update, owner: who, target, tried, system },
    },
  ];
}

function brought(
  waves: readonly Wave[],
  ground: Ground,
  { on, canaries }: Everybody & { readonly canaries: number },
): readonly Stage[] {
  const { spec, order } = ground;
  const { maxUnavailable, canary } = spec.strategy;
  const fence = { id: "fence", title: "Take the nodes over", on, apply: "update/fence", with: order };
  const chosen = waves.slice(0, canaries);
  const rest = waves.slice(canaries);
  return [
    ...beginning(ground, { on }),
    fence,
    { id: "begin", title: "Begin", run: "update.begin", with: { maxUnavailable } },
    ...chosen.flatMap((wave) => forward(wave, ground)),
    ...(chosen.length > 0 && rest.length > 0 ? [promotion(chosen, canary?.soakSeconds)] : []),
    ...rest.flatMap((wave) => forward(wave, ground)),
  ];
}

function promotion(canaries: readonly Wave[], soakSeconds: number | undefined): Stage {
  const names = canaries.flatMap(({ nodes }) => nodes).join(", ");
  const id = { id: "promote", title: `Promotion of ${names}` };
  if (soakSeconds !== undefined) return { ...id, run: "wait", for: soakSeconds, timeout: soakSeconds + 60 };
  return { ...id, run: "confirm", message: `${names}: updated and well. Go on with the others?`, timeout: "192h" };
}

function takenBack(waves: readonly Wave[], ground: Ground, { on }: Everybody): readonly Stage[] {
  return [
    ...beginning(ground, { on }),
    ...waves.toReversed().flatMap((wave) => backward(wave, ground, { own: false })),
  ];
}

function afterFailure(waves: readonly Wave[], ground: Ground): readonly Stage[] {
  const { healthGates, rollback } = ground.spec;
  const gates = waves.flatMap(({ suffix }) => [
    `ready${suffix}`,
    ...healthGates.map((_, index) => `${gateId(index)}${suffix}`),
  ]);
  return [
    { id: "verdict", title: "Verdict", run: "update.verdict", gates, onGateFailure: rollback.onHealthGateFailure },
    ...waves
      .toReversed()
      .flatMap((wave) => backward(wave, ground, { own: true, of: "-all", when: "{{stages.verdict.goesBack}}" })),
  ];
}
