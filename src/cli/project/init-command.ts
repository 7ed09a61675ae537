import { execFile } from "node:child_process";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import { Command } from "commander";
import { KcoreError } from "#errors/problem.ts";
import { addProjectOption } from "../options.ts";

/** `kcore init`: a project that `kcore roster check` accepts, in git. */
export function initCommand(): Command {
  const command = new Command("init")
    .description("Create a new project: a folder with roster/, orchestrate/, states/ and templates/, in git")
    .argument("[dir]", "the folder; made if it is not there", ".")
    .addHelpText("after", "\nExamples:\n  kcore init dc1\n  cd dc1 && kcore roster add n1 192.0.2.11")
    .action(initProject);
  return addProjectOption(command);
}

async function initProject(dir: string): Promise<void> {
  const project = resolve(dir);
  await mkdir(project, { recursive: true });
  const there = (await readdir(project)).filter((name) => name === "roster" || name === "orchestrate");
  if (there.length > 0)
    throw new KcoreError({
      code: "USAGE",
      message: `${project} is a kcore project already: it holds ${there.join("/ and ")}/`,
    });
  for (const [path, text] of Object.entries(skeleton)) {
    await mkdir(dirname(join(project, path)), { recursive: true });
    // `wx`: what the folder holds already is never written over.
    await writeFile(join(project, path), text, { flag: "wx" }).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
  }
  const git = await initGit(project);
  const place = relative(process.cwd(), project) || ".";
  process.stdout.write(
    [
      `A new kcore project in ${place}${git ? ", under git" : ""}`,
      "Next:",
      ...(place === "." ? [] : [`  cd ${place}`]),
      "  kcore roster add n1 192.0.2.11     name your first machine",
      "  kcore roster trust n1              compare and pin its host key",
      "  kcore ping --on n1",
      "",
    ].join("\n"),
  );
}

/** Git is for the user's benefit: where it is missing, the project works without. */
async function initGit(project: string): Promise<boolean> {
  try {
    await promisify(execFile)("git", ["init", "--quiet", "--initial-branch=main", project]);
    return true;
  } catch {
    return false;
  }
}

const skeleton: Readonly<Record<string, string>> = {
  "roster/nodes.yaml": `# The machines and how to reach them. Never a plain secret in here: this file is versioned.
# kcore roster add n1 192.0.2.11 adds one; kcore roster check tells what is wrong.
defaults: { user: root, dc: DC1 }
nodes: {}
`,
  "orchestrate/README.md": `Orchestrations of this project, one YAML file each; those that kcore ships need no copy here.
\`kcore orchestrate\` lists all of them.
`,
  "states/README.md": `States of this project, one YAML file each; a file here wins over the shipped one of the same name.
\`kcore state list\` says which is used.
`,
  "templates/README.md": "Handlebars templates of files that land on nodes.\n",
  ".gitignore": ".kcore/\n",
};
