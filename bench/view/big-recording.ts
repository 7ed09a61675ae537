import { mkdir, writeFile } from "node:fs/promises";
import type { RunEventBody } from "#engine/events/event.ts";
import { runFolder, type RunHeader } from "#engine/run/run-folder.ts";

export interface BigRun {
  readonly project: string;
  readonly id: string;
  readonly nodes: number;
  readonly steps: number;
  /** Milliseconds from its first to its last event. */
  readonly length: number;
}

/** Writes the record of a run as large as wanted: every node works all the time, some fail, all print a little. */
export async function recordBigRun({ project, id, nodes, steps, length }: BigRun): Promise<number> {
  const names = Array.from({ length: nodes }, (_, index) => `node-${String(index + 1).padStart(4, "0")}`);
  const start = Date.UTC(2026, 10, 21, 6);
  const timed: { readonly at: number; readonly body: RunEventBody }[] = [];
  const add = (at: number, body: RunEventBody) => timed.push({ at: start + Math.round(at), body });
  const stages = ["preflight", "disks", "nix", "kcore", "services"].map((id) => ({ id, title: id, nodes: names }));
  const command = "kcore orchestrate deploy_node --on '*'";
  const who = "ops@bastion";
  add(0, { type: "run.started", runId: id, title: "deploy_node", command, nodes: names, stages, dryRun: false, who });
  for (const { id: stage } of stages) add(1, { type: "stage.started", stage });
  const each = (length - 1000) / steps;
  for (const [index, node] of names.entries()) {
    const fails = index % 97 === 5 ? steps >> 1 : -1;
    // Not all at the same moment.
    const shift = ((index * 7919) % 1000) / 1000;
    add(shift * 500, { type: "node.connecting", node, attempt: 1 });
    add(shift * 500 + 50, {
      type: "node.connected",
      node,
      fingerprint: "SHA256:LKhJ9ESFtSfDHEPPx11JZc5LyuAmLr4ThQM3neLiUWM",
    });
    let end = 0;
    for (let step = 0; step < steps; step++) {
      const at = 500 + (step + shift) * each * 0.95;
      const stage = stages[Math.floor((step * stages.length) / steps)]?.id ?? "";
      const common = { node, stage, step: `${stage}/s${step}`, title: `step number ${step}`, module: "file.managed" };
      add(at, { type: "step.started", ...common });
      if (step % 5 === 0)
        add(at + each * 0.3, {
          type: "step.output",
          node,
          step: common.step,
          stream: "out",
          text: `working on ${step}\n`,
        });
      const outcome = step === fails ? "failed" : step % 3 === 0 ? "changed" : "ok";
      const changes = outcome === "changed" ? [{ name: "mode", have: "0600", want: "0644" }] : [];
      const finished = {
        type: "step.finished",
        ...common,
        outcome,
        changes,
        duration: Math.round(each * 0.9),
      } as const;
      const problem = { code: "STEP_FAILED", message: "the command ended with exit code 1" } as const;
      end = at + each * 0.9;
      add(end, outcome === "failed" ? { ...finished, problem } : finished);
      if (step === fails) break;
    }
    add(end + 5, { type: "node.finished", node, outcome: fails < 0 ? "done" : "failed" });
  }
  for (const { id: stage } of stages) add(length - 50, { type: "stage.finished", stage, outcome: "ok" });
  add(length, { type: "run.finished", outcome: "failed", exitCode: 1 });
  timed.sort((a, b) => a.at - b.at);
  const folder = runFolder(project, id);
  await mkdir(folder.path, { recursive: true, mode: 0o700 });
  const lines = timed.map(({ at, body }, index) => `${JSON.stringify({ seq: index + 1, at, ...body })}\n`);
  await writeFile(folder.events, lines.join(""), { mode: 0o600 });
  await writeFile(folder.header, JSON.stringify(headerOf(id, command, start)), { mode: 0o600 });
  return timed.length;
}

function headerOf(id: string, command: string, created: number): RunHeader {
  return {
    version: 1,
    id,
    nonce: "0".repeat(32),
    who: "ops@bastion",
    created,
    attended: false,
    request: {
      what: { kind: "orchestration", name: "deploy_node" },
      params: {},
      dryRun: false,
      grants: [],
      skipHealth: false,
      waitForLock: false,
      yes: false,
      command,
    },
  };
}
