import { existsSync } from "node:fs";
import { strategies } from "./ansible.ts";

const ansible = [
  ["/usr/bin/ansible-playbook", "apt-get install ansible-core"],
  ["/usr/lib/python3/dist-packages/apt", "apt-get install python3-apt"],
] as const;

/** The files that each peer needs, with the command that brings them. */
const needs = {
  ansible,
  mitogen: [...ansible, [strategies, "apt-get install ansible-mitogen"]],
  pssh: [["/usr/bin/parallel-ssh", "apt-get install pssh"]],
} as const;

/** Whether this machine has all that the peer needs; tells a peer that has to be left out. */
export function isThere(peer: keyof typeof needs): boolean {
  const missing = needs[peer].filter(([path]) => !existsSync(path)).map(([, command]) => command);
  if (missing.length > 0) process.stderr.write(`not run: ${peer}; ${missing.join("; ")}\n`);
  return missing.length === 0;
}
