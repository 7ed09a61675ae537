import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LabNode } from "#lab/lab.ts";
import type { ModuleDefinition, StepContext } from "#engine/step/define.ts";
import { contextOf, runStepOn, stepOf, type StepRun, type StepRunOptions } from "./steps.ts";

/** Modules, each with its arguments. */
export type Steps = readonly (readonly [module: ModuleDefinition, args: object])[];

/** One ssh connection for many commands and steps, since the emulated processor of a virtual machine takes seconds for a handshake. */
export class SharedLine {
  readonly #folder = mkdtempSync(join(tmpdir(), "kcore-line-"));
  readonly #ssh: readonly string[];

  constructor(node: LabNode) {
    const own = ["-o", "ControlMaster=auto", "-o", `ControlPath=${join(this.#folder, "line")}`];
    this.#ssh = [...own, "-o", "ControlPersist=120", ...node.sshArguments()];
  }

  /** The output of a command. @throws an Error with the output if the command fails */
  shell(command: string): string {
    const { status, stdout, stderr } = spawnSync("ssh", [...this.#ssh, command], {
      encoding: "utf8",
      timeout: 300_000,
    });
    if (status === 0) return stdout.trim();
    throw new Error(`${command}: ${status}\n${stdout}${stderr}`);
  }

  /** The node's shell for runStepOn. */
  get via(): string {
    return `ssh:ssh ${this.#ssh.join(" ")}`;
  }

  /** Runs a step, with a state folder on the node that outlives it, as in a run. */
  run(
    module: ModuleDefinition,
    args: object,
    { context = contextOf(), ...options }: StepRunOptions & { readonly context?: StepContext } = {},
  ): Promise<StepRun> {
    return runStepOn(this.via, stepOf(module, args, context), { stateDir: "/var/lib/kcore-test", ...options });
  }

  /** Runs steps. @throws an Error with the first step that has another outcome */
  async expectAll(steps: Steps, outcome: StepRun["outcome"]): Promise<void> {
    for (const [module, args] of steps) {
      const step = await this.run(module, args);
      if (step.outcome === outcome) continue;
      throw new Error(`${module.name} ended ${step.outcome}, not ${outcome}: ${JSON.stringify(step, undefined, 1)}`);
    }
  }

  /** Closes the connection. Needed before the machine goes down: an open connection would hang. */
  drop(): void {
    spawnSync("ssh", ["-O", "exit", ...this.#ssh], { stdio: "ignore" });
  }

  close(): void {
    this.drop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
