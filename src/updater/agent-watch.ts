import { UpdateFailure } from "./failure.ts";
import type { Ports } from "./ports.ts";
import { agentUnit, lookAtUnits, tailOf, type Unit } from "./units.ts";
import type { Missing } from "./way.ts";

/** A daemon that has run for so long has started. */
const steadyMs = 5_000;
/** Who is started anew so often by systemd does not come up. */
const hopeless = 3;

export interface AgentStatus {
  readonly pid?: number;
  readonly version?: string;
  readonly lastHeartbeat?: string;
  readonly error?: string;
}

/** What the agent tells of itself; it writes its file as a whole. */
export async function readAgent(ports: Ports, statusFile: string): Promise<AgentStatus | undefined> {
  try {
    return (JSON.parse((await ports.read(statusFile)) ?? "{}") as { agent?: AgentStatus }).agent;
  } catch {
    return undefined;
  }
}

export interface DaemonsFound {
  readonly missing?: Missing;
  readonly agentPid?: number;
}

/** What is missing until all daemons are up, are as they should be, and have been for a while. `fault`: why one is not the right one. */
export function watchDaemons(ports: Ports): (fault?: (unit: Unit) => string | undefined) => Promise<DaemonsFound> {
  let first: readonly Unit[] | undefined;
  let steady: { readonly pids: string; readonly since: number } | undefined;
  const service = (message: string, unit: string): DaemonsFound => ({
    missing: { kind: "service", message, detail: () => tailOf(ports, unit) },
  });
  return async (fault) => {
    let units: readonly Unit[];
    try {
      units = await lookAtUnits(ports);
    } catch (error) {
      // It may be about to start anew itself.
      if (error instanceof UpdateFailure) return service(error.message, agentUnit);
      throw error;
    }
    first ??= units;
    for (const unit of units) {
      const { name, state, restarts } = unit;
      const before = first.find((one) => one.name === name)?.restarts ?? 0;
      if (restarts - before >= hopeless)
        throw new UpdateFailure(
          "service",
          `${name} does not stay up: systemd started it ${restarts - before} times\n${await tailOf(ports, name)}`,
        );
      if (state !== "active") return service(`${name} is ${state}`, name);
      const wrong = fault?.(unit);
      if (wrong !== undefined) return service(`${name} ${wrong}`, name);
    }
    const pids = units.map(({ pid }) => pid).join(" ");
    if (steady?.pids !== pids) steady = { pids, since: ports.uptime() };
    if (ports.uptime() - steady.since < steadyMs) return service("its daemons have only just started", agentUnit);
    const agentPid = units.find(({ name }) => name === agentUnit)?.pid;
    return agentPid === undefined ? service(`there is no ${agentUnit}`, agentUnit) : { agentPid };
  };
}

/** What keeps a node from being one of its cluster. */
export function silent(agent: AgentStatus | undefined): Missing {
  return {
    kind: "unreachable",
    message: `the agent reached no controller: ${agent?.error ?? "it does not say why"}`,
  };
}
