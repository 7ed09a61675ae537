import type { Bundle, UpdateStatement } from "#rollout/spec.ts";
import { isOlder } from "#rollout/version.ts";
import { UpdateFailure } from "./failure.ts";
import { describeEnd, generationFor, isInStore, readProfile, setProfile, versionInPath } from "./nix.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { UpdaterLog, Ports } from "./ports.ts";
import { fetchMissingBundle, importBundle } from "./store.ts";
import {
  agentUnit,
  readUnits,
  readAgentPart,
  restartUnits,
  runsFrom,
  notHeardFrom,
  triedPath,
  tryUnits,
  watchDaemons,
  type Unit,
} from "./daemons.ts";
import type { BootState, Preparation, NodeVersion, UpdateStrategy } from "./strategy.ts";

const profile = "/nix/var/nix/profiles/kcore";
/** The profile from which the updater runs; only an update that has held changes it. */
const updaterProfile = `${profile}-updater`;
const quickMs = 30_000;

export interface RuntimeStrategyOptions {
  readonly ports: Ports;
  readonly log: UpdaterLog;
  readonly statement: UpdateStatement;
  /** The folder of updates. */
  readonly folder: string;
  /** The file of the agent's status. */
  readonly statusFile: string;
  /** The node's architecture, as `uname -m` prints it. */
  readonly arch: string;
}

/** The runtime from which this node's daemons start; `lasting`: the profile's runtime, while another is on trial. */
export async function presentRuntime(ports: Ports): Promise<BootState> {
  const [tried, lasting] = [await triedPath(ports), await readProfile(ports, profile)];
  if (tried !== undefined && tried !== lasting?.id)
    return { id: tried, version: versionInPath(tried), ...omitUndefined({ lasting }) };
  return lasting ?? { id: "", version: "" };
}

/** kcore's runtime as a generation of its profile, which the daemons' units follow (docs/adr/0005-closed-runtime.md). */
export function runtimeStrategy({
  ports,
  log,
  statement,
  folder,
  statusFile,
  arch,
}: RuntimeStrategyOptions): UpdateStrategy {
  const { bundle, spec } = statement;
  if (!bundle) throw new UpdateFailure("refused", "the update brings no bundle of kcore's runtime");
  const target: NodeVersion = { id: bundle.storePath, version: bundle.version };
  const { mode } = spec.activation;
  const watch = watchDaemons(ports);
  /** The daemons, if the target suits this node. Called before each step forward: an order to activate may come without one to prepare. */
  const refuseUnsuited = async (): Promise<readonly Unit[]> => {
    refuseForeign(bundle, arch);
    refuseBoot(statement);
    const { version } = await presentRuntime(ports);
    if (isOlder(bundle.version, version) && !spec.target.allowDowngrade)
      throw new UpdateFailure(
        "refused",
        `the node runs ${version}, and the update may not bring the older ${bundle.version}: allowDowngrade`,
      );
    return deployedUnits(ports);
  };

  return {
    target,
    isStored: ({ id }) => isInStore(ports, id, quickMs),
    async fetch(msLeft, signal) {
      await refuseUnsuited();
      await fetchMissingBundle({ ports, log, bundle, folder, msLeft, signal });
    },
    async prepare(msLeft): Promise<Preparation> {
      await refuseUnsuited();
      await importBundle({ ports, bundle, folder, msLeft });
      await refuseBroken(ports, bundle, msLeft());
      return { targetGeneration: await generationFor(ports, profile, bundle.storePath), needsReboot: false };
    },
    async activate(msLeft) {
      const units = await refuseUnsuited();
      const limits = { kind: "activation", limitMs: msLeft() } as const;
      if (mode !== "test") await setProfile(ports, profile, { id: target.id }, limits);
      await tryUnits(ports, units, mode === "test" ? target.id : undefined);
      await restartUnits(ports, unitsNotFrom(units, target.id));
      return { needsBoot: false };
    },
    mark: async () => (await readAgentPart(ports, statusFile))?.lastHeartbeat ?? "",
    async missing(running, mark) {
      const { missing, agentPid } = await watch((unit) =>
        runsFrom(unit, running.id) ? undefined : `runs ${unit.program ?? "nothing"}, not ${running.id}`,
      );
      if (missing !== undefined || mark === undefined) return missing;
      const agent = await readAgentPart(ports, statusFile);
      const hasReached =
        agent?.pid === agentPid && agent?.version === running.version && (agent.lastHeartbeat ?? mark) !== mark;
      return hasReached ? undefined : notHeardFrom(agent);
    },
    async commit(held) {
      if (mode !== "test") await setProfile(ports, updaterProfile, held, { kind: "activation", limitMs: 60_000 });
    },
    async rollBack(to, msLeft) {
      const units = await readUnits(ports);
      await setProfile(ports, profile, to.lasting ?? to, { kind: "rollback", limitMs: msLeft() });
      await tryUnits(ports, units, to.lasting && to.id);
      await restartUnits(ports, unitsNotFrom(units, to.id));
      return { needsBoot: false };
    },
  };
}

/** The daemons, if deploy_node has made them follow the profile. @throws UpdateFailure if not */
async function deployedUnits(ports: Ports): Promise<readonly Unit[]> {
  const units = await readUnits(ports);
  const stuck = units.find(
    ({ start }) => !start.startsWith(`${profile}/`) && !/^\/nix\/store\/[^/]+\/bin\//.test(start),
  );
  const isDeployed = units.some(({ name }) => name === agentUnit) && (await readProfile(ports, profile)) !== undefined;
  if (isDeployed && !stuck) return units;
  throw new UpdateFailure(
    "refused",
    `${stuck ? `${stuck.name} does not follow` : "kcore's daemons are not started from"} the profile ${profile}; on the bastion: kcore orchestrate deploy_node NODE`,
  );
}

function unitsNotFrom(units: readonly Unit[], id: string): readonly string[] {
  return units.filter((unit) => !runsFrom(unit, id)).map(({ name }) => name);
}

function refuseForeign({ arch, storePath }: Bundle, own: string): void {
  if (arch !== own) throw new UpdateFailure("refused", `${storePath} is for ${arch}, and this node is ${own}`);
}

/**
 * Refuses a boot for a runtime: no manifest may ask for one, but an operator's own orchestration can sign any
 * statement.
 */
function refuseBoot({ spec: { activation } }: UpdateStatement): void {
  const { mode, rebootPolicy } = activation;
  if (mode === "boot" || rebootPolicy === "always")
    throw new UpdateFailure(
      "refused",
      `kcore's runtime comes into use without a boot, and activation has mode ${mode}, rebootPolicy ${rebootPolicy}`,
    );
}

/** Refuses a runtime that cannot print its own version, so that no daemon starts from it. */
async function refuseBroken(ports: Ports, { storePath, version }: Bundle, limitMs: number): Promise<void> {
  const program = `${storePath}/bin/kcore-node`;
  const ended = await ports.run([program, "--version"], Math.min(limitMs, 60_000));
  if (ended.code !== 0) throw new UpdateFailure("build", `${program} --version ${describeEnd(ended)}`);
  if (ended.stdout.trim() !== `kcore ${version}`)
    throw new UpdateFailure(
      "build",
      `${program} says that it is “${ended.stdout.trim().slice(0, 100)}”, not kcore ${version}`,
    );
}
