import { UpdateFailure } from "./failure.ts";
import { describeEnd, runOrFail } from "./nix.ts";
import type { Ports } from "./ports.ts";
import type { MissingCondition } from "./strategy.ts";

export const agentUnit = "kcore-node-agent.service";
const names = [agentUnit, "kcore-controller.service"];
const properties = ["Id", "LoadState", "ActiveState", "UnitFileState", "MainPID", "NRestarts", "ExecStart"];
const quickMs = 30_000;
const restartMs = 120_000;

/** A daemon of kcore on this node, as systemd shows it. */
export interface Unit {
  readonly name: string;
  readonly state: string;
  readonly pid: number;
  /** The number of restarts by systemd itself. */
  readonly restarts: number;
  /** The command with which it is started. */
  readonly start: string;
  /** The program of its main process; undefined without a process. */
  readonly program: string | undefined;
}

/** The agent, and the controller on nodes where it is enabled or active. @throws UpdateFailure */
export async function readUnits(ports: Ports): Promise<readonly Unit[]> {
  const output = await runOrFail(ports, ["systemctl", "show", "-p", properties.join(","), "--", ...names], {
    kind: "service",
    limitMs: quickMs,
  });
  const units = output.split(/\n\n+/).map((text) => new Map(text.split("\n").map(keyAndValue)));
  const wanted = units.filter(isWanted);
  return Promise.all(
    wanted.map(async (unit) => {
      const pid = Number(unit.get("MainPID") ?? 0);
      return {
        name: unit.get("Id") ?? "",
        state: unit.get("ActiveState") ?? "",
        pid,
        restarts: Number(unit.get("NRestarts") ?? 0),
        start: /argv\[\]=(.*?) ;/.exec(unit.get("ExecStart") ?? "")?.[1] ?? "",
        program: pid === 0 ? undefined : await ports.readLink(`/proc/${pid}/exe`),
      };
    }),
  );
}

function keyAndValue(line: string): [string, string] {
  const at = line.indexOf("=");
  return [line.slice(0, at), line.slice(at + 1)];
}

function isWanted(unit: ReadonlyMap<string, string>): boolean {
  if (unit.get("LoadState") !== "loaded") return false;
  if (unit.get("Id") === agentUnit) return true;
  return unit.get("UnitFileState")?.startsWith("enabled") === true || unit.get("ActiveState") === "active";
}

/** Whether the unit's program is from the store path `id`. */
export function runsFrom({ program }: Unit, id: string): boolean {
  return program?.startsWith(`${id}/`) === true;
}

/** Restarts the units together. @throws UpdateFailure */
export async function restartUnits(ports: Ports, units: readonly string[]): Promise<void> {
  if (units.length === 0) return;
  const ended = await ports.run(["systemctl", "restart", "--", ...units], restartMs);
  if (ended.code === 0) return;
  const logs = await Promise.all(units.map((unit) => tailOf(ports, unit)));
  throw new UpdateFailure(
    "service",
    `${units.join(", ")} could not be restarted: ${describeEnd(ended)}\n${logs.join("\n")}`,
  );
}

/** The end of a unit's log, earlier starts included: `systemctl status` shows nothing between two starts. */
async function tailOf(ports: Ports, unit: string): Promise<string> {
  const { stdout } = await ports.run(
    ["journalctl", "--quiet", "--no-pager", "-o", "cat", "-n", "10", "-u", unit],
    quickMs,
  );
  return stdout.trim();
}

const dropin = (unit: string): string => `/run/systemd/system/${unit}.d/kcore-update.conf`;

/**
 * Makes units start from the store path `id` until the next boot, which empties /run; without `id`, from their profile
 * again.
 */
export async function tryUnits(ports: Ports, units: readonly Unit[], id: string | undefined): Promise<void> {
  let hasChanged = false;
  for (const { name, start } of units) {
    const [, ...words] = start.split(" ");
    const wanted =
      id === undefined
        ? undefined
        : `[Service]\nExecStart=\nExecStart=${[`${id}/bin/kcore-node`, ...words].join(" ")}\n`;
    if ((await ports.read(dropin(name))) === wanted) continue;
    await (wanted === undefined ? ports.remove(dropin(name)) : ports.replace(dropin(name), wanted));
    hasChanged = true;
  }
  // An earlier updater may have been killed before its daemon-reload: systemd then uses an older drop-in.
  if (!hasChanged)
    hasChanged = units.some(({ start }) =>
      id === undefined ? start.startsWith("/nix/store/") : !start.startsWith(`${id}/`),
    );
  if (hasChanged) await runOrFail(ports, ["systemctl", "daemon-reload"], { kind: "service", limitMs: quickMs });
}

/** The store path from which units on trial start; undefined: the units start from their profile. */
export async function triedPath(ports: Ports): Promise<string | undefined> {
  return /^ExecStart=(\/nix\/store\/[^/]+)\//m.exec((await ports.read(dropin(agentUnit))) ?? "")?.[1];
}

/** Daemons that have run for this long count as steady. */
const steadyMs = 5_000;
/** A unit that systemd has restarted this many times counts as failed. */
const mostRestarts = 3;

/** The fields that the updater reads of the agent's part of status.json. */
export interface AgentPart {
  readonly pid?: number;
  readonly version?: string;
  readonly lastHeartbeat?: string;
  readonly error?: string;
  /** The controller that answered last. */
  readonly controller?: string;
}

/** Reads the agent's part of status.json; undefined if it is missing or no JSON. */
export async function readAgentPart(ports: Ports, statusFile: string): Promise<AgentPart | undefined> {
  try {
    return (JSON.parse((await ports.read(statusFile)) ?? "{}") as { agent?: AgentPart }).agent;
  } catch {
    return undefined;
  }
}

/** The first condition that does not hold, or else the agent's process. */
interface DaemonsFound {
  readonly missing?: MissingCondition;
  readonly agentPid?: number;
}

/**
 * Returns a check that the daemons are up and steady, and none of them is restarted again and again. `wrongProgram`
 * returns the reason why a unit runs the wrong program. @throws UpdateFailure for a unit that systemd has restarted 3 times
 */
export function watchDaemons(
  ports: Ports,
): (wrongProgram?: (unit: Unit) => string | undefined) => Promise<DaemonsFound> {
  let first: readonly Unit[] | undefined;
  let steady: { readonly pids: string; readonly since: number } | undefined;
  const service = (message: string, unit: string): DaemonsFound => ({
    missing: { kind: "service", message, detail: () => tailOf(ports, unit) },
  });
  return async (wrongProgram) => {
    let units: readonly Unit[];
    try {
      units = await readUnits(ports);
    } catch (error) {
      // systemd may be about to restart itself.
      if (error instanceof UpdateFailure) return service(error.message, agentUnit);
      throw error;
    }
    first ??= units;
    for (const unit of units) {
      const { name, state, restarts } = unit;
      const before = first.find((other) => other.name === name)?.restarts ?? 0;
      if (restarts - before >= mostRestarts)
        throw new UpdateFailure(
          "service",
          `${name} does not stay up: systemd started it ${restarts - before} times\n${await tailOf(ports, name)}`,
        );
      if (state !== "active") return service(`${name} is ${state}`, name);
      const wrong = wrongProgram?.(unit);
      if (wrong !== undefined) return service(`${name} ${wrong}`, name);
    }
    const pids = units.map(({ pid }) => pid).join(" ");
    if (steady?.pids !== pids) steady = { pids, since: ports.uptime() };
    if (ports.uptime() - steady.since < steadyMs) return service("its daemons have only just started", agentUnit);
    const agentPid = units.find(({ name }) => name === agentUnit)?.pid;
    return agentPid === undefined ? service(`there is no ${agentUnit}`, agentUnit) : { agentPid };
  };
}

/** The condition that the agent has reached a controller. */
export function notHeardFrom(agent: AgentPart | undefined): MissingCondition {
  return {
    kind: "unreachable",
    message: `the agent reached no controller: ${agent?.error ?? "it does not say why"}`,
  };
}
