import { setTimeout as sleep } from "node:timers/promises";
import { text } from "node:stream/consumers";
import { conductRun, type PerformContext } from "#engine/run/conduct-run.ts";
import { readHeader, runFolder } from "#engine/run/run-folder.ts";
import type { ExitCode } from "#errors/problem.ts";

/**
 * A run's process with scripted nodes: `fake-run.ts SCENARIO ID PROJECT`. Everything but the nodes is real: the process, its session, the
 * record, the socket.
 */
const [scenario = "", id = "", project = ""] = process.argv.slice(2);
const { passphrase = "" } = JSON.parse(await text(process.stdin)) as { passphrase?: string };
const folder = runFolder(project, id);

function start({ emit, header, earlier }: PerformContext): void {
  const stages = [{ id: "main", title: "Main", nodes: ["n1"] }];
  const { id: runId, who } = header;
  const resumed = earlier.length > 0 && { resumed: true };
  const plan = { title: scenario, command: "fake", nodes: ["n1"], stages, dryRun: false };
  emit({ type: "run.started", runId, who, ...plan, ...resumed });
  emit({ type: "node.connecting", node: "n1", attempt: 1 });
  emit({ type: "node.connected", node: "n1", fingerprint: "SHA256:abc" });
}

function step({ emit }: PerformContext, name: string, output?: string): void {
  const common = { node: "n1", stage: "main", step: `main/${name}`, title: name, module: "command.run" } as const;
  emit({ type: "step.started", ...common });
  if (output !== undefined) emit({ type: "step.output", node: "n1", step: common.step, stream: "out", text: output });
  emit({ type: "step.finished", ...common, outcome: "changed", duration: 1 });
}

async function slowly(stage: PerformContext, steps: number): Promise<{ exitCode: ExitCode }> {
  start(stage);
  for (let count = 1; count <= steps && !stage.stop.aborted; count++) {
    step(stage, `step ${count}`);
    await sleep(25, undefined, { signal: stage.abort }).catch(() => undefined);
  }
  return { exitCode: stage.stop.aborted ? 130 : 0 };
}

const scenarios: Readonly<Record<string, (stage: PerformContext) => Promise<{ exitCode: ExitCode }>>> = {
  short: async (stage) => {
    start(stage);
    step(stage, "one", "hello\n");
    stage.emit({ type: "node.finished", node: "n1", outcome: "done" });
    return { exitCode: 0 };
  },
  slow: (stage) => slowly(stage, 40),
  endless: (stage) => slowly(stage, Infinity),
  ask: async (stage) => {
    start(stage);
    const answer = await stage.ask({ kind: "passphrase", text: "Passphrase", secret: true });
    step(stage, "use it", `it is ${answer} and ${Buffer.from(answer).toString("base64")}\n`);
    return { exitCode: 0 };
  },
  handed: async (stage) => {
    start(stage);
    step(stage, "handed", `handed over: ${passphrase.length} characters\n`);
    return { exitCode: 0 };
  },
  bug: async (stage) => {
    start(stage);
    throw new TypeError("cannot read what is not there");
  },
  resumed: async (stage) => {
    start(stage);
    step(stage, `after ${stage.earlier.length} events`);
    return { exitCode: 0 };
  },
  flood: async (stage) => {
    start(stage);
    for (let count = 0; count < 2000 && !stage.stop.aborted; count++) {
      step(stage, `step ${count}`, `${"x".repeat(1000)}\n`);
      // Within one turn of the event loop, so that no log of a node is written before the disk is full.
      await Promise.resolve();
    }
    return { exitCode: stage.stop.aborted ? 130 : 0 };
  },
};

const perform = scenarios[scenario];
if (!perform) throw new Error(`no scenario “${scenario}”`);
process.exitCode = await conductRun({
  folder,
  header: await readHeader(folder),
  perform,
  answerPatience: 5000,
  viewPatience: 2000,
});
