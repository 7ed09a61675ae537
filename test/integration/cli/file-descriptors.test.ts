import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import { writeFarmProject } from "#support/farm-project.ts";
import { startFarm } from "#support/node-farm.ts";
import type { NodeFarm } from "#support/node-farm.ts";
import { kcoreEnvironment } from "#support/program.ts";

const launcher = join(import.meta.dirname, "../../../bin/kcore");
/** Promise F-30 names 500 nodes; `KCORE_FARM=500` tries as many. */
const nodeCount = Number(process.env["KCORE_FARM"] ?? "300");

describe("a bastion that allows few open files", () => {
  let farm: NodeFarm;
  let folder: string;

  before(async () => {
    farm = await startFarm(nodeCount, { pace: 300 });
    folder = realpathSync(mkdtempSync(join(tmpdir(), "kcore-files-")));
    mkdirSync(join(folder, "project"));
    writeFarmProject(join(folder, "project"), farm, 3);
    writeFileSync(
      join(folder, "project/orchestrate/twice.yaml"),
      `description: Every node twice, and something that all of them wait for in between
params:
  nodes: { type: target, required: true }
stages:
  - { id: first, on: "{{params.nodes}}", apply: [preflight_fleet] }
  - { id: between, run: local.command, command: ["true"] }
  - { id: second, on: "{{params.nodes}}", apply: [fleet] }
`,
    );
  });
  after(async () => {
    await farm.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Runs kcore with at most `files` open files a process. */
  const kcore = async (
    files: number,
    words: readonly string[],
  ): Promise<{ readonly code: number; readonly events: readonly RunEvent[]; readonly stderr: string }> => {
    const child = spawn("sh", ["-c", `ulimit -n ${files} && exec "$@"`, "sh", launcher, ...words, "--output", "json"], {
      cwd: join(folder, "project"),
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...kcoreEnvironment, KCORE_HOME: join(folder, "home") },
    });
    const closed = once(child, "close") as Promise<[number]>;
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
    const events = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as RunEvent);
    return { code, events, stderr };
  };
  const outcomesOf = (events: readonly RunEvent[]): Record<string, number> => {
    const counts: Record<string, number> = {};
    for (const event of events)
      if (event.type === "node.finished") counts[event.outcome] = (counts[event.outcome] ?? 0) + 1;
    return counts;
  };
  const warningsOf = (events: readonly RunEvent[]): string[] =>
    events.flatMap((event) => (event.type === "warning" ? [event.text] : []));

  it("F-30: a run over many nodes lowers its concurrency, warns once and succeeds", async () => {
    const { code, events, stderr } = await kcore(256, ["state", "apply", "fleet", "--on", "*", "--concurrency", "500"]);
    expect(outcomesOf(events), `${stderr}${JSON.stringify(events.slice(-2))}`).to.deep.equal({ done: nodeCount });
    expect(code).to.equal(0);
    expect(warningsOf(events)).to.have.length(1);
    expect(warningsOf(events)[0]).to.match(/ulimit -n/);
  });

  it("F-30: nodes that wait for each other between stages hold no more connections than allowed", async () => {
    const { code, events, stderr } = await kcore(256, ["orchestrate", "twice", "*"]);
    expect(outcomesOf(events), `${stderr}${JSON.stringify(events.slice(-2))}`).to.deep.equal({ done: nodeCount });
    expect(code).to.equal(0);
    expect(warningsOf(events)).to.have.length(1);
  });
});
