import type { Roster } from "../roster.ts";
import { takeInventory } from "./ansible.ts";
import { readPlainInventory, unsure } from "./ansible-ini.ts";
import { correctValues, locateIn, readList, type AnsibleAnswer, type InventoryList } from "./ansible-list.ts";
import { readCsv } from "./csv.ts";
import { Found, type LeftOut, type GivenFile } from "./found.ts";
import { guessFormat, type Format } from "./guess.ts";
import { Inventory } from "./inventory.ts";
import { readSalt } from "./salt.ts";
import { draftRoster, type Draft, draftText } from "./draft.ts";
import { readSshConfig, type AskSsh, type ReadIncluded } from "./ssh-config.ts";
import { readTerraform } from "./terraform.ts";
import { parseForeign } from "#engine/yaml/foreign.ts";
import { plainOf } from "#engine/yaml/node.ts";
import { KcoreError } from "#errors/problem.ts";

/** Access to the programs whose files are imported, and to included files. */
export interface Programs {
  /** Undefined where Ansible is not installed. @throws KcoreError ROSTER_IMPORT where it refuses the inventories */
  readonly askAnsible: (inventories: readonly GivenFile[]) => AnsibleAnswer | undefined;
  readonly askSsh: AskSsh;
  /** Reads the files that an ssh_config includes. */
  readonly included: ReadIncluded;
}

export interface Imported {
  readonly draft: Draft;
  readonly text: string;
  /** By file, in the order of their first reports, and line. */
  readonly leftOut: readonly LeftOut[];
  /** The format of each file. */
  readonly formats: readonly Format[];
  /** Files that kcore read itself, since the program that decides their meaning is missing. */
  readonly ownReader: readonly { readonly file: string; readonly missing: "ansible-inventory" | "ssh" }[];
}

/**
 * Other programs' files as the text of one roster file, beside the present roster.
 * @throws KcoreError ROSTER_IMPORT, YAML_SYNTAX; errors of decoding a file
 */
export function importRoster(
  files: readonly GivenFile[],
  {
    from,
    programs,
    roster,
    groups,
    user,
  }: {
    readonly from?: Format;
    /** The login name to use where a file's own cannot be carried over. */
    readonly user?: string;
    readonly programs: Programs;
    readonly roster: Roster;
    /** Names of groups that the roster has. */
    readonly groups: ReadonlySet<string>;
  },
): Imported {
  const found = new Found();
  const inventory = new Inventory();
  const inventories: GivenFile[] = [];
  const ownReader: Imported["ownReader"][number][] = [];
  const kinds = files.map((given): Format => {
    const { file, text } = given;
    const format = from ?? (given.isFolder === true ? "ansible" : guessFormat(file, text));
    if (format === "salt") readSalt(found, file, text);
    else if (format === "csv") readCsv(found, file, text);
    else if (format === "terraform") readTerraform(found, file, text);
    else if (format === "ssh-config") {
      if (!readSshConfig(found, given, programs)) ownReader.push({ file, missing: "ssh" });
    } else if (/^\s*\{/.test(text))
      readList(inventory, plainOf(parseForeign(file, text)) as InventoryList, locateIn([given]));
    else inventories.push(given);
    return format;
  });
  if (inventories.length > 0 && !askAnsible(found, inventory, inventories, programs))
    for (const given of inventories) {
      if (given.isFolder === true || given.hasVariables === true) throw needsAnsible(given);
      readPlainInventory(inventory, given);
      ownReader.push({ file: given.file, missing: "ansible-inventory" });
    }
  takeInventory(found, inventory);
  if (user === undefined && found.lostLogins.length > 0) throw loginsLost(found.lostLogins);
  if (user !== undefined) for (const { fields } of found.lostLogins) fields["user"] = user;
  const draft = draftRoster(found, roster, groups);
  const heading = `From ${files
    .map(({ file }) => file)
    .join(", ")
    .replaceAll(/[^\x20-\x7e]/g, "?")}, by kcore roster import`;
  const order = [...new Set(found.leftOut.map(({ at }) => at.file))];
  const leftOut = found.leftOut.toSorted(
    ({ at: a }, { at: b }) => order.indexOf(a.file) - order.indexOf(b.file) || a.line - b.line,
  );
  return { draft, text: draftText(draft, heading), leftOut, formats: kinds, ownReader };
}

/** Reads the inventories by Ansible; false if Ansible is not installed. */
function askAnsible(
  found: Found,
  inventory: Inventory,
  inventories: readonly GivenFile[],
  programs: Programs,
): boolean {
  const answer = programs.askAnsible(inventories);
  if (!answer) return false;
  const locate = locateIn(answer.files);
  readList(inventory, answer.layers, locate);
  correctValues(inventory, answer.values, locate);
  for (const file of answer.encrypted)
    found.leaveOut({ file, line: 1, column: 1 }, "the file", "it is encrypted by Ansible Vault");
  return true;
}

function needsAnsible({ file, isFolder }: GivenFile): KcoreError {
  const what = isFolder === true ? "is a folder of inventories" : "has group_vars or host_vars beside it";
  return new KcoreError({ ...unsure, message: `${file} ${what}, which only Ansible reads` });
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
