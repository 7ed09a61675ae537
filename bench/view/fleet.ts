import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startSshd } from "#support/sshd.ts";
import { median, PseudoTerminal } from "./pseudo-terminal.ts";

/** The workload W of 30 steps: 10 directories, 14 files, 4 links, 2 guarded commands; below a folder for each node. */
function workload(base: string): string {
  const here = `${base}/{{node.name}}`;
  const count = (length: number) => Array.from({ length }, (_, index) => index);
  const steps = [
    ...count(10).map((at) => `id: dir ${at}\n    directory.managed: { path: "${here}/d${at}", mode: "0750" }`),
    ...count(14).map(
      (at) =>
        `id: file ${at}\n    file.managed: { path: "${here}/d${at % 10}/f${at}", content: "{{node.name}} ${"x".repeat(1024 + 200 * at)}\\n", mode: "0640" }`,
    ),
    ...count(4).map(
      (at) => `id: link ${at}\n    symlink.managed: { path: "${here}/l${at}", target: "${here}/d${at}" }`,
    ),
    ...count(2).map(
      (at) => `id: once ${at}\n    creates: "${here}/done${at}"\n    command.run: { cmd: "touch ${here}/done${at}" }`,
    ),
  ];
  return `steps:\n${steps.map((step) => `  - ${step}\n`).join("")}`;
}

/** A converged run over many targets, with the live view and with `--output json`: what the view costs the run. */
export async function measureFleet(
  project: string,
  base: string,
  { nodes = Number(process.env["TARGETS"] ?? 200), rounds = 3 } = {},
) {
  const sshd = await startSshd({ config: ["MaxStartups 2000", "MaxSessions 100"] });
  try {
    const names = Array.from({ length: nodes }, (_, index) => `t${index + 1}`);
    const { port, identityFile, hostKey } = sshd;
    const entries = names.map(
      (name) =>
        `  ${name}: { address: 127.0.0.1, port: ${port}, identityFile: "${identityFile}", hostKeys: ["${hostKey}"], stateDir: "${base}/state/${name}" }\n`,
    );
    await mkdir(join(base, "state"), { recursive: true, mode: 0o700 });
    for (const name of names) await mkdir(join(base, "state", name), { mode: 0o700 });
    await writeFile(join(project, "roster/fleet.yaml"), `nodes:\n${entries.join("")}`);
    await writeFile(join(project, "states/workload.yaml"), workload(base));
    const times: Record<"ink" | "json", number[]> = { ink: [], json: [] };
    for (let round = 0; round <= rounds; round++)
      for (const view of round % 2 === 0 ? (["json", "ink"] as const) : (["ink", "json"] as const)) {
        const took = await time(project, view);
        // The first round makes everything, and fills the caches.
        if (round > 0) times[view].push(took);
      }
    const [ink, json] = [median(times.ink), median(times.json)];
    return { nodes, rounds, ink, json, ratio: ink / json, all: times };
  } finally {
    await sshd.stop();
  }
}

async function time(project: string, view: "ink" | "json"): Promise<number> {
  const words = ["state", "apply", "workload", "--on", "t*", "--output", view];
  const terminal = new PseudoTerminal(project, words, view === "json" ? { redirect: ">/dev/null" } : {});
  await terminal.end();
  if (view === "ink" && !/Failed: +0\r?\n-{32}/.test(terminal.text)) throw new Error(terminal.text.slice(-3000));
  return performance.now() - terminal.started;
}
