import { existsSync } from "node:fs";
import { join } from "node:path";
import { strategies } from "./ansible.ts";

/** The program in the folders of PATH, or else its name, which is no file. */
const onPath = (program: string) =>
  (process.env["PATH"] ?? "")
    .split(":")
    .map((folder) => join(folder, program))
    .find(existsSync) ?? program;

const ansible = [
  ["/usr/bin/ansible-playbook", "apt-get install ansible-core"],
  ["/usr/lib/python3/dist-packages/apt", "apt-get install python3-apt"],
] as const;

/** The files that each peer needs, with the command that brings them. */
const needs = {
  ansible,
  mitogen: [...ansible, [strategies, "apt-get install ansible-mitogen"]],
  pyinfra: [[onPath("pyinfra"), "pip install pyinfra"]],
  pssh: [["/usr/bin/parallel-ssh", "apt-get install pssh"]],
} as const;

/** Whether this machine has all that the peer needs; tells a peer that has to be left out. */
export function isThere(peer: keyof typeof needs): boolean {
  const missing = needs[peer].filter(([path]) => !existsSync(path)).map(([, command]) => command);
  if (missing.length > 0) process.stderr.write(`not run: ${peer}; ${missing.join("; ")}\n`);
  return missing.length === 0;
}
