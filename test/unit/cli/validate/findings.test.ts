import { expect } from "chai";
import type { Problem } from "#errors/problem.ts";
import type { Outcome, RunEventBody } from "#engine/events/event.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { drawChecks } from "#cli/validate/draw-checks.ts";
import { drawFindings, findingsOf, type Finding } from "#cli/validate/findings.ts";
import { rowsOf } from "#cli/validate/check-rows.ts";
import { runStarted } from "#support/run-started.ts";

const nodes = ["n1", "n2", "n3"];
const stages = ["machine", "network"];

function modelOf(...events: readonly RunEventBody[]): ReturnType<typeof reduceEvents> {
  const all: readonly RunEventBody[] = [runStarted({ nodes, stages, dryRun: true }), ...events];
  return reduceEvents(all.map((event, at) => ({ seq: at + 1, at, ...event })));
}

function ended(
  [node, stage, title]: readonly [string, string, string],
  outcome: Outcome,
  more: { readonly problem?: Problem; readonly warning?: Problem } = {},
): RunEventBody {
  return {
    type: "step.finished",
    node,
    stage,
    step: `${stage}/${title}`,
    title,
    module: "fact.assert",
    outcome,
    ...more,
  };
}

const failing = (message: string, hint: string): Problem => ({ code: "ASSERTION_FAILED", message, hint });
const memory = failing("memory: 128 MiB, at least 512 MiB are needed", "give the machine more");
const unreachable: Problem = { code: "HOST_UNREACHABLE", message: "cannot reach n3", hint: "kcore ping --on n3" };

const model = modelOf(
  ended(["n1", "network", "ports"], "failed", { problem: failing("ports: no answer of n3", "open the port") }),
  ended(["n1", "machine", "memory"], "failed", { problem: memory }),
  ended(["n2", "machine", "memory"], "failed", { problem: memory }),
  ended(["n1", "machine", "time service"], "ok", { warning: failing("time service: none", "clock.synchronized") }),
  ended(["n2", "machine", "swap is off"], "skipped"),
  ended(["n2", "network", "ports"], "ok"),
  { type: "node.finished", node: "n1", outcome: "failed", problem: memory },
  { type: "node.finished", node: "n2", outcome: "failed", problem: memory },
  { type: "node.finished", node: "n3", outcome: "unreachable", problem: unreachable },
);

describe("the rows of kcore validate", () => {
  it("have every check in the order of the topics, with what was found, and nodes that could not be asked", () => {
    const rows = rowsOf(model).map(({ topic, check, node, result, found }) => [topic, check, node, result, found]);
    expect(rows).to.deep.equal([
      ["reach", "the node can be asked", "n3", "unreachable", "cannot reach n3"],
      ["machine", "memory", "n1", "failed", "128 MiB, at least 512 MiB are needed"],
      ["machine", "time service", "n1", "warning", "none"],
      ["machine", "memory", "n2", "failed", "128 MiB, at least 512 MiB are needed"],
      ["machine", "swap is off", "n2", "skipped", undefined],
      ["network", "ports", "n1", "failed", "no answer of n3"],
      ["network", "ports", "n2", "ok", undefined],
    ]);
  });

  it("are drawn once for nodes that are alike, with the remedy, and counted", () => {
    const text = drawChecks(rowsOf(model));
    expect(text).to.match(/^failed +machine +memory +n1, n2 +128 MiB, at least 512 MiB are needed$/m);
    expect(text).to.match(/^ok +network +ports +n2$/m);
    expect(text).to.contain("machine: memory  (n1, n2)\n  to mend it: give the machine more\n");
    expect(text).to.contain("\n7 checks: 1 ok, 1 to be warned of, 4 failed, 1 left out\n");
  });
});

describe("the findings of kcore doctor", () => {
  const own: Finding = { severity: "error", topic: "bastion", cause: "the certificate ended", nodes: [], evidence: [] };
  const note: Finding = { severity: "note", topic: "runs", cause: "this has changed", nodes: [], evidence: ["a"] };
  const findings = findingsOf(rowsOf(model), [note, own]);

  it("begin with what explains the rest, errors before warnings, warnings before notes", () =>
    expect(findings.map(({ severity, cause }) => `${severity} ${cause}`)).to.deep.equal([
      "error cannot reach n3",
      "error the certificate ended",
      "error memory: 128 MiB, at least 512 MiB are needed",
      "error ports: no answer of n3",
      "warning time service: none",
      "note this has changed",
    ]));

  it("are drawn with evidence and remedy", () => {
    const text = drawFindings(findings, 7);
    expect(text).to.contain("1. error: cannot reach n3  (n3)\n   to mend it: kcore ping --on n3\n");
    expect(text).to.contain("6. note: this has changed\n   | a\n");
    expect(text).to.match(/7 checks, 6 findings\n$/);
    expect(drawFindings([note], 7)).to.match(/7 checks, 1 finding: nothing that must be mended\n$/);
  });
});
