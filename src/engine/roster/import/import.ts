import type { Roster } from "../roster.ts";
import { takeInventory } from "./ansible.ts";
import { correct, type AnsibleAnswer } from "./asked.ts";
import { readIni } from "./ansible-ini.ts";
import { readTree, readVariables } from "./ansible-tree.ts";
import { readCsv } from "./csv.ts";
import { draftText } from "./draft-text.ts";
import { Found, type LeftOut } from "./found.ts";
import { guessFormat, type Format } from "./guess.ts";
import { Inventory } from "./inventory.ts";
import { readSalt } from "./salt.ts";
import { settle, type Draft } from "./settle.ts";
import { readSshConfig, type ReadIncluded } from "./ssh-config.ts";
import { readTerraform } from "./terraform.ts";
import { parseForeign } from "#engine/yaml/foreign.ts";
import { KcoreError } from "#errors/problem.ts";

/** A file of another program: as it is shown, and its text. */
export interface ForeignFile {
  readonly file: string;
  readonly text: string;
}

/** How the files beside those given are read; each function gives what is there. */
export interface Beside {
  /** What an ssh_config includes. */
  readonly included: ReadIncluded;
  /** Ansible's own reading of inventories; undefined if Ansible is not installed, or fails. */
  readonly askAnsible: (inventories: readonly string[]) => AnsibleAnswer | undefined;
  /** `group_vars/NAME` and `host_vars/NAME` beside an inventory, as Ansible takes them. */
  readonly variablesOf: (inventory: string, kind: "group_vars" | "host_vars", name: string) => readonly ForeignFile[];
}

export interface Imported {
  readonly draft: Draft;
  readonly text: string;
  /** By file and line. */
  readonly leftOut: readonly LeftOut[];
  /** What each file was taken for. */
  readonly formats: readonly Format[];
}

/**
 * Other programs' files as the text of one roster file, beside the roster that is there.
 * @throws KcoreError ROSTER_IMPORT, YAML_SYNTAX and what decoding a file throws
 */
export function importRoster(
  files: readonly ForeignFile[],
  {
    from,
    beside,
    roster,
    groups,
    user,
  }: {
    readonly from?: Format;
    /** The login name to use where a file's own cannot be carried over. */
    readonly user?: string;
    readonly beside: Beside;
    readonly roster: Roster;
    /** Names of groups that the roster has. */
    readonly groups: ReadonlySet<string>;
  },
): Imported {
  const found = new Found();
  const inventory = new Inventory();
  const kinds = files.map(({ file, text }): Format => {
    const format = from ?? guessFormat(file, text);
    if (format === "salt") readSalt(found, file, text);
    else if (format === "csv") readCsv(found, file, text);
    else if (format === "terraform") readTerraform(found, file, text);
    else if (format === "ssh-config") readSshConfig(found, file, text, beside.included);
    else readInventory(inventory, found, { file, text }, beside);
    return format;
  });
  const inventories = files.filter(({ file, text }, at) => kinds[at] === "ansible" && isWritten(file, text));
  const answer = inventories.length > 0 ? beside.askAnsible(inventories.map(({ file }) => file)) : undefined;
  if (answer) correct(inventory, found, answer);
  takeInventory(found, inventory);
  if (user === undefined && found.lostLogins.length > 0) throw loginsLost(found.lostLogins);
  if (user !== undefined) for (const { fields } of found.lostLogins) fields["user"] = user;
  const draft = settle(found, roster, groups);
  const heading = `From ${files
    .map(({ file }) => file)
    .join(", ")
    .replaceAll(/[^\x20-\x7e]/g, "?")}, by kcore roster import`;
  const leftOut = [...found.leftOut].sort((a, b) => (a.at.file === b.at.file ? a.at.line - b.at.line : 0));
  return { draft, text: draftText(draft, heading), leftOut, formats: kinds };
}

/** Whether an operator wrote the inventory; one that `ansible-inventory --list` printed needs no second reading by Ansible. */
function isWritten(file: string, text: string): boolean {
  return file !== "stdin" && !/^\s*\{/.test(text);
}

function loginsLost(lost: readonly LeftOut[]): KcoreError {
  return new KcoreError(
    lost.slice(0, 20).map(({ at, what, why }) => ({
      code: "ROSTER_IMPORT" as const,
      message: `the login name of ${what} cannot be imported: ${why}`,
      at,
      hint: "kcore would log in as root; --user NAME is taken in its place, or write a plain name there",
    })),
  );
}

function readInventory(inventory: Inventory, found: Found, { file, text }: ForeignFile, { variablesOf }: Beside): void {
  const [first = ""] = text.split(/\r?\n/).filter((line) => !/^\s*([#;]|$)/.test(line));
  const isTree = /^\s*\{|^---|^[^\s=[\]]+:(\s|$)/.test(first) && !/^\S+:\d+(\s|$)/.test(first);
  if (isTree) readTree(inventory, found, file, text);
  else readIni(inventory, found, file, text);
  const start = { file, line: 1, column: 1 };
  const owners = [
    ...["all", ...inventory.groups.keys()].map((name) => ["group_vars", name] as const),
    ...[...inventory.hosts.keys()].map((name) => ["host_vars", name] as const),
  ];
  for (const [kind, name] of new Set(owners))
    for (const beside of variablesOf(file, kind, name)) {
      const owner = kind === "group_vars" ? inventory.group(name, start) : inventory.host(name, start);
      if (beside.text.startsWith("$ANSIBLE_VAULT"))
        found.leave({ file: beside.file, line: 1, column: 1 }, `${kind}/${name}`, "it is encrypted by Ansible Vault");
      else {
        const tree = parseForeign(beside.file, beside.text);
        readVariables(owner.vars, tree.root, tree);
        // In Ansible, group_vars of a group overrides the inventory file's variables of the groups below it.
        if (kind === "group_vars")
          for (const [group, { vars }] of inventory.groups)
            if (inventory.isBelow(group, name))
              for (const [key, { at }] of vars) if (at.file === file && owner.vars.has(key)) vars.delete(key);
      }
    }
}
