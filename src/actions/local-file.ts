import { lstat, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { keysIn } from "#engine/yaml/plain-yaml.ts";
import { FileMode, TextOrSecret } from "#engine/step/fields.ts";
import { Secret } from "#engine/step/secret.ts";
import { type ActionContext, type ActionResult, defineAction } from "#engine/orchestrate/action.ts";
import { makeFolder } from "#base/folder.ts";
import { ifThere, replaceFile } from "#base/file.ts";
import { InProject, safeProjectPath } from "./in-project.ts";

const args = z.strictObject({
  path: InProject.describe("The file, relative to the project; folders above it are made."),
  content: TextOrSecret.describe("The file's content; may be a secret."),
  mode: FileMode.default("0600").describe("The file's mode."),
});
type Args = z.output<typeof args>;

/**
 * Keeps a file of the project, such as a node's public key; it is replaced as a whole.
 * ```yaml
 * - { id: keys, run: local.file, each: "*", path: "keys/{{node.name}}.pub", content: "{{stages.identity.key.facts.public}}", mode: "0644" }
 * ```
 */
export const localFile = defineAction({
  name: "local.file",
  summary: "Keeps a file on the bastion, in the project.",
  outputs: [],
  args,
  bastionNames: ["path"],
  run: (given, context) => keep(given, context),
  plan: (given, context) => keep(given, context),
});

function keep(given: Args, context: Parameters<typeof keepFile>[1]): Promise<ActionResult> {
  const { content, path } = given;
  refusePrograms(content instanceof Secret ? content.reveal() : content, path);
  return keepFile(given, context);
}

/** Keys of a kubeconfig's user by which kubectl starts a program or reads a file. */
const foreignUserKeys = /^(exec|auth-provider|client-certificate|client-key|token-?file)$/i;
const usersKey = /^users$/i;

/** Refuses a kubeconfig that names programs or files: it can come from a node, and kubectl on the bastion would use them (S-4). */
function refusePrograms(text: string, path: string): void {
  const keys = keysIn(text);
  const key = keys.find((each) => foreignUserKeys.test(each));
  if (key === undefined || !keys.some((each) => usersKey.test(each))) return;
  throw new KcoreError({
    code: "KUBECONFIG_INVALID",
    message: `the content for ${path} is a kubeconfig with “${key}”: it names a program or a file of this machine`,
    hint: "kubernetes.takeKubeconfig keeps CA and credentials of a node's kubeconfig; your own kubeconfig belongs in the project as a file",
  });
}

/** Writes the file unless it has that content and mode already; in a dry run only says so. @throws KcoreError FILE_IN_THE_WAY, FILE_PARENT_UNSAFE, PROJECT_NOT_TRUSTED */
export async function keepFile(
  { path, content, mode }: Args,
  context: Pick<ActionContext, "project" | "trust" | "dryRun" | "note">,
): Promise<ActionResult> {
  const { dryRun, note } = context;
  const file = await safeProjectPath(path, context);
  const text = content instanceof Secret ? content.reveal() : content;
  const bits = Number.parseInt(mode, 8);
  if (await isUpToDate(file, text, bits)) return { changed: false, outputs: {} };
  note(`${dryRun ? "would write" : "wrote"} ${path}`);
  if (!dryRun) {
    await makeFolder(dirname(file));
    await replaceFile(file, text, { mode: bits });
  }
  return { changed: true, outputs: {} };
}

async function isUpToDate(file: string, text: string, mode: number): Promise<boolean> {
  const found = await ifThere(lstat(file));
  if (found?.isDirectory() === true)
    throw new KcoreError({ code: "FILE_IN_THE_WAY", message: `${file} is a folder`, hint: "name a file" });
  return found?.isFile() === true && (found.mode & 0o7777) === mode && (await readFile(file, "utf8")) === text;
}
