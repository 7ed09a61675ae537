import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { NodeFarm } from "./node-farm.ts";

/** Writes a project whose roster is the farm, and a state of thirty steps for it: `kcore state apply fleet --on '*'`. */
export function writeFarmProject(folder: string, farm: NodeFarm, steps = 30): void {
  const write = (name: string, text: string, mode = 0o644) => {
    mkdirSync(dirname(join(folder, name)), { recursive: true, mode: 0o755 });
    writeFileSync(join(folder, name), text, { mode });
  };
  const key = join(folder, "farm-key");
  write("farm-key", farm.privateKey, 0o600);
  write("roster/farm.yaml", farm.roster(key));
  write("states/fleet.yaml", fleetState(steps));
  write(
    "orchestrate/roll_out.yaml",
    `description: The fleet in two stages
params:
  nodes: { type: target, required: true }
stages:
  - { id: prepare, on: "{{params.nodes}}", apply: [preflight_fleet] }
  - { id: fleet, on: "{{params.nodes}}", apply: [fleet] }
`,
  );
  write("states/preflight_fleet.yaml", fleetState(4, "check"));
}

/** Files, folders, commands and services in turn. */
function fleetState(steps: number, prefix = "fleet"): string {
  const kinds = [
    (name: string) => `file.managed: { path: /etc/${prefix}/${name}.conf, content: "${name}\\n", mode: "0644" }`,
    (name: string) => `directory.managed: { path: /var/lib/${prefix}/${name} }`,
    (name: string) => `package.installed: { names: [${name}] }`,
    (name: string) => `service.running: { name: ${name} }`,
    (name: string) => `command.run: { cmd: "make ${name}" }
    creates: /run/${prefix}-${name}`,
  ];
  const words = ["motd", "logs", "chrony", "agent", "index", "limits", "cache", "nftables", "exporter", "keys"];
  const lines = Array.from({ length: steps }, (_, index) => {
    const name = `${words[index % words.length] ?? "step"}${index < words.length ? "" : Math.floor(index / words.length) + 1}`;
    return `  - id: ${name}\n    ${kinds[index % kinds.length]?.(name) ?? ""}`;
  });
  return `description: ${steps} things that every machine of the fleet needs\nsteps:\n${lines.join("\n")}\n`;
}
