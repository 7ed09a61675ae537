import { flakeUrl } from "#rollout/flake-url.ts";
import { isHook } from "#rollout/hooks.ts";
import type { UpdateSpec } from "#rollout/spec.ts";
import { checkNames, type Path, type Refuse } from "#engine/layout/layout-schema.ts";

/** Refuses mistakes that the schema of an update cannot find: contradictions, and keys without an effect. */
export function checkUpdate(spec: UpdateSpec, refuse: Refuse): void {
  checkTarget(spec, refuse);
  checkActivation(spec, refuse);
  checkSelector(spec, refuse);
  checkStrategy(spec, refuse);
  checkDrain(spec, refuse);
  checkGates(spec, refuse);
  checkTimes(spec, refuse);
}

function checkTarget({ target }: UpdateSpec, refuse: Refuse): void {
  const { version, bundle, flakeRef, flakeRev, nixpkgsRev, systemProfile } = target;
  if (flakeRef === undefined && flakeRev !== undefined)
    refuse(["target", "flakeRev"], "“flakeRev” is a commit of no flake", "flakeRef: github:OWNER/REPO");
  if (flakeRef !== undefined && flakeRev === undefined)
    refuse(
      ["target", "flakeRef"],
      "“flakeRef” is a flake at no commit",
      "flakeRev: the 40 hex digits that git rev-parse HEAD prints",
    );
  if (flakeRef !== undefined) {
    const fault = flakeFault(flakeRef);
    if (fault) refuse(["target", "flakeRef"], fault.message, fault.hint);
    if (bundle !== undefined)
      refuse(["target", "bundle"], "NixOS systems and a bundle of kcore at once", "an update for each of them");
    return;
  }
  if (flakeRev !== undefined) return;
  for (const [key, value] of Object.entries({ nixpkgsRev, systemProfile }))
    if (value !== undefined)
      refuse(["target", key], `“${key}” means nothing without a flake`, "flakeRef and flakeRev say which");
  if (version === undefined && bundle === undefined)
    refuse(
      ["target"],
      "the target names nothing",
      "flakeRef and flakeRev of NixOS systems, or kcore's version or bundle",
    );
}

function checkActivation({ target, activation: { mode, rebootPolicy } }: UpdateSpec, refuse: Refuse): void {
  const isRuntime = target.flakeRef === undefined && target.flakeRev === undefined;
  if (isRuntime && mode === "boot")
    refuse(["activation", "mode"], "kcore's runtime comes into use without a boot", "mode: switch, or auto");
  if (isRuntime && rebootPolicy === "always")
    refuse(["activation", "rebootPolicy"], "kcore's runtime needs no reboot", "rebootPolicy: never, or if-required");
  if (!isRuntime && mode === "test" && rebootPolicy === "always")
    refuse(
      ["activation", "rebootPolicy"],
      "a version that is only tested is gone after a reboot",
      "mode: switch, or rebootPolicy: never",
    );
}

function checkSelector({ selector }: UpdateSpec, refuse: Refuse): void {
  const { allNodes, nodeIds, labels, datacenters, controllersOnly } = selector;
  if (!allNodes && !controllersOnly && [nodeIds, labels, datacenters].every((list) => list.length === 0))
    refuse(["selector"], "no node is selected", "allNodes: true, or nodeIds, datacenters, labels or controllersOnly");
  checkOnce("node", nodeIds, ["selector", "nodeIds"], refuse);
  checkOnce("datacenter", datacenters, ["selector", "datacenters"], refuse);
  checkLabels(labels, ["selector", "labels"], refuse);
}

function checkStrategy({ strategy, selector }: UpdateSpec, refuse: Refuse): void {
  const { type, batchSize, maxUnavailable, canary } = strategy;
  if (type === "one-at-a-time" && batchSize !== undefined && batchSize > 1)
    refuse(["strategy", "batchSize"], `${batchSize} nodes a batch are not one at a time`, "type: batch");
  // The other filters of the selector can only leave out more nodes.
  const { nodeIds } = selector;
  for (const [key, value] of Object.entries({ maxUnavailable, batchSize }))
    if (value !== undefined && nodeIds.length > 0 && value > nodeIds.length)
      refuse(
        ["strategy", key],
        `“${key}” is ${value}, the selected nodes are ${nodeIds.length}`,
        `${key}: ${nodeIds.length} at most`,
      );
  if (canary === undefined) return;
  if (type !== "canary")
    refuse(["strategy", "canary"], `canaries mean nothing for the strategy ${type}`, "type: canary");
  checkOnce("canary", canary.nodeIds, ["strategy", "canary", "nodeIds"], refuse);
  checkLabels(canary.labels, ["strategy", "canary", "labels"], refuse);
}

function checkDrain({ drain }: UpdateSpec, refuse: Refuse): void {
  checkHook(drain, ["drain"], refuse);
  if (drain.after) {
    checkHook(drain.after, ["drain", "after"], refuse);
    if (!isHook(drain.after))
      refuse(["drain", "after"], "nothing is said to be done after", "state: STATE, or command: COMMAND");
  }
}

type Hook = Pick<UpdateSpec["drain"], "state" | "params" | "command">;

function checkHook({ state, params, command }: Hook, path: Path, refuse: Refuse): void {
  if (state !== undefined && command !== undefined)
    refuse([...path, "command"], "“state” and “command” at once", "keep one of them; a state can run commands, too");
  if (params !== undefined && state === undefined)
    refuse([...path, "params"], "“params” means nothing without “state”", "state: STATE");
}

const gateKinds = ["http", "nodeCommand", "state", "command"] as const;

function checkGates({ healthGates }: UpdateSpec, refuse: Refuse): void {
  for (const [index, gate] of healthGates.entries()) {
    const path = ["healthGates", index];
    const given = gateKinds.filter((kind) => gate[kind] !== undefined);
    const [, second] = given;
    if (given.length === 0) refuse(path, `the gate ${gate.name} looks at nothing`, `one of ${gateKinds.join(", ")}`);
    else if (second !== undefined)
      refuse([...path, second], `the gate ${gate.name} is both ${given.join(" and ")}`, "a gate for each of them");
    if (gate.params !== undefined && gate.state === undefined)
      refuse([...path, "params"], "“params” means nothing without “state”", "state: STATE");
  }
  checkNames("gate", healthGates, ["healthGates"], refuse);
}

function checkTimes({ timeouts, window }: UpdateSpec, refuse: Refuse): void {
  for (const [key, seconds] of Object.entries(timeouts))
    if (seconds === 0)
      refuse(["timeouts", key], `“${key}” leaves no time`, `${key}: 1 or more; without the key, its default`);
  if (!window) return;
  if (window.from === window.to)
    refuse(["window", "to"], "a window that ends when it begins", "no window at all: nodes may be started at any time");
  checkOnce("day", window.days ?? [], ["window", "days"], refuse);
}

function checkOnce(what: string, list: readonly string[], path: Path, refuse: Refuse): void {
  for (const [index, one] of list.entries())
    if (list.indexOf(one) < index) refuse([...path, index], `the ${what} ${one} is here twice`, "keep it once");
}

/** Refuses two values of one label: a node has one value of it, and all labels must match. */
function checkLabels(labels: readonly string[], path: Path, refuse: Refuse): void {
  const keyOfLabel = (label: string): string => label.slice(0, label.indexOf("="));
  for (const [index, label] of labels.entries()) {
    const earlier = labels.slice(0, index).find((one) => keyOfLabel(one) === keyOfLabel(label));
    if (earlier !== undefined)
      refuse([...path, index], `no node has ${earlier} and ${label}`, "keep one of them: all labels must match");
  }
}

/** The forms of a flake's reference, for hints. */
const flakeForms = "github:OWNER/REPO, or git+https://HOST/REPO";

/** Why nodes could not build a commit of this flake; undefined for a good reference. */
export function flakeFault(flakeRef: string): { readonly message: string; readonly hint: string } | undefined {
  if (/[\s<>"]/.test(flakeRef)) return { message: `“${flakeRef}” is no reference to a flake`, hint: flakeForms };
  if (flakeRef.includes("#"))
    return {
      message: "a flake's reference names no output",
      hint: "systemProfile: NAME chooses nixosConfigurations.NAME",
    };
  if (/^(?:\.|path:)/.test(flakeRef))
    return { message: `“${flakeRef}” is a folder of this machine, of which nodes know nothing`, hint: flakeForms };
  // A branch or tag in it (`github:o/r/v1.0`) may stay: flakeRev decides.
  const pinned =
    /[?&]rev=/.test(flakeRef) || /^(?:github|gitlab|sourcehut):[^/]+\/[^/]+\/[0-9a-f]{40}(?:\?|$)/.test(flakeRef);
  if (pinned)
    return { message: `“${flakeRef}” pins a commit of its own`, hint: "leave it out there: flakeRev says it" };
  return flakeUrl(flakeRef, "0".repeat(40)) === undefined
    ? { message: `“${flakeRef}” is no flake that a commit pins`, hint: flakeForms }
    : undefined;
}

/** The hint that leads from a branch or tag to its whole commit. */
export function commitHint(text: string): string {
  if (/^[0-9a-f]{40}$/i.test(text)) return `in lower case: ${text.toLowerCase()}`;
  return /^\w[\w./-]{0,38}$/.test(text) ? `git rev-parse ${text} prints it` : "git rev-parse HEAD prints it";
}
