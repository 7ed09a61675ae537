import type { Outcome, RunEvent, RunEventBody } from "#engine/events/event.ts";

export interface WideRun {
  readonly nodes: number;
  readonly steps: number;
  /** Every n-th node fails at two thirds of its steps; none unless given. */
  readonly failEvery?: number;
  /** Milliseconds between the starts of two nodes; 20 unless given. */
  readonly apart?: number;
  /** Whether all steps are in order, except every fourth, which is skipped. */
  readonly isInOrder?: boolean;
}

const stages = ["preflight", "disks", "nix", "kcore"] as const;
const start = Date.UTC(2026, 10, 21, 6, 15);

/** The events of an invented run over many nodes, ordered by time; the same events each time. */
export function wideRun({ nodes, steps, failEvery = 0, apart = 20, isInOrder = false }: WideRun): readonly RunEvent[] {
  const names = Array.from(
    { length: nodes },
    (_, index) => `n${String(index + 1).padStart(String(nodes).length, "0")}`,
  );
  const timed: { readonly at: number; readonly body: RunEventBody }[] = [];
  const add = (at: number, body: RunEventBody) => timed.push({ at, body });
  const numbers = Array.from({ length: steps }, (_, number) => number);
  const of = (stage: string) => (number: number) => stageOf(number, steps) === stage;
  add(0, {
    type: "run.started",
    runId: "20261121-061500-a1b2",
    title: "deploy_node",
    command: "kcore orchestrate deploy_node --on 'role:worker'",
    nodes: names,
    stages: stages.map((id) => ({ id, title: id, nodes: names, planned: numbers.filter(of(id)).length })),
    dryRun: false,
    revision: "3f2a91c0ffee3f2a91c0ffee3f2a91c0ffee3f2a",
    dirty: true,
    who: "op@bastion",
  });
  let end = 0;
  for (const [index, node] of names.entries()) {
    const failing = failEvery > 0 && index % failEvery === failEvery - 1;
    end = Math.max(end, addNode(add, { node, index, steps, failing, isInOrder, at: 100 + index * apart }));
  }
  for (const [index, stage] of stages.entries()) {
    add(50 + index, { type: "stage.started", stage });
    add(end + index, { type: "stage.finished", stage, outcome: failEvery > 0 && index > 1 ? "failed" : "ok" });
  }
  const outcome = failEvery > 0 ? "failed" : "done";
  add(end + 10, { type: "run.finished", outcome, exitCode: failEvery > 0 ? 1 : 0 });
  return timed
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, body }, index) => ({ seq: index + 1, at: start + at, ...body }));
}

/** The stage of a node's step with this number. */
function stageOf(number: number, steps: number): string {
  return stages[Math.floor((number * stages.length) / steps)] ?? "kcore";
}

interface WideNode {
  readonly node: string;
  readonly index: number;
  readonly steps: number;
  readonly failing: boolean;
  readonly isInOrder: boolean;
  readonly at: number;
}

/** Adds a node's events, and returns the time of the last. */
function addNode(
  add: (at: number, body: RunEventBody) => void,
  { node, index, steps, failing, isInOrder, at: begin }: WideNode,
): number {
  let at = begin;
  add(at, { type: "node.connecting", node, attempt: 1 });
  add((at += 40), { type: "node.connected", node, fingerprint: "SHA256:LKhJ9ESFtSfDHEPPx11JZc5LyuAmLr4ThQM3neLiUWM" });
  add(at, { type: "node.segment", node, exchange: 1, steps, bytes: 9000 });
  for (let number = 0; number < steps; number++) {
    const stage = stageOf(number, steps);
    const step = `${stage}/step ${number + 1}`;
    const names = { node, stage, step, title: `${stage} step ${number + 1}`, module: "file.managed" } as const;
    const fails = failing && number === Math.floor((steps * 2) / 3);
    const outcome: Outcome = fails
      ? "failed"
      : ((["ok", isInOrder ? "ok" : "changed", "ok", "skipped"] as const)[(index + number) % 4] ?? "ok");
    const duration = 20 + ((index * 37 + number * 101) % 400);
    add((at += 5), { type: "step.started", ...names });
    if (outcome !== "ok" && !isInOrder)
      add(at + duration / 2, { type: "step.output", node, step, stream: "out", text: `doing ${step}\nalmost there\n` });
    add((at += duration), {
      type: "step.finished",
      ...names,
      outcome,
      duration,
      position: { file: `states/${stage}.yaml`, line: 4 + number, column: 5, length: 12 },
      ...(outcome === "changed" && { changes: [{ name: "mode", have: "0600", want: "0644" }] }),
      ...(outcome === "changed" &&
        number % 8 === 1 && {
          diff: `--- /etc/x\n+++ /etc/x\n@@ -1,2 +1,2 @@\n same\n-old ${number}\n+new ${number}\n`,
        }),
      ...(outcome === "skipped" && { reason: "nothing it watches changed" }),
      ...(fails && {
        problem: {
          code: "STEP_FAILED",
          message: `“${names.title}” failed with exit code 1`,
          hint: "look at what it printed",
        },
      }),
    });
    if (fails) {
      add((at += 5), { type: "node.finished", node, outcome: "failed" });
      return at;
    }
  }
  add((at += 5), { type: "node.finished", node, outcome: "done" });
  return at;
}
