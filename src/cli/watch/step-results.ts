import type { RunEvent } from "#engine/events/event.ts";
import type { RunModel, StepModel } from "#engine/events/run-model.ts";
import type { Problem } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";

/** The result of a command on one node, as `-o json` prints it. */
export interface NodeResult {
  readonly node: string;
  readonly outcome: string;
  readonly stdout: string;
  readonly stderr: string;
  /** The command's exit code; absent if the command did not run to its end. */
  readonly exitCode?: number;
  readonly problem?: Problem;
}

/** Collects the whole output of a run's only step, node by node. `take` gets each event, `results` the model at the end. */
export function collectSteps(): {
  readonly take: (event: RunEvent) => void;
  readonly results: (model: RunModel) => readonly NodeResult[];
} {
  const outputs = new Map<string, { out: string; err: string }>();
  return {
    take: (event) => {
      if (event.type !== "step.output") return;
      const texts = outputs.get(event.node) ?? { out: "", err: "" };
      texts[event.stream] += event.text;
      outputs.set(event.node, texts);
    },
    results: (model) =>
      [...model.nodes.values()].map(({ name, outcome = "interrupted", problem, steps }) => {
        const { out = "", err = "" } = outputs.get(name) ?? {};
        const cause = steps.find((step) => step.problem)?.problem ?? problem;
        const exitCode = exitCodeOf(steps[0]);
        return {
          node: name,
          outcome,
          stdout: out,
          stderr: err,
          ...omitUndefined({ exitCode }),
          ...(cause ? { problem: cause } : {}),
        };
      }),
  };
}

function exitCodeOf(step: StepModel | undefined): number | undefined {
  return step?.outcome === "changed" ? 0 : step?.exitStatus;
}

/** Writes to stderr why a node waits, for commands without a view of their run. */
export function tellWait(event: RunEvent): void {
  if (event.type === "node.waiting") process.stderr.write(`${event.node}: ${event.reason}\n`);
}
