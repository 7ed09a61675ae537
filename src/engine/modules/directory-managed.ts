import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath, FileMode, UserName } from "../step/fields.ts";
import { fileRefusals, stepOfData } from "../step/fragments/files.ts";
import { folderOf, ownersOf } from "../step/effects.ts";
import { sh, shLines, type Sh } from "../step/sh.ts";

const Attribute = z.enum(["owner", "group", "mode"]);
type Attribute = z.output<typeof Attribute>;

const args = z
  .strictObject({
    path: AbsolutePath.describe("The folder on the node."),
    mode: FileMode.optional().describe("Mode; else kept, 0755 for a new one."),
    owner: UserName.optional().describe("Owner; else kept, root for a new one."),
    group: UserName.optional().describe("Group; else kept, root for a new one."),
    makeDirs: z.boolean().default(true).describe("Make the missing folders above path, too (0755, root)."),
    recurse: z
      .array(Attribute)
      .default([])
      .describe("Attributes that everything in the folder gets, too: owner, group, mode."),
    fileMode: FileMode.optional().describe("Mode of the files in the folder, with recurse: [mode]."),
  })
  .superRefine((given, context) => {
    for (const attribute of given.recurse)
      if (given[attribute] === undefined)
        context.addIssue({ code: "custom", path: [attribute], message: `recurse: [${attribute}] needs ${attribute}` });
    if (given.recurse.includes("mode") !== (given.fileMode !== undefined))
      context.addIssue({ code: "custom", path: ["fileMode"], message: "fileMode and recurse: [mode] need each other" });
  });

type Args = z.output<typeof args>;

/**
 * ```yaml
 * directory.managed: { path: /etc/kcore/certs, mode: "0750", owner: root, group: root }
 * ```
 * A new folder has its owner and mode before another user can enter it. Recursion is explicit because it reads the whole
 * tree in every run. Recursion stays on the folder's file system and follows no links, even while the folder's owner swaps
 * names in the folder.
 */
export const directoryManaged = defineModule({
  name: "directory.managed",
  summary: "Keeps a folder with its mode and owner.",
  alsoKnownAs: [
    "file",
    "file.directory",
    "file.recurse",
    "files.directory",
    "files.sync",
    "synchronize",
    "rsync",
    "mkdir",
    "folder",
  ],
  args,
  refusals: [...fileRefusals],
  step: (given) => {
    const { path, mode, owner, group, makeDirs } = given;
    const beneath = beneathOf(given);
    const step = stepOfData({ kind: "directory", path, mode, owner, group, makeDirs });
    if (beneath.length === 0) return step;
    return {
      ...step,
      data: undefined,
      want: { ...step.want, ...Object.fromEntries(beneath.map(({ fact }) => [fact, "all"])) },
      probe: sh`${step.probe}
${shLines(
  beneath.map(
    ({ fact, differing }) => sh`first=$(find ${path} -xdev -mindepth 1 ${differing} -print | head -n 1) || exit 1
fact ${fact} "\${first:-all}"`,
  ),
)}`,
      apply: sh`${step.apply} || exit 1
${mendBeneath(given, beneath)}`,
      effects: {
        writes: [{ is: "tree", path }, folderOf(given)],
        reads: [{ is: "tree", path }, ...ownersOf(given)],
      },
      timeout: 600,
    };
  },
});

/** Defines the functions that mend_tree needs, and calls mend_tree. */
function mendBeneath({ path, owner }: Args, beneath: ReturnType<typeof beneathOf>): Sh {
  const any = beneath.map(({ differing }) => differing).reduce((all, one) => sh`${all} -o ${one}`);
  return sh`differing() {
  place=$1
  shift
  find "$place" -mindepth 1 -maxdepth 1 ! -type d \( ${any} \) "$@"
}
mend() {
  ${shLines(beneath.map(({ differing, change }) => sh`find "$@" ${differing} -exec ${change} {} + || return 1`))}
}
mend_tree ${path} ${owner ?? ""}`;
}

/** For each attribute in `recurse`: its fact, find(1)'s test for a differing entry, and the command that corrects the entry. */
function beneathOf({ recurse, mode = "", fileMode = "", owner = "", group = "" }: Args) {
  const tests: Record<Attribute, { fact: string; differing: Sh; change: Sh }[]> = {
    owner: [{ fact: `owner ${owner} beneath`, differing: sh`! -user ${owner}`, change: sh`chown -h -- ${owner}` }],
    group: [{ fact: `group ${group} beneath`, differing: sh`! -group ${group}`, change: sh`chgrp -h -- ${group}` }],
    mode: [
      { fact: `folders ${mode} beneath`, differing: sh`-type d ! -perm ${mode}`, change: sh`chmod -- ${mode}` },
      {
        fact: `files ${fileMode} beneath`,
        differing: sh`-type f ! -perm ${fileMode}`,
        change: sh`chmod -- ${fileMode}`,
      },
    ],
  };
  return [...new Set(recurse)].flatMap((attribute) => tests[attribute]);
}
