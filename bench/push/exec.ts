import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { measure, median, type Command } from "./measure.ts";
import { isThere, parallelSsh } from "./peers.ts";
import type { ExecCell, ExecName } from "./results.ts";
import { contenderOf, round } from "./rounds.ts";
import { kcoreCommand, placesOf, renew, sshOptions, type Scene } from "./scene.ts";

// The answer is not part of the command, since views show the command.
const asked = ["/usr/bin/printf", "%s%s\\n", "ans", "wer"];

/**
 * One command on all nodes by `kcore exec`, by ssh processes and by parallel-ssh, in turn; each has to bring every
 * node's answer.
 */
export async function timeExec(scene: Scene, rounds: number): Promise<readonly ExecCell[]> {
  const { nodes, targets } = scene;
  const commands = commandsOf(scene);
  const names = (["kcore", "ssh", "pssh"] as const).filter((name) => name !== "pssh" || isThere(name));
  const samples = new Map(names.map((name) => [name, [] as { seconds: number; cpu: number; targets: number }[]]));
  // The first round is not counted: kcore meets the nodes, and the machine the programs.
  for (let turn = 0; turn <= rounds; turn++)
    for (const at of names.keys()) {
      const name = names[(at + turn) % names.length] ?? "kcore";
      await targets.quiet();
      const before = targets.cpuSeconds();
      const measured = await measure(commands[name]);
      await targets.quiet();
      const answers = measured.stdout.match(/\banswer$/gm)?.length ?? 0;
      if (answers !== nodes.length)
        throw new Error(`${name}: ${answers} of ${nodes.length} nodes answered\n${measured.stdout.slice(0, 2000)}`);
      if (turn > 0) samples.get(name)?.push({ ...measured, targets: targets.cpuSeconds() - before });
    }
  return [...samples].map(([contender, all]) => ({
    nodes: nodes.length,
    contender,
    seconds: round(median(all.map(({ seconds }) => seconds))),
    bastion: round(median(all.map(({ cpu }) => cpu))),
    targets: round(median(all.map((sample) => sample.targets))),
  }));
}

function commandsOf(scene: Scene): Readonly<Record<ExecName, Command>> {
  const { nodes, targets } = scene;
  contenderOf("kcore", scene).reset();
  const [peer, base] = placesOf(scene, "pssh");
  const options = [...sshOptions(targets, peer), "-o", "KexAlgorithms=curve25519-sha256"].join(" ");
  const command = asked.map((word) => `'${word}'`).join(" ");
  renew(peer, base, scene, { known_hosts: `target ${targets.hostKey}\n` });
  const hosts = nodes.map(({ address, port }) => `${address}:${port}\n`);
  const calls = nodes.map(({ address, port }) => `ssh -n ${options} -p ${port} root@${address} "${command}" &\n`);
  writeFileSync(join(peer, "hosts"), hosts.join(""));
  writeFileSync(join(peer, "all.sh"), `${calls.join("")}wait\n`);
  const flags = "-i -l root -t 60 -p".split(" ");
  return {
    kcore: kcoreCommand(placesOf(scene, "kcore")[0], ["exec", "--on", "*", "--", ...asked]),
    ssh: { words: ["sh", join(peer, "all.sh")], cwd: peer },
    pssh: {
      words: [parallelSsh, ...flags, String(nodes.length), "-h", join(peer, "hosts"), "-x", options, command],
      cwd: peer,
    },
  };
}
