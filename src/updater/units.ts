import { UpdateFailure } from "./failure.ts";
import { describeEnd, must } from "./nix.ts";
import type { Ports } from "./ports.ts";

export const agentUnit = "kcore-node-agent.service";
const names = [agentUnit, "kcore-controller.service"];
const properties = ["Id", "LoadState", "ActiveState", "UnitFileState", "MainPID", "NRestarts", "ExecStart"];
const quickMs = 30_000;
const restartMs = 120_000;

/** A daemon of kcore on this node. */
export interface Unit {
  readonly name: string;
  readonly state: string;
  readonly pid: number;
  /** How often systemd has started it anew since somebody did. */
  readonly restarts: number;
  /** The command with which it is started. */
  readonly start: string;
  /** The program of its main process; undefined: there is none. */
  readonly program: string | undefined;
}

/** The agent, and the controller where it is meant to run. */
export async function lookAtUnits(ports: Ports): Promise<readonly Unit[]> {
  const shown = await must(ports, ["systemctl", "show", "-p", properties.join(","), "--", ...names], {
    kind: "service",
    limitMs: quickMs,
  });
  const units = shown.split(/\n\n+/).map((text) => new Map(text.split("\n").map(keyAndValue)));
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

export function runsFrom({ program }: Unit, id: string): boolean {
  return program?.startsWith(`${id}/`) === true;
}

/** Restarts them in one go. @throws UpdateFailure */
export async function restartUnits(ports: Ports, units: readonly string[]): Promise<void> {
  if (units.length === 0) return;
  const ended = await ports.run(["systemctl", "restart", "--", ...units], restartMs);
  if (ended.code === 0) return;
  const said = await Promise.all(units.map((unit) => tailOf(ports, unit)));
  throw new UpdateFailure(
    "service",
    `${units.join(", ")} could not be restarted: ${describeEnd(ended)}\n${said.join("\n")}`,
  );
}

/** The end of a unit's log, also of starts before the last one: `systemctl status` shows nothing between two starts. */
export async function tailOf(ports: Ports, unit: string): Promise<string> {
  const { stdout } = await ports.run(
    ["journalctl", "--quiet", "--no-pager", "-o", "cat", "-n", "10", "-u", unit],
    quickMs,
  );
  return stdout.trim();
}

const dropin = (unit: string): string => `/run/systemd/system/${unit}.d/kcore-update.conf`;

/**
 * Lets units start from a store path until the machine boots: /run is empty then, and they follow their profile as before.
 * undefined: they follow it from now on.
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
  // Where a power cut or a kill came between, what systemd has read differs from what lies there.
  if (!hasChanged)
    hasChanged = units.some(({ start }) =>
      id === undefined ? start.startsWith("/nix/store/") : !start.startsWith(`${id}/`),
    );
  if (hasChanged) await must(ports, ["systemctl", "daemon-reload"], { kind: "service", limitMs: quickMs });
}

/** What units start from that are only tried; undefined: they follow their profile. */
export async function triedPath(ports: Ports): Promise<string | undefined> {
  return /^ExecStart=(\/nix\/store\/[^/]+)\//m.exec((await ports.read(dropin(agentUnit))) ?? "")?.[1];
}
