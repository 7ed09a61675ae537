import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { decodeSource } from "#engine/yaml/scan.ts";
import { MAX_ROSTER_BYTES, readBytes } from "#engine/yaml/regular-file.ts";
import { KcoreError } from "#errors/problem.ts";
import type { AnsibleAnswer, InventoryList } from "./ansible-list.ts";
import type { ForeignFile, GivenFile } from "./found.ts";
import type { Programs } from "./import.ts";

const spawnOptions = { encoding: "utf8", maxBuffer: 1 << 28, timeout: 120_000 } as const;
/** Names of files that Ansible ignores in folders. */
const ignored = /^\.|~$|\.(pyc|pyo|swp|bak|rpm|md|txt|rst|orig|ini|cfg|retry)$/;

/** Asks `ssh -G` about a copy of a config. */
export const askSsh: Programs["askSsh"] = (textsIn, hosts) =>
  inFolder((folder) => {
    for (const [number, text] of textsIn(folder).entries())
      writeFileSync(join(folder, String(number)), text, { mode: 0o600 });
    const answers: string[] = [];
    for (const host of hosts) {
      const { error, status, stdout } = spawnSync("ssh", ["-G", "-F", join(folder, "0"), "--", host], spawnOptions);
      if (isMissing(error)) return undefined;
      answers.push(status === 0 ? stdout : "");
    }
    return answers;
  });

/**
 * Asks `ansible-inventory` about a copy of inventories, without the files that Ansible Vault encrypts. The folder of the copy and its
 * ansible.cfg are kcore's, and scripts and plugins are not enabled: nothing that an inventory names is run.
 */
export const askAnsible: Programs["askAnsible"] = (inventories) =>
  inFolder((folder) => {
    writeFileSync(join(folder, "ansible.cfg"), "");
    const copy = new Copy();
    const sources = inventories.flatMap(({ file, text, isFolder = false }, index) => {
      const to = join(folder, String(index));
      if (isFolder) copy.add(file, to);
      else {
        mkdirSync(to);
        copy.write({ file, text }, join(to, basename(file)));
        for (const kind of file === "stdin" ? [] : ["group_vars", "host_vars"])
          copy.add(join(dirname(file), kind), join(to, kind));
      }
      return ["-i", isFolder ? to : join(to, basename(file))];
    });
    const env = {
      ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ANSIBLE_"))),
      // Ansible refuses any other encoding.
      LC_ALL: "C.UTF-8",
      ANSIBLE_INVENTORY_ENABLED: "ini,yaml",
      ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED: "true",
    };
    const list = (...flags: readonly string[]): InventoryList | undefined => {
      const args = ["--list", ...flags, ...sources];
      const { error, status, stdout } = spawnSync("ansible-inventory", args, { ...spawnOptions, cwd: folder, env });
      if (isMissing(error)) return undefined;
      try {
        if (status === 0) return JSON.parse(stdout) as InventoryList;
      } catch {
        // Python prints NaN and Infinity, which JSON does not allow.
      }
      throw notReadable(inventories);
    };
    const [layers, values] = [list("--export"), list()];
    return layers && values && { layers, values, files: copy.files, encrypted: copy.encrypted };
  });

class Copy implements Pick<AnsibleAnswer, "files" | "encrypted"> {
  readonly files: ForeignFile[] = [];
  readonly encrypted: string[] = [];

  /** Copies a file, or a folder with all that Ansible reads below it; does nothing if there is none. */
  add(from: string, to: string): void {
    const found = statSync(from, { throwIfNoEntry: false });
    if (found?.isFile() === true) this.write({ file: from, text: readForeignText(from) }, to);
    if (found?.isDirectory() !== true) return;
    mkdirSync(to);
    for (const name of readdirSync(from).toSorted())
      if (!ignored.test(name)) this.add(join(from, name), join(to, name));
  }

  write({ file, text }: ForeignFile, to: string): void {
    if (text.startsWith("$ANSIBLE_VAULT")) {
      this.encrypted.push(file);
      return;
    }
    this.files.push({ file, text });
    writeFileSync(to, text, { mode: 0o600 });
  }
}

function notReadable(inventories: readonly GivenFile[]): KcoreError {
  const names = inventories.map(({ file }) => file);
  const command = `ansible-inventory ${names.map((name) => `-i ${name} `).join("")}--list`;
  return new KcoreError({
    code: "ROSTER_IMPORT",
    message: `ansible-inventory cannot read ${names.join(", ")} as a text of hosts; scripts, plugins and Vault are not run`,
    hint: `see what it says; or import what it prints: ${command} | kcore roster import --from ansible -`,
  });
}

/** A file of another program, at most as long as a roster. */
export function readForeignText(path: string): string {
  return decodeSource(path, readBytes(path, { maxBytes: MAX_ROSTER_BYTES }), MAX_ROSTER_BYTES);
}

function inFolder<Value>(work: (folder: string) => Value): Value {
  const folder = mkdtempSync(join(tmpdir(), "kcore-import-"));
  try {
    return work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function isMissing(error: Error | undefined): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === "ENOENT";
}
