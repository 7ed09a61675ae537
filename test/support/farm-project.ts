import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { NodeFarm } from "./node-farm.ts";

/** Writes a project whose roster is the farm, and a state for it: `kcore state apply fleet --on '*'`. */
export function writeFarmProject(folder: string, farm: NodeFarm, steps: number): void {
  const write = (name: string, text: string, mode = 0o644): void => {
    mkdirSync(dirname(join(folder, name)), { recursive: true, mode: 0o755 });
    writeFileSync(join(folder, name), text, { mode });
  };
  mkdirSync(join(folder, "orchestrate"), { recursive: true });
  write("farm-key", farm.privateKey, 0o600);
  write("roster/farm.yaml", farm.roster(join(folder, "farm-key")));
  const step = (_: unknown, index: number): string => `  - { id: step${index}, command.run: { cmd: "true" } }\n`;
  write("states/fleet.yaml", `steps:\n${Array.from({ length: steps }, step).join("")}`);
}
