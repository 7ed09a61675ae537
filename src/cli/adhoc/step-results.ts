import type { RunEvent } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import type { Problem } from "#errors/problem.ts";

/** What one node gave, for scripts. */
export interface NodeResult {
  readonly node: string;
  readonly outcome: string;
  readonly stdout: string;
  readonly stderr: string;
  readonly problem?: Problem;
}

/** Collects what steps print, whole, while a run is followed. */
export function collectSteps(): {
  readonly take: (event: RunEvent) => void;
  readonly results: (model: RunModel) => readonly NodeResult[];
} {
  const printed = new Map<string, { out: string; err: string }>();
  return {
    take: (event) => {
      if (event.type !== "step.output") return;
      const texts = printed.get(event.node) ?? { out: "", err: "" };
      texts[event.stream] += event.text;
      printed.set(event.node, texts);
    },
    results: (model) =>
      [...model.nodes.values()].map(({ name, outcome = "interrupted", problem, steps }) => {
        const { out = "", err = "" } = printed.get(name) ?? {};
        const cause = steps.find((step) => step.problem)?.problem ?? problem;
        return { node: name, outcome, stdout: out, stderr: err, ...(cause ? { problem: cause } : {}) };
      }),
  };
}
