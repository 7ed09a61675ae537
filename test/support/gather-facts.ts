import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { unescapeLine } from "#engine/program/frames.ts";
import { factsText, shippedText } from "#engine/program/texts.ts";
import { hangLimit } from "./limit.ts";

/** The shells in which tests gather facts. */
export const factShells = ["dash", "bash", "busybox sh", "mksh"] as const;

export interface Gathering {
  /** A sh text that runs first, as root in the namespaces, where it cannot harm this machine. FOLDER in it is the files' folder. */
  readonly before?: string;
  /** Files below a folder of the test, by path. */
  readonly files?: Readonly<Record<string, string>>;
}

export interface GatheredLines {
  readonly flat: Readonly<Record<string, string>>;
  /** The number of processes that the shell started, forks of itself included. */
  readonly processes: number;
}

/** The lines that facts.sh prints in this shell, in namespaces of its own for processes, mounts and network. @throws Error when it fails */
export function gatherFacts(shell: string, gathering: Gathering = {}): GatheredLines {
  const library = shippedText("step-functions");
  const text = [library, "k_key=facts k_unsure=", factsText()].join("\n");
  const flat: Record<string, string> = {};
  let processes = Number.NaN;
  for (const line of runInNamespaces(shell, text, gathering).split("\n")) {
    const [, name, value = ""] = /^F ([^=]*)=(.*)$/.exec(line) ?? [];
    if (name !== undefined) flat[name] = unescapeLine(value);
    else if (line.startsWith("processes ")) processes = Number(line.slice("processes ".length));
    else if (line !== "") throw new Error(`facts.sh printed ${line}`);
  }
  return { flat, processes };
}

/** The output of a sh text, followed by `processes N`: the number of processes that it started. FOLDER in the text is the files' folder. @throws Error if it fails */
export function runInNamespaces(shell: string, text: string, { before = ":", files = {} }: Gathering): string {
  const folder = mkdtempSync(join(tmpdir(), "kcore-facts-"));
  try {
    for (const [name, content] of Object.entries({ ...files, text: text.replaceAll("FOLDER", folder) })) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), content);
    }
    // Pids are given in order, so two of them show the number of processes in between.
    const script = `mount -t sysfs none /sys
      ${before.replaceAll("FOLDER", folder)}
      first=$(exec sh -c 'echo $$')
      ${shell} ${folder}/text 3>&1 || exit
      echo "processes $(($(exec sh -c 'echo $$') - first - 2))"`;
    const args = ["--mount", "--pid", "--fork", "--mount-proc", "--net", "sh", "-c", script];
    const { stdout, stderr, status } = spawnSync("unshare", args, { encoding: "utf8", timeout: hangLimit });
    if (status !== 0 || stderr !== "") throw new Error(`it ended with ${status}\n${stderr}`);
    return stdout;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
