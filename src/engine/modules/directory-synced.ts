import { z } from "zod";
import { defineModule, type FolderEntry } from "../step/define.ts";
import { AbsolutePath, FileMode, modeNumber, UserName } from "../step/fields.ts";
import { folderOf, ownersOf, type NodeResource } from "../step/effects.ts";
import { fileRefusals, probeOwnership, wantOwnership } from "../step/fragments/files.ts";
import { askArchives, findChanges, makeChanges, probeTree } from "../step/fragments/tree.ts";
import { planTree, type TreePlan } from "../step/fragments/tree-plan.ts";
import { sh } from "../step/sh.ts";

const Glob = z
  .string()
  .regex(/^[^/\\[\]\n\0](?:[^\\[\]\n\0]*[^/\\[\]\n\0])?$/, "must be a glob of * and ?, without / at its ends");

const args = z.strictObject({
  path: AbsolutePath.refine((path) => path !== "/", "must not be /").describe("The folder on the node."),
  source: z.string().min(1).describe("A folder of the project."),
  owner: UserName.default("root").describe("Owner of the folder and all its entries."),
  group: UserName.default("root").describe("Group of the folder and all its entries."),
  mode: FileMode.refine((mode) => (modeNumber(mode) & 0o7022) === 0, "must not let group and others write")
    .default("0755")
    .describe("Mode of the folders."),
  fileMode: FileMode.refine((mode) => modeNumber(mode) <= 0o777, "must have no setuid, setgid or sticky bit")
    .optional()
    .describe("Mode of the files; else 0755 for those that are executable in the source, 0644 for others."),
  exclude: z
    .array(Glob)
    .default([])
    .describe("Names, or with / paths below the folder, that are neither sent nor touched: globs of * and ?."),
  delete: z.boolean().default(false).describe("Delete what the source does not have."),
  makeDirs: z.boolean().default(false).describe("Make the missing folders above path."),
});

/** The plans of a run's folders: all nodes with the same modes share one. */
const plans = new WeakMap<readonly FolderEntry[], Map<string, TreePlan>>();

/**
 * ```yaml
 * directory.synced:
 *   path: /srv/site
 *   source: files/site
 *   exclude: ["*.log", uploads/*]
 *   delete: true
 * ```
 * Files are compared by SHA-256, mode and owner. Those that differ travel together in archives, which are unpacked aside; each
 * replaces its file as a whole. Without `delete`, other entries stay. A dry run names the entries that it would write and delete,
 * twenty of each, and their numbers. Nothing beneath a mount point is changed, and no link is followed. A link of the source stays a link; one
 * that leads out of the source is refused when the state is read.
 */
export const directorySynced = defineModule({
  name: "directory.synced",
  summary: "Keeps a folder of the project on the node.",
  alsoKnownAs: ["synchronize", "rsync", "file.recurse", "files.sync", "tar"],
  args,
  refusals: ["FILE_MOUNTED", ...fileRefusals],
  step: ({ path, source, owner, group, mode, fileMode, exclude, delete: deletes, makeDirs }, context) => {
    const entries = context.readFolder(source, exclude);
    const modeOf = ({ kind, isProgram }: FolderEntry): number =>
      kind === "link" ? 0o777 : modeNumber(kind === "folder" ? mode : (fileMode ?? (isProgram ? "0755" : "0644")));
    const label = context.sensitive ? "contents" : source;
    const known = plans.get(entries) ?? new Map<string, TreePlan>();
    plans.set(entries, known);
    const key = JSON.stringify([mode, fileMode, label]);
    const plan = known.get(key) ?? planTree(entries, modeOf, label);
    known.set(key, plan);
    const tree = { path, plan, owner, group, mode, exclude, deletes, tells: !context.sensitive };
    const parents: readonly NodeResource[] = makeDirs ? [{ is: "parents", path }] : [];
    const todo = sh`"$K_RUN/blobs/$k_key.todo"`;
    return {
      brings: true,
      effects: {
        writes: [{ is: "tree", path }, folderOf({ path, mode, owner }), ...parents],
        reads: [{ is: "tree", path }, ...ownersOf({ owner, group })],
      },
      want: {
        kind: "directory",
        ...wantOwnership({ mode, owner, group }),
        names: `sha256:${plan.namesSum}`,
        contents: `sha256:${plan.contentsSum}`,
      },
      probe: sh`kind_of ${path}
fact kind "$kind"
[ "$kind" = directory ] || exit 0
${probeOwnership(path, { owner, group })}
${probeTree(tree)}`,
      guard: sh`guard_directory ${path}`,
      foresee: sh`foresee_place ${path} 4 ${makeDirs ? 1 : 0} ${owner} ${group}
${findChanges(tree, sh`"$K_TMP/todo"`)}`,
      asks: sh`${findChanges(tree, todo)}
${askArchives(tree, todo)}`,
      offers: plan.archives,
      apply: sh`parent_of ${path} ${makeDirs ? 1 : 0} ${owner}
keep_folder ${path} ${mode} ${owner} ${group} || exit 1
${makeChanges(tree, todo)}`,
      tools: [{ command: "tar", package: "tar" }],
      quiet: true,
      timeout: 3600,
      stall: 300,
    };
  },
});
