import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { startSshd } from "#support/sshd.ts";
import { median, privateOf, PseudoTerminal } from "./pseudo-terminal.ts";

/** 30 steps like those of the workload W (docs/performance.md), below a folder for each node. */
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

/** A converged run over many targets, with the live view and with `--output json`: the view's cost in time and memory. */
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
    let memory = 0;
    for (let round = 0; round <= rounds; round++)
      for (const view of round % 2 === 0 ? (["json", "ink"] as const) : (["ink", "json"] as const)) {
        const { took, most } = await time(project, view);
        memory = Math.max(memory, most);
        // The first round makes everything, and fills the caches.
        if (round > 0) times[view].push(took);
      }
    const [ink, json] = [median(times.ink), median(times.json)];
    return { nodes, rounds, ink, json, ratio: ink / json, memory };
  } finally {
    await sshd.stop();
  }
}

async function time(project: string, view: "ink" | "json"): Promise<{ readonly took: number; readonly most: number }> {
  const words = ["state", "apply", "workload", "--on", "t*", "--output", view];
  const terminal = new PseudoTerminal(project, words, view === "json" ? { redirect: ">/dev/null" } : {});
  let most = 0;
  if (view === "ink") {
    const pid = await terminal.view();
    const look = setInterval(() => (most = Math.max(most, privateOf(pid))), 100);
    await terminal.waitFor(/workload {2}done after/, 120_000).finally(() => clearInterval(look));
  }
  await terminal.end();
  return { took: performance.now() - terminal.started, most };
}
