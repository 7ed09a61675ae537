import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { Command } from "commander";
import { omitUndefined } from "#base/omit-undefined.ts";
import { usageError } from "#errors/problem.ts";
import { createFile } from "#base/file.ts";
import { makeFolder } from "#base/folder.ts";
import { git } from "#base/git.ts";
import { addProjectOption, type CommonFlags } from "../options.ts";
import { clusterLine } from "./project-cluster.ts";
import { projectFile } from "./project-settings.ts";
import { writeError } from "./write-asked.ts";

/** `kcore init`: a project that `kcore roster check` accepts, in git. */
export function initCommand(): Command {
  const command = new Command("init")
    .description("Create a new project: a folder with roster/, orchestrate/, states/ and templates/, in git")
    .argument("[dir]", "the folder; made if it is not there", ".")
    .option("--empty", "without the example's nodes in its roster")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore init dc1\n  kcore init dc2 --empty && cd dc2 && kcore roster add n1 192.0.2.11",
    )
    .action(initProject);
  return addProjectOption(command);
}

async function initProject(
  dir: string,
  { empty = false }: CommonFlags & { readonly empty?: boolean },
  command: Command,
): Promise<void> {
  const project = resolve(dir);
  // Only a context that the operator names counts: others belong to other projects, and `create cluster` will name this project's.
  const cluster =
    command.getOptionValueSource("context") === "cli" ? (command.getOptionValue("context") as string) : undefined;
  const files = skeletonFiles({ newId: randomUUID, empty, ...omitUndefined({ cluster }) });
  refuseExisting(project, files);
  for (const [path, { text, mode = 0o644 }] of files) {
    const place = join(project, path);
    if (isSufficientIgnore(path, place)) continue;
    await makeFolder(dirname(place));
    // createFile never overwrites a file that appeared a moment ago.
    await createFile(place, text, { mode }).catch((cause: unknown) => {
      throw writeError(place, cause);
    });
  }
  const git = await putUnderGit(project);
  const place = relative(process.cwd(), project) || ".";
  process.stdout.write(
    [
      `A new kcore project in ${place}${git.clause}`,
      ...(cluster === undefined ? [] : [`Its cluster is “${cluster}”: ${projectFile}`]),
      "Next:",
      ...firstCommands(place, { empty, ...git }),
      "",
    ].join("\n"),
  );
}

/** Writes nothing where one of the files exists: an operator's own project must not become half an example. */
function refuseExisting(project: string, files: ReadonlyMap<string, SkeletonFile>): void {
  const folders = ["roster", "orchestrate"].filter((name) => existsSync(join(project, name)));
  if (folders.length > 0)
    throw usageError(`${project} is a kcore project already: it holds ${folders.join("/ and ")}/`);
  const there = [...files.keys()].filter(
    (path) => existsSync(join(project, path)) && !isSufficientIgnore(path, join(project, path)),
  );
  if (there.length === 0) return;
  const isIgnore = there.length === 1 && there[0] === ".gitignore";
  throw usageError(
    `${project} holds ${there.join(", ")} already, and nothing is written over`,
    isIgnore ? "put the line .kcore/ into .gitignore, then again" : "choose another folder, or move them away",
  );
}

/** Whether the path is a .gitignore that keeps out kcore's files already, which init leaves alone. */
function isSufficientIgnore(path: string, place: string): boolean {
  return path === ".gitignore" && existsSync(place) && /^\/?\.kcore\/?\s*$/m.test(readFileSync(place, "utf8"));
}

interface GitSetup {
  /** The end of the sentence that names the new project. */
  readonly clause: string;
  /** Whether git runs the hook of this project from now on. */
  readonly hooked: boolean;
}

/**
 * Makes a repository that uses the project's hook. Inside another repository it makes none and sets no hook, as commits there
 * concern other files, too. Without git the project works as well.
 */
async function putUnderGit(project: string): Promise<GitSetup> {
  const isInside = await git(project, ["rev-parse", "--is-inside-work-tree"]).then(
    () => true,
    () => false,
  );
  if (isInside) return { clause: ", in the git repository that is there", hooked: false };
  try {
    await git(project, ["init", "--quiet", "--initial-branch=main"]);
    await git(project, ["config", "core.hooksPath", "hooks"]);
    return { clause: ", under git: each commit is checked by hooks/pre-commit", hooked: true };
  } catch {
    return { clause: "", hooked: false };
  }
}

function firstCommands(
  place: string,
  { empty, hooked }: { readonly empty: boolean; readonly hooked: boolean },
): string[] {
  const roster = empty
    ? [
        "  kcore roster add n1 192.0.2.11     name your first machine",
        "  kcore roster trust n1              compare and pin its host key",
      ]
    : [
        "  edit roster/nodes.yaml             your machines in place of the example's",
        "  kcore roster trust '*'             compare and pin their host keys",
      ];
  return [
    ...(place === "." ? [] : [`  cd ${place}`]),
    ...(hooked ? [] : ["  git config core.hooksPath hooks    check each commit (where this folder is the repository)"]),
    ...roster,
    empty ? "  kcore ping --on n1" : "  kcore ping --on '*'",
  ];
}

/** A file of a new project. */
interface SkeletonFile {
  readonly text: string;
  readonly mode?: number;
}

/** The files of a new project, by path. `newId` makes the ids of the example's nodes; `empty` leaves these nodes out. */
function skeletonFiles({
  newId,
  empty,
  cluster,
}: {
  readonly newId: () => string;
  readonly empty: boolean;
  /** The project's cluster, if known. */
  readonly cluster?: string;
}): ReadonlyMap<string, SkeletonFile> {
  return new Map<string, SkeletonFile>([
    ["roster/nodes.yaml", { text: empty ? emptyRoster : exampleRoster(newId) }],
    ["orchestrate/README.md", { text: orchestrateReadme }],
    ["states/README.md", { text: statesReadme }],
    ["templates/README.md", { text: "Handlebars templates of files that land on nodes.\n" }],
    ...(cluster === undefined ? [] : [[projectFile, { text: clusterLine(cluster) }] as const]),
    [".gitignore", { text: ignoreText }],
    // Git uses hooks of a versioned folder only if core.hooksPath names it (git-config(1)).
    ["hooks/pre-commit", { text: "#!/bin/sh\nexec kcore check\n", mode: 0o755 }],
  ]);
}

/** Keeps records of runs, caches, and stray keys out of git. */
const ignoreText = ".kcore/\n*.key\n*.pem\npassphrase\n";

const heading = `# The machines and how to reach them. Never a plain secret in here: this file is versioned.
# kcore roster add NAME ADDRESS adds one; kcore roster check finds mistakes.
defaults: { user: root, dc: DC1 }
`;

const emptyRoster = `${heading}nodes: {}\n`;

/** Three controllers: if one is lost, two still hold the state. Special workloads get a node that others avoid. */
function exampleRoster(newId: () => string): string {
  return `${heading}# An example, with addresses reserved for documentation: put your own in their place, or take the nodes out.
groups:
  controllers: { roles: [controller] }
  workers: { roles: [worker] }
nodes:
  controller1: { address: 192.0.2.11, id: ${newId()}, groups: [controllers] }
  controller2: { address: 192.0.2.12, id: ${newId()}, groups: [controllers] }
  controller3: { address: 192.0.2.13, id: ${newId()}, groups: [controllers] }
  worker1: { address: 192.0.2.21, id: ${newId()}, groups: [workers] }
  infra1:
    address: 192.0.2.31
    id: ${newId()}
    groups: [workers]
    labels: { tier: infra }
    taints: ["dedicated=infra:NoSchedule"]
`;
}

const orchestrateReadme = `Orchestrations of this project, one YAML file each; those that kcore ships need no copy here.
\`kcore orchestrate\` lists all of them.
`;

const statesReadme = `States of this project, one YAML file each; a file here wins over the shipped one of the same name.
\`kcore state list\` says which is used.
`;
