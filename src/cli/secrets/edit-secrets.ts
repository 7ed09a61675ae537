import { join } from "node:path";
import { replaceScalars } from "#engine/roster/edit.ts";
import { asFlow } from "#engine/roster/flow-yaml.ts";
import { checkPlace, placeText, scalarsOf, sealedIn } from "#engine/encrypted-values/places.ts";
import { requireRecipients, type Recipient, sealFor } from "#engine/encrypted-values/recipients.ts";
import { isEncrypted } from "#engine/step/encrypted-value.ts";
import type { SourceNode, SourceScalar } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { MAX_ROSTER_BYTES } from "#engine/yaml/regular-file.ts";
import { drawProblems } from "#errors/draw.ts";
import { KcoreError } from "#errors/problem.ts";
import type { CommonFlags } from "../options.ts";
import { askSecret } from "../terminal/ask-operator.ts";
import { canPrompt } from "../terminal/prompt.ts";
import { inEditor, type PrivateFile } from "./private-editor.ts";
import { nameIn, projectSecrets, textIfThere, readTree, writeText, type ProjectSecrets } from "./project-secrets.ts";
import { openAt } from "./value.ts";

/** The mark of an opened secret while the file is edited. */
const secretMark = "secret:";

interface OpenedSecret {
  /** The text in the file, quotes included. */
  readonly source: string;
  readonly sealed: string;
  readonly value: string;
}

/** `kcore secrets edit FILE`: opens the file with its secrets in an editor, and seals anew only secrets that changed. */
export async function editSecrets(file: string, { project: given }: CommonFlags): Promise<void> {
  const project = projectSecrets(given);
  const name = nameIn(project, file);
  const recipients = requireRecipients(await project.recipients());
  const text = await textIfThere(join(project.root, name));
  const known = text === "" ? new Map<string, OpenedSecret>() : await openAll(project, readTree(project, name));
  const shown = withOpenSecrets(name, text, known);
  await inEditor(shown, name, async (editor) => {
    for (;;) {
      const edited = await editor.edit();
      if (edited === shown) return void process.stdout.write("nothing was changed\n");
      try {
        return await save(project, { name, edited, known, recipients });
      } catch (error) {
        await offerRepair(error, editor);
      }
    }
  });
}

async function openAll(project: ProjectSecrets, root: SourceNode): Promise<ReadonlyMap<string, OpenedSecret>> {
  const known = new Map<string, OpenedSecret>();
  for (const placed of sealedIn(root)) {
    const { node, path } = placed;
    checkPlace(placed);
    const value = Buffer.from(await openAt(project, node)).toString();
    known.set(placeText(root.file.name, path), { source: node.source, sealed: String(node.value), value });
  }
  return known;
}

function withOpenSecrets(name: string, text: string, known: ReadonlyMap<string, OpenedSecret>): string {
  if (known.size === 0) return text;
  const root = parseSource(name, text, { maxBytes: MAX_ROSTER_BYTES });
  const values = sealedIn(root).map(({ node, path }) => {
    const { value = "" } = known.get(placeText(name, path)) ?? {};
    return [node, { text: `${secretMark}${value}`, written: JSON.stringify(`${secretMark}${value}`) }] as const;
  });
  return replaceScalars({ file: name, text }, root, new Map(values));
}

interface EditedFile {
  readonly name: string;
  readonly edited: string;
  readonly known: ReadonlyMap<string, OpenedSecret>;
  readonly recipients: readonly Recipient[];
}

async function save(project: ProjectSecrets, { name, edited, known, recipients }: EditedFile): Promise<void> {
  const root = parseSource(name, edited, { maxBytes: MAX_ROSTER_BYTES });
  refusePlain(name, root, known);
  const values = new Map<SourceScalar, { readonly text: string; readonly written: string }>();
  let changed = 0;
  for (const { node, path } of scalarsOf(root, isMarked)) {
    const place = placeText(name, path);
    const value = String(node.value).slice(secretMark.length);
    const before = known.get(place);
    if (before?.value === value) {
      values.set(node, { text: before.sealed, written: before.source });
      continue;
    }
    if (value === "")
      throw new KcoreError({ code: "USAGE", message: `${path.join(".")} is an empty secret`, at: node.at });
    const sealed = await sealFor(value, recipients, place);
    values.set(node, { text: sealed, written: asFlow(sealed) });
    changed++;
  }
  const text = replaceScalars({ file: name, text: edited }, root, values);
  await writeText(project, name, text);
  process.stdout.write(
    `${name} is written; ${changed} of its ${values.size} secrets ${changed === 1 ? "is" : "are"} sealed anew\n`,
  );
}

function isMarked(value: unknown): boolean {
  return typeof value === "string" && value.startsWith(secretMark);
}

/**
 * Refuses a plain text in the place of a secret: without the mark, which may be deleted by mistake, the secret would stand
 * in git. @throws KcoreError SECRET_PLAIN
 */
function refusePlain(name: string, root: SourceNode, known: ReadonlyMap<string, OpenedSecret>): void {
  const isReference = (value: unknown): boolean =>
    isMarked(value) || isEncrypted(value) || /^(env|file|command):/.test(String(value));
  const plain = scalarsOf(root, (value) => value !== null && !isReference(value)).filter(({ path }) =>
    known.has(placeText(name, path)),
  );
  if (plain.length === 0) return;
  throw new KcoreError(
    plain.map(({ path }) => ({
      code: "SECRET_PLAIN",
      message: `${path.join(".")} was sealed, and would stand in ${name} as plain text`,
      hint: `write “${secretMark}” before it; or delete its line, and add it in another editor`,
    })),
  );
}

/** Shows the mistakes and waits, so that the operator repairs the text instead of losing it. @throws the error if that is impossible */
async function offerRepair(error: unknown, editor: PrivateFile): Promise<void> {
  if (!(error instanceof KcoreError) || editor.isGone() || !canPrompt()) throw error;
  // The source lines hold secrets, so only the mistakes and their places are shown.
  process.stderr.write(drawProblems(error.problems.map((problem) => ({ ...problem, conceal: true as const }))));
  await askSecret("Enter edits again, Ctrl-C gives up");
}
