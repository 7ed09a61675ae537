import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Targets } from "#support/targets.ts";
import { makeFolders, proveTree, stateOf, stepsOf, type Workload, type WorkloadName } from "#support/workload.ts";
import type { Command } from "./measure.ts";
import { scriptOf } from "./script.ts";

export const kcore = join(import.meta.dirname, "../../bin/kcore");

/** Where the contenders work: some of the targets, reached straight or through a line, and a folder. */
export interface Scene {
  readonly folder: string;
  readonly targets: Targets;
  readonly name: WorkloadName;
  readonly work: Workload;
  readonly nodes: readonly { readonly name: string; readonly address: string; readonly port: number }[];
}

/** A way to bring the workload to the nodes of a scene. */
export interface Contender {
  readonly name: string;
  /** Makes its files, and the nodes as if it had never been there. */
  reset(): void;
  readonly command: Command;
  /** How many steps it says it has changed, on all nodes; throws when it does not say that all is done. */
  changed(stdout: string): number;
  /** The folder in which the nodes' folders are. */
  readonly base: string;
}

/** Throws unless the contender did its work: every node's tree as wanted, and as many changes as there had to be. */
export function prove(scene: Scene, contender: Contender, stdout: string, phase: "A" | "B"): void {
  const wanted = phase === "A" ? stepsOf(scene.work) * scene.nodes.length : 0;
  const changed = contender.changed(stdout);
  if (changed !== wanted) throw new Error(`${contender.name}, ${phase}: ${changed} changes, not ${wanted}`);
  for (const { name } of scene.nodes) proveTree(scene.work, join(contender.base, name), name);
}

export function scriptContender(scene: Scene): Contender {
  const { targets, nodes, work } = scene;
  const [folder, base] = placesOf(scene, "script");
  // OpenSSH's default (sntrup761) takes three times the CPU of it.
  const options = [...sshOptions(targets, folder), "-o", "KexAlgorithms=curve25519-sha256"];
  const lines = nodes.map(
    ({ name, address, port }) =>
      `ssh ${options.join(" ")} -p ${port} root@${address} sh -s <${folder}/${name}.sh >${folder}/${name}.out &`,
  );
  return {
    name: "script",
    base,
    reset() {
      const scripts = nodes.map(({ name }) => [`${name}.sh`, scriptOf(work, join(base, name), name)] as const);
      renew(folder, base, scene, {
        ...Object.fromEntries(scripts),
        known_hosts: `target ${targets.hostKey}\n`,
        "all.sh": `${lines.join("\n")}\nwait\n`,
      });
    },
    command: { words: ["sh", join(folder, "all.sh")], cwd: folder },
    changed: () =>
      nodes.reduce((sum, { name }) => {
        const said = /^changed=(\d+)$/m.exec(readFileSync(join(folder, `${name}.out`), "utf8"))?.[1];
        if (said === undefined) throw new Error(`the script did not end on ${name}`);
        return sum + Number(said);
      }, 0),
  };
}

/** kcore as it is installed: the bundle. `local`: without ssh, on this machine itself. */
export function kcoreContender(scene: Scene, { local = false } = {}): Contender {
  const { targets, nodes, work } = scene;
  const name = local ? "local" : "kcore";
  const [folder, base] = placesOf(scene, name);
  const state = join(folder, "state");
  const roster = nodes.map(({ name: node, address, port }) => {
    const way = local
      ? "transport: local"
      : `port: ${port}, identityFile: "${targets.identityFile}", hostKeys: ["${targets.hostKey}"]`;
    return `  ${node}: { address: ${address}, ${way}, stateDir: "${state}/${node}" }\n`;
  });
  return {
    name,
    base,
    reset() {
      renew(folder, base, scene, {
        "project/roster/nodes.yaml": `nodes:\n${roster.join("")}`,
        "project/orchestrate/README.md": "",
        // The only step of this state is left out, so it connects to no node: kcore's own start-up remains.
        "project/states/nothing.yaml": `steps:\n  - { id: none, when: false, command.run: { cmd: "true" } }\n`,
        ...Object.fromEntries(Object.entries(stateOf(work, base)).map(([path, text]) => [`project/${path}`, text])),
      });
      makeFolders(
        state,
        nodes.map(({ name: node }) => node),
        0o700,
      );
    },
    command: kcoreCommand(folder, ["state", "apply", "workload", "--on", "*", "--output", "json"]),
    changed(stdout) {
      const events = eventsOf(stdout);
      const done = events.filter(({ type, outcome }) => type === "node.finished" && outcome === "done").length;
      if (done !== nodes.length) throw new Error(`${name}: ${done} of ${nodes.length} nodes are done`);
      return events.filter(({ type, outcome }) => type === "step.finished" && outcome === "changed").length;
    },
  };
}

export function kcoreCommand(folder: string, words: readonly string[]): Command {
  const env = { KCORE_HOME: join(folder, "home"), XDG_CACHE_HOME: join(folder, "cache"), KCORE_SOURCE: "" };
  return { words: [kcore, ...words], cwd: join(folder, "project"), env };
}

export interface RunLine {
  readonly type: string;
  readonly outcome?: string;
}

export function eventsOf(stdout: string): RunLine[] {
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as RunLine);
}

export function sshOptions(targets: Targets, folder: string): string[] {
  const options = {
    IdentitiesOnly: "yes",
    BatchMode: "yes",
    StrictHostKeyChecking: "yes",
    UserKnownHostsFile: join(folder, "known_hosts"),
    HostKeyAlias: "target",
    LogLevel: "ERROR",
  };
  return [
    "-F",
    "none",
    "-i",
    targets.identityFile,
    ...Object.entries(options).flatMap(([key, value]) => ["-o", `${key}=${value}`]),
  ];
}

export function placesOf({ folder }: Scene, name: string): readonly [folder: string, base: string] {
  return [join(folder, name), join(folder, name, "nodes")];
}

let moved = 0;

/**
 * Makes a contender's folder anew, with these files and an empty folder for each node. The old folder is moved aside
 * instead of deleted. On ext4, making files is slower after many recent deletions, and a real node has deleted nothing.
 */
export function renew(folder: string, base: string, { nodes }: Scene, files: Readonly<Record<string, string>>): void {
  if (existsSync(folder)) renameSync(folder, `${folder}.${process.pid}.${(moved += 1)}`);
  makeFolders(
    base,
    nodes.map(({ name }) => name),
  );
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}
