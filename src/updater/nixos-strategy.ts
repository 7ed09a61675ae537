import { dirname, join } from "node:path";
import { omitUndefined } from "#base/omit-undefined.ts";
import { targetIdOf, type UpdateStatement, type UpdateSpec } from "#rollout/spec.ts";
import { isOlder } from "#rollout/version.ts";
import { readAgentPart, notHeardFrom, watchDaemons } from "./daemons.ts";
import { UpdateFailure } from "./failure.ts";
import { generationFor, isInStore, readProfile, setProfile, versionInPath } from "./nix.ts";
import { bootOnceOf, endTrial, keepDefault, prepareBoot } from "./nixos-boot.ts";
import { buildSystem, builtLink } from "./nixos-build.ts";
import {
  bootedSystem,
  currentSystem,
  nixosVersionOf,
  builtPathOf,
  rememberSystem,
  switchTo,
  systemProfile,
} from "./nixos-systems.ts";
import type { Ports } from "./ports.ts";
import { NodeVersion, type Preparation, type UpdateStrategy } from "./strategy.ts";

/** Units without which a node could neither report nor take orders. */
const neededUnits = ["kcore-node-agent.service", "kcore-updater.path"];
const commitMs = 300_000;
const quickMs = 30_000;

export interface NixosOptions {
  readonly ports: Ports;
  readonly statement: UpdateStatement;
  /** The folder of updates. */
  readonly folder: string;
  /** The file of the agent's status. */
  readonly statusFile: string;
  /** The node's name: the configuration to build if the target names none. */
  readonly hostName: string;
}

/** A NixOS system as a generation of its profile, brought into use by its own switch-to-configuration, or by a boot. */
export function nixosStrategy({ ports, statement, folder, statusFile, hostName }: NixosOptions): UpdateStrategy {
  const { target: wanted, activation } = statement.spec;
  const target: NodeVersion = { id: targetIdOf(statement), version: wanted.version ?? "" };
  // The journal's schema refuses longer ids, so the next updater could not read the journal.
  if (!NodeVersion.shape.id.safeParse(target.id).success)
    throw new UpdateFailure("refused", "the target's name has more than 1000 characters");
  const isTest = activation.mode === "test";
  const waits = planActivation(activation, []).boot === "later";
  const watch = watchDaemons(ports);
  let firstHeartbeat: string | undefined;

  const builtPath = async (id: string): Promise<string> => {
    const path = await builtPathOf(ports, folder, id);
    if (path !== undefined) return path;
    throw new UpdateFailure("activation", `${id} was not built on this node`);
  };
  const planFor = async (
    path: string,
  ): Promise<{ readonly plan: ActivationPlan; readonly changes: readonly string[] }> => {
    const booted = await bootedSystem(ports);
    const changes = booted === undefined ? [] : await changesThatNeedBoot(ports, booted, path);
    return { plan: planActivation(activation, changes), changes };
  };

  return {
    target,
    async isStored({ id }) {
      const path = await builtPathOf(ports, folder, id);
      return path !== undefined && (await isInStore(ports, path, quickMs));
    },
    async prepare(msLeft): Promise<Preparation> {
      refuseContradiction(statement);
      if ((await currentSystem(ports)) === undefined)
        throw new UpdateFailure("refused", "this node does not run NixOS: there is no /run/current-system");
      const path = await buildSystem({ ports, folder, target: wanted, hostName, msLeft });
      await refuseUnsuited(ports, path, wanted.allowDowngrade);
      await rememberSystem(ports, folder, path, target.id);
      const { plan, changes } = await planFor(path);
      const rebootReasons =
        plan.boot === undefined ? changes.map(staysUntilBoot) : await reasonsOf(ports, plan, statement, changes);
      return {
        targetGeneration: await generationFor(ports, systemProfile, path),
        needsReboot: plan.boot === "reboot",
        ...(rebootReasons.length > 0 && { rebootReasons: [...rebootReasons] }),
      };
    },
    async activate(msLeft, hasBooted) {
      const path = await builtPath(target.id);
      const [current, booted] = [await currentSystem(ports), await bootedSystem(ports)];
      if (hasBooted && booted !== path)
        throw new UpdateFailure("reboot", `the node came up with ${booted ?? "nothing"}, not with ${path}`);
      // After a boot into the target, only `commit` is left to do.
      if (!isTest && !waits && booted === path && current === path) return { needsBoot: false };
      const { plan } = await planFor(path);
      const forward = { kind: "activation", msLeft } as const;
      if (plan.now === "switch" || plan.boot === "later")
        await setProfile(ports, systemProfile, { id: path }, { kind: "activation", limitMs: msLeft() });
      if (plan.now) await switchTo(ports, path, plan.now, forward);
      if (plan.boot === "later") await switchTo(ports, path, "boot", forward);
      if (plan.boot === "reboot") await prepareBoot({ ports, folder, msLeft }, path);
      return { needsBoot: plan.boot === "reboot" };
    },
    mark: async () => (await readAgentPart(ports, statusFile))?.lastHeartbeat ?? "",
    async missing(running, mark) {
      // A system that waits for a boot is not in use, neither after an activation nor after a rollback.
      const path = await builtPath(waits ? (running.lasting ?? running).id : running.id);
      const present = waits ? (await readProfile(ports, systemProfile))?.id : await currentSystem(ports);
      if (present !== path)
        return {
          kind: "activation",
          message: `${waits ? systemProfile : "the node"} is at ${present}, not at ${path}`,
        };
      const { missing, agentPid } = await watch();
      if (missing !== undefined || mark === undefined) return missing;
      const agent = await readAgentPart(ports, statusFile);
      // The former agent may have sent a heartbeat while the system was activated.
      firstHeartbeat ??= agent?.lastHeartbeat ?? mark;
      const hasReached = agent?.pid === agentPid && (agent?.lastHeartbeat ?? firstHeartbeat) !== firstHeartbeat;
      return hasReached ? undefined : notHeardFrom(agent);
    },
    async commit(held) {
      if (isTest || waits) return;
      const boot = { ports, folder, msLeft: () => commitMs };
      await keepDefault(boot, await builtPath(held.id));
      // From now on its generation protects the system from the garbage collector.
      await ports.remove(builtLink(folder));
    },
    async rollBack(to, msLeft) {
      const path = await builtPath(to.id);
      const { id, generation } = to.lasting ?? to;
      const lasts = await builtPath(id);
      const back = { kind: "rollback", msLeft } as const;
      await endTrial({ ports, folder, msLeft });
      if (isTest) {
        if ((await currentSystem(ports)) !== path) await switchTo(ports, path, "test", back);
        return { needsBoot: false };
      }
      const profileTarget = { id: lasts, ...omitUndefined({ generation }) };
      await setProfile(ports, systemProfile, profileTarget, { kind: "rollback", limitMs: msLeft() });
      const booted = await bootedSystem(ports);
      const isBooted =
        booted !== undefined && booted === (await builtPathOf(ports, folder, target.id)) && booted !== path;
      // Going back needs a boot only if the machine was booted into the update.
      const needsBoot =
        isBooted && activation.rebootPolicy !== "never" && (await changesThatNeedBoot(ports, booted, lasts)).length > 0;
      const isLater = needsBoot || waits;
      await switchTo(ports, lasts, isLater || to.lasting ? "boot" : "switch", back);
      if (to.lasting && !isLater) await switchTo(ports, path, "test", back);
      return { needsBoot };
    },
  };
}

function staysUntilBoot(change: string): string {
  return `${change}; it stays as it was booted`;
}

async function reasonsOf(
  ports: Ports,
  { boot }: ActivationPlan,
  { spec: { activation } }: UpdateStatement,
  changes: readonly string[],
): Promise<readonly string[]> {
  if (boot === "later")
    return ["activation.mode is boot, and rebootPolicy never: it comes into use with the next boot", ...changes];
  const orders = [
    ...(activation.mode === "boot" ? ["activation.mode is boot"] : []),
    ...(activation.rebootPolicy === "always" ? ["activation.rebootPolicy is always"] : []),
  ];
  const loader = await bootOnceOf(ports);
  const warning =
    "the boot loader cannot boot a generation once: a system that does not boot needs an operator at the machine";
  return [...orders, ...changes, ...(loader === undefined ? [warning] : [])];
}

function refuseContradiction({ spec: { activation } }: UpdateStatement): void {
  if (activation.mode === "test" && activation.rebootPolicy === "always")
    throw new UpdateFailure("refused", "activation.mode test lasts until the next boot, and rebootPolicy is always");
}

async function refuseUnsuited(ports: Ports, path: string, allowDowngrade: boolean): Promise<void> {
  for (const unit of neededUnits)
    if ((await ports.read(join(path, "etc/systemd/system", unit))) === undefined)
      throw new UpdateFailure("refused", `${path} has no ${unit}: the configuration must import what kcore needs`);
  const release = (version: string): string => /^\d+\.\d+/.exec(version)?.[0] ?? "";
  const { version } = await presentVersion(ports);
  const next = await nixosVersionOf(ports, path);
  if (!allowDowngrade && isOlder(release(next), release(version)))
    throw new UpdateFailure(
      "refused",
      `the node runs NixOS ${version}, and the update may not bring the older ${next}: allowDowngrade`,
    );
}

async function presentVersion(ports: Ports): Promise<{ readonly version: string }> {
  const path = await currentSystem(ports);
  return { version: path === undefined ? "" : await nixosVersionOf(ports, path) };
}

/** Links to the parts of a system that only a boot brings into use. */
const bootParts = {
  kernel: "the kernel",
  initrd: "the initrd",
  "kernel-modules": "the kernel's modules",
  systemd: "systemd",
} as const;

/** The changes that only a boot brings into use, in words; empty if the machine was booted with the same parts. */
async function changesThatNeedBoot(ports: Ports, booted: string, next: string): Promise<readonly string[]> {
  if (booted === next) return [];
  const changes: string[] = [];
  for (const [name, title] of Object.entries(bootParts)) {
    const [before, after] = [await ports.readLink(join(booted, name)), await ports.readLink(join(next, name))];
    if (before !== after) changes.push(`${title}: ${changeOf(pathVersion(before), pathVersion(after))}`);
  }
  const params = async (system: string): Promise<string> =>
    ((await ports.read(join(system, "kernel-params"))) ?? "").trim();
  const [before, after] = [await params(booted), await params(next)];
  if (before !== after)
    changes.push(`the kernel's parameters: ${before || "none"} -> ${after || "none"}`.slice(0, 450));
  return changes;
}

/** `/nix/store/HASH-linux-6.6.1/bzImage` is 6.6.1. */
function pathVersion(link: string | undefined): string {
  if (link === undefined) return "none";
  const path = /^\/nix\/store\/[^/]+/.exec(link)?.[0] ?? dirname(link);
  return versionInPath(path).replace(/-modules(?:-shrunk)?$/, "");
}

function changeOf(before: string, after: string): string {
  if (before !== after && before !== "" && after !== "") return `${before} -> ${after}`;
  return after === "" ? "another one" : `${after}, built anew`;
}

/** The switch to make at once (`now`), and the boot that the activation needs. */
interface ActivationPlan {
  readonly now?: "test" | "switch";
  /** `later`: the next boot, at any time. */
  readonly boot?: "reboot" | "later";
}

/** Plans an activation by the changes that need a boot. */
function planActivation({ mode, rebootPolicy }: UpdateSpec["activation"], changes: readonly string[]): ActivationPlan {
  if (mode === "test") return { now: "test" };
  if (mode === "boot") return { boot: rebootPolicy === "never" ? "later" : "reboot" };
  const isDue = rebootPolicy === "always" || (rebootPolicy === "if-required" && changes.length > 0);
  if (!isDue) return { now: "switch" };
  // With mode switch the system is in use at once, but becomes the boot default only after it has booted.
  return mode === "switch" ? { now: "test", boot: "reboot" } : { boot: "reboot" };
}
