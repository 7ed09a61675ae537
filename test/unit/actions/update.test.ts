import { tmpdir } from "node:os";
import { expect } from "chai";
import { updateBegin } from "#actions/update-begin.ts";
import { updateHook } from "#actions/update-hook.ts";
import { updateVerdict } from "#actions/update-verdict.ts";
import { updateWindow } from "#actions/update-window.ts";
import type { NodeEnd } from "#engine/orchestrate/action.ts";
import { weekdays } from "#rollout/spec.ts";
import { actionContext } from "#support/action-context.ts";
import { rejectionOf } from "#support/rejection.ts";
import { nodeEntry } from "#support/runs.ts";

const endsOf = (ends: Readonly<Record<string, NodeEnd>>) => new Map(Object.entries(ends));
const failedGate: NodeEnd = {
  outcome: "failed",
  problem: { code: "UPDATE_GATE_FAILED", message: "web" },
  stage: "hold",
};

describe("update.begin", () => {
  it("succeeds if fewer nodes are unreachable than maxUnavailable, and notes their names", async () => {
    const context = actionContext({ ended: endsOf({ n3: { outcome: "unreachable" } }) });
    expect(await updateBegin.run({ maxUnavailable: 2 }, context)).to.deep.equal({ changed: false, outputs: {} });
    expect(context.notes).to.deep.equal(["n3 cannot be reached: down, as far as is known"]);
    const [problem] = (await rejectionOf(updateBegin.run({ maxUnavailable: 1 }, context))).problems;
    expect(problem?.code).to.equal("UPDATE_UNAVAILABLE");
  });

  it("fails with the problem of each node that cannot take part", async () => {
    const problem = { code: "UPDATER_MISSING", message: "this node has no updater yet" } as const;
    const context = actionContext({ ended: endsOf({ n1: { outcome: "failed", problem } }) });
    expect((await rejectionOf(updateBegin.run({ maxUnavailable: 1 }, context))).problems[0]).to.deep.include({
      code: "UPDATE_REFUSED",
      detail: "n1: this node has no updater yet",
    });
  });
});

describe("update.verdict", () => {
  const goesBack = async (ends: Readonly<Record<string, NodeEnd>>, onGateFailure: boolean): Promise<unknown> => {
    const context = actionContext({ ended: endsOf(ends), warn: () => undefined });
    const { outputs } = await updateVerdict.run({ gates: ["gate"], onGateFailure }, context);
    return outputs["goesBack"];
  };

  it("rolls back, unless only gates failed and onGateFailure is off, or no node was reached", async () => {
    expect(await goesBack({ n1: failedGate }, false)).to.equal(false);
    expect(await goesBack({ n1: failedGate }, true)).to.equal(true);
    expect(await goesBack({ n1: { outcome: "failed", stage: "gate-2@3" } }, false)).to.equal(false);
    expect(await goesBack({ n1: failedGate, n2: { outcome: "failed", stage: "activate" } }, false)).to.equal(true);
    expect(await goesBack({ n1: { outcome: "done" } }, false)).to.equal(true);

    expect(await goesBack({ n1: { outcome: "unreachable" } }, true)).to.equal(false);
  });
});

describe("update.window", () => {
  it("continues at once in an open window; a dry run notes when a closed one opens", async () => {
    const always = { from: "00:00", to: "00:00" };
    const context = actionContext();
    expect(await updateWindow.run(always, context)).to.deep.equal({ changed: false, outputs: {} });
    const today = new Date().getUTCDay();
    const never = { days: [weekdays[(today + 3) % 7] ?? "sun"], from: "10:00", to: "10:01" };
    await updateWindow.plan(never, context);
    expect(context.notes).to.deep.equal(["would wait until 10:00 UTC"]);
  });
});

describe("update.hook", () => {
  const hook = (command: string, more: object = {}) => {
    const context = actionContext({ node: nodeEntry("n1"), project: tmpdir(), ...more });
    return updateHook.run(updateHook.args.parse({ command, within: 30 }), context);
  };

  it("runs a command on the bastion with the node's name and address, and reports its output", async () => {
    const lines: string[] = [];
    const output = (_: unknown, text: string): void => void lines.push(text);
    expect(await hook('echo "$KCORE_NODE at $KCORE_ADDRESS"', { output })).to.deep.equal({
      changed: true,
      outputs: {},
    });
    expect(lines.join("")).to.equal("n1 at n1.example\n");
  });

  it("fails with the command's exit code and the end of its output", async () => {
    const [problem] = (await rejectionOf(hook("echo no pods >&2; exit 3"))).problems;
    expect(problem).to.deep.include({ code: "LOCAL_COMMAND_FAILED", detail: "it exits with 3: no pods" });
  });
});
