import { join } from "node:path";
import { writeFileSync } from "node:fs";
import { measure, median, type Command } from "./measure.ts";
import { contenderOf, round } from "./rounds.ts";
import { kcoreCommand, placesOf, renew, sshOptions, type Scene } from "./scene.ts";

// The answer is not part of the command, since views show the command.
/** One command on all nodes by `kcore exec` and by parallel-ssh, in turn; each has to bring every node's answer. */
export async function timeExec(scene: Scene, rounds: number) {
  const { nodes, targets } = scene;
  const contender = contenderOf("kcore", scene);
  contender.reset();
  const [folder] = placesOf(scene, "kcore");
  const [peer, base] = placesOf(scene, "pssh");
  renew(peer, base, scene, { known_hosts: `target ${targets.hostKey}\n` });
  writeFileSync(join(peer, "hosts"), nodes.map(({ address, port }) => `${address}:${port}\n`).join(""));
  const options = [...sshOptions(targets, peer), "-o", "KexAlgorithms=curve25519-sha256"].join(" ");
  const commands = {
    kcore: kcoreCommand(folder, ["exec", "--on", "*", "--", "printf", "%s%s\\n", "ans", "wer"]),
    pssh: {
      words: [
        ..."/usr/bin/parallel-ssh -i -l root -t 60 -p".split(" "),
        String(nodes.length),
        "-h",
        join(peer, "hosts"),
        "-x",
        options,
        "printf '%s%s\\n' ans wer",
      ],
      cwd: peer,
    },
  } satisfies Record<string, Command>;
  const times = { kcore: [] as number[], pssh: [] as number[] };
  // The first round is not counted: kcore meets the nodes, and the machine the programs.
  for (let turn = 0; turn <= rounds; turn++)
    for (const name of turn % 2 === 0 ? (["kcore", "pssh"] as const) : (["pssh", "kcore"] as const)) {
      await targets.quiet();
      const { seconds, stdout } = await measure(commands[name]);
      const answers = stdout.match(/\banswer$/gm)?.length ?? 0;
      if (answers !== nodes.length)
        throw new Error(`${name}: ${answers} of ${nodes.length} nodes answered\n${stdout.slice(0, 2000)}`);
      if (turn > 0) times[name].push(seconds);
    }
  return { nodes: nodes.length, kcore: round(median(times.kcore)), pssh: round(median(times.pssh)) };
}
