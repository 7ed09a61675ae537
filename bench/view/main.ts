import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { measureFleet } from "./fleet.ts";
import { median } from "./pseudo-terminal.ts";
import { measureReplay } from "./replay.ts";
import { measureStartUp } from "./start-up.ts";
import { measureWeb } from "./web.ts";

/**
 * The cost of the live view: `npm run bench:view [startup] [replay] [web] [fleet]`; all of them without arguments. All
 * but `web` measure the bundle in dist/, `fleet` with TARGETS (200) targets. Figures, goals and the machine's own pace
 * (`node -e 0`) go to the screen.
 */
const wanted = process.argv.slice(2);
const wants = (name: string) => wanted.length === 0 || wanted.includes(name);
const base = mkdtempSync(join(tmpdir(), "kcore-bench-"));
const project = join(base, "project");
for (const folder of ["roster", "orchestrate", "states"]) mkdirSync(join(project, folder), { recursive: true });
mkdirSync(join(base, "here"), { mode: 0o700 });
writeFileSync(
  join(project, "roster/here.yaml"),
  `nodes:\n  here: { address: 127.0.0.1, transport: local, stateDir: "${base}/here" }\n`,
);
writeFileSync(join(project, "states/nothing.yaml"), `steps:\n  - id: rest\n    command.run: { cmd: "sleep 0.3" }\n`);

function tell(what: string, figure: string, goal?: { readonly met: boolean; readonly text: string }): void {
  const line = `${what.padEnd(58)}${figure.padStart(10)}${goal ? `   goal ${goal.text}: ${goal.met ? "met" : "MISSED"}` : ""}`;
  process.stdout.write(`${line}\n`);
}
const milliseconds = (value: number) => `${value.toFixed(0)} ms`;
const mebibytes = (value: number) => `${value.toFixed(0)} MiB`;
const atMost = (value: number, limit: number, text: string) => ({ met: value <= limit, text: `≤ ${text}` });

/** The start of Node alone, here and now: other load on the machine shows in it. */
function bareNode(): number {
  const times = Array.from({ length: 7 }, () => {
    const from = performance.now();
    execFileSync(process.execPath, ["-e", "0"]);
    return performance.now() - from;
  });
  return median(times);
}

try {
  tell(`node -e 0 (${cpus().length} CPUs, load ${loadavg()[0]?.toFixed(1)})`, milliseconds(bareNode()));
  if (wants("startup")) {
    const { median: middle, best, rounds, cpu } = await measureStartUp(project);
    tell(
      `start of the command to the first frame, median of ${rounds}`,
      milliseconds(middle),
      atMost(middle, 300, "300 ms"),
    );
    tell("  best", milliseconds(best));
    tell("  CPU that the view has used by then", milliseconds(cpu));
  }
  if (wants("replay")) {
    const { nodes, steps, seconds, events, share, keyMedian, keyWorst, peak } = await measureReplay(project);
    const what = `${nodes} nodes × ${steps} steps (${events} events) in ${seconds} s`;
    tell(`${what}: CPU of one core`, `${(share * 100).toFixed(1)} %`, atMost(share, 0.2, "20 %"));
    tell("  a key shows, median", milliseconds(keyMedian), atMost(keyMedian, 100, "100 ms"));
    tell("  a key shows, worst", milliseconds(keyWorst), atMost(keyWorst, 100, "100 ms"));
    tell("  memory at its peak", mebibytes(peak));
  }
  if (wants("web")) {
    const { nodes, steps, frames, median: middle, worst, rate, first, last } = await measureWeb(project);
    tell(`kcore web, ${nodes} nodes × ${steps} steps: a picture of ${frames.length}, median`, milliseconds(middle));
    tell("  worst", milliseconds(worst), atMost(worst, 50, "50 ms"));
    tell("  news for a page, for each second of the run", `${(rate / 1e6).toFixed(1)} MB`);
    tell("  a page opened when the run begins", milliseconds(first));
    tell("  a page opened at its end", milliseconds(last));
  }
  if (wants("fleet")) {
    const { nodes, rounds, ink, json, ratio, memory } = await measureFleet(project, join(base, "fleet"));
    tell(`${nodes} targets, 30 steps in order, --output json, median of ${rounds}`, milliseconds(json));
    tell("  the same with the live view", milliseconds(ink));
    tell("  ratio", ratio.toFixed(3), atMost(ratio, 1.05, "1.05"));
    tell("  memory of the view's own at its peak", mebibytes(memory), atMost(memory, 70, "70 MiB"));
  }
} finally {
  rmSync(base, { recursive: true, force: true });
}
