import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import { recordedRun } from "./recorded-runs.ts";

/** The events of runs with every possible end. */
export const endedRuns: Readonly<Record<string, readonly RunEvent[]>> = {
  done: recordedRun("done"),
  "three nodes deployed": recordedRun("deploy-three"),
  "failed, and a node unreachable": recordedRun("failed"),
  "interrupted, and a node not started": recordedRun("questions"),
  "a dry run": recordedRun("dry-run"),
  "a dry run that fails": recordedRun("dry-run-refused"),
  resumed: recordedRun("resumed"),
  unreachable: ended("unreachable", 3, (node) => [
    { type: "node.connecting", node, attempt: 1 },
    nodeEnd(node, "unreachable", { code: "HOST_UNREACHABLE", message: `${node} does not answer within 10 s` }),
  ]),
  "a node's disk full": ended("failed", 1, (node) => [
    { type: "node.connecting", node, attempt: 1 },
    { type: "node.connected", node, fingerprint: "SHA256:abc" },
    ...step(node),
    nodeEnd(node, "failed", { code: "STATE_UNUSABLE", message: `cannot write to /var/lib/kcore on ${node}` }),
  ]),
  "the bastion's disk full": cut(recordedRun("done"), 14, {
    type: "run.finished",
    outcome: "failed",
    exitCode: 1,
    problem: { code: "RUN_RECORD_UNWRITABLE", message: "the bastion's disk is full, so the run stopped" },
  }),
  died: cut(recordedRun("done"), 14),
};

function cut(events: readonly RunEvent[], count: number, end?: RunEventBody): readonly RunEvent[] {
  const kept = events.slice(0, count);
  const { seq = 0, at = 0 } = kept.at(-1) ?? {};
  return end ? [...kept, { seq: seq + 1, at: at + 250, ...end }] : kept;
}

/** A run over two nodes: `n1` succeeds, `n2` ends as given. */
function ended(
  outcome: "failed" | "unreachable",
  exitCode: number,
  other: (node: string) => readonly RunEventBody[],
): readonly RunEvent[] {
  const nodes = ["n1", "n2"];
  const bodies: readonly RunEventBody[] = [
    {
      type: "run.started",
      runId: "20261121-061500-a1b2",
      title: "web",
      command: "kcore state apply web --on 'n*'",
      nodes,
      stages: [{ id: "web", title: "Web", nodes }],
      dryRun: false,
      who: "ops@bastion",
    },
    { type: "node.connecting", node: "n1", attempt: 1 },
    { type: "node.connected", node: "n1", fingerprint: "SHA256:def" },
    ...step("n1"),
    nodeEnd("n1", "done"),
    ...other("n2"),
    { type: "run.finished", outcome, exitCode },
  ];
  return bodies.map((body, index) => ({ seq: index + 1, at: 1_795_240_000_000 + index * 300, ...body }));
}

function step(node: string): readonly RunEventBody[] {
  const named = { node, stage: "web", step: "web/config", title: "config", module: "file.managed" };
  return [
    { type: "step.started", ...named },
    { type: "step.finished", ...named, outcome: "changed", duration: 300 },
  ];
}

function nodeEnd(
  node: string,
  outcome: "done" | "failed" | "unreachable",
  problem?: Extract<RunEventBody, { type: "node.finished" }>["problem"],
): RunEventBody {
  return { type: "node.finished", node, outcome, ...(problem && { problem }) };
}
