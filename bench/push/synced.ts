import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startTargets } from "#support/targets.ts";
import { measure, median, type Command } from "./measure.ts";
import { kcoreCommand, sshOptions } from "./scene.ts";

/**
 * The CPU of a node that gets a folder of 2,000 files of 1 to 4 KiB, by `directory.synced` and by `tar | ssh tar`, in turn. A second run of
 * the step has nothing to do. Run `node bench/push/synced.ts` as root, after `npm run build`.
 */
const rounds = 5;
const folder = mkdtempSync(join(tmpdir(), "kcore-synced-"));
const targets = await startTargets(1);
try {
  const source = join(folder, "project/site");
  for (let at = 0; at < 2_000; at++) {
    mkdirSync(join(source, `d${at % 40}`), { recursive: true });
    writeFileSync(join(source, `d${at % 40}/f${at}`), `${at}\n`.padEnd(1_024 * (1 + (at % 4)), "line of a file\n"));
  }
  const [address = ""] = targets.addresses;
  const files = {
    "project/roster/nodes.yaml": `nodes:
  t1: { address: ${address}, port: ${targets.port}, identityFile: "${targets.identityFile}", hostKeys: ["${targets.hostKey}"], stateDir: "${folder}/state" }
`,
    "project/states/site.yaml": `steps:\n  - { id: site, directory.synced: { path: "${folder}/out", source: site } }\n`,
    "project/orchestrate/README.md": "",
    known_hosts: `target ${targets.hostKey}\n`,
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const ssh = ["ssh", ...sshOptions(targets, folder), "-p", String(targets.port), `root@${address}`];
  const tar = `tar -C ${source} -cf - . | ${ssh.join(" ")} "mkdir ${folder}/out && tar -C ${folder}/out -xf -"`;
  const contenders: Readonly<Record<string, Command>> = {
    tar: { words: ["sh", "-c", tar], cwd: folder },
    kcore: kcoreCommand(folder, ["state", "apply", "site", "--on", "t1", "--output", "json"]),
  };
  const found = new Map<string, number[]>();
  const spend = async (name: string, command: Command): Promise<void> => {
    await targets.quiet();
    const before = targets.cpuSeconds();
    await measure(command);
    await targets.quiet();
    found.set(name, [...(found.get(name) ?? []), targets.cpuSeconds() - before]);
    execFileSync("diff", ["-r", source, join(folder, "out")]);
  };
  for (let round = 0; round < rounds; round++)
    for (const [name, command] of Object.entries(contenders)) {
      rmSync(join(folder, "out"), { recursive: true, force: true });
      await spend(name, command);
      if (name === "kcore") await spend("kcore, nothing to do", command);
    }
  const figure = (name: string): number => median(found.get(name) ?? []);
  for (const name of found.keys()) console.log(`${name}: ${(figure(name) * 1000).toFixed(0)} ms of the node's CPU`);
  console.log(`${(figure("kcore") / figure("tar")).toFixed(2)}×`);
} finally {
  await targets.stop();
  rmSync(folder, { recursive: true, force: true });
}
