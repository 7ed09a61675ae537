import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { makeCpuGroup } from "#support/cpu-group.ts";

/**
 * The properties of the machine that figures depend on, without any name of it. The load shows other work at the time.
 */
export async function describeMachine(): Promise<string> {
  const system = /^PRETTY_NAME="(.*)"$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "Linux";
  const ssh = /^[^,]+/.exec(spawnSync("ssh", ["-V"], { encoding: "utf8" }).stderr)?.[0] ?? "OpenSSH";
  const node = execFileSync(process.execPath, ["--version"], { encoding: "utf8" }).trim();
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`;
  const model = cpus()[0]?.model.trim() ?? "";
  const group = makeCpuGroup();
  await group?.remove();
  const counted = group === undefined ? "in ticks of 10 ms, by process" : "in µs, by cgroup";
  return `${cpus().length} CPUs (${model}), ${memory}, both ends on it; ${system}, ${ssh}, Node ${node}, CPU counted ${counted}, load ${loadavg()[0]?.toFixed(1)} at the start`;
}
