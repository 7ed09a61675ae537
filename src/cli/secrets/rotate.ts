import { replaceScalars } from "#engine/roster/edit.ts";
import { checkPlace, placeText, sealedIn, type PlacedScalar } from "#engine/encrypted-values/places.ts";
import { requireRecipients, type Recipient, sealFor } from "#engine/encrypted-values/recipients.ts";
import { headerOf } from "#engine/encrypted-values/header.ts";
import { Problems } from "#engine/yaml/problems.ts";
import type { SourceNode, SourceScalar } from "#engine/yaml/node.ts";
import { KcoreError } from "#errors/problem.ts";
import type { CommonFlags } from "../options.ts";
import { printRows } from "../terminal/format-result.ts";
import { projectSecrets, sealedFiles, writeText, type ProjectSecrets } from "./project-secrets.ts";
import { openAt } from "./value.ts";

export interface RotateFlags extends CommonFlags {
  readonly moved?: boolean;
  readonly output: "table" | "json";
}

/**
 * `kcore secrets rotate`: seals every value of the project to the present recipients. All values are opened before
 * anything is written; each file is written whole.
 */
export async function rotateSecrets({ project: given, moved = false, output }: RotateFlags): Promise<void> {
  const project = projectSecrets(given);
  const recipients = requireRecipients(await project.recipients());
  const files = sealedFiles(project);
  const opened = await openAll(project, files, moved);
  const rows: { readonly file: string; readonly secrets: number }[] = [];
  for (const root of files) {
    const { name, text } = root.file;
    const values = new Map<SourceScalar, { readonly text: string }>();
    for (const { node, path } of sealedIn(root))
      values.set(node, { text: await sealFor(opened.get(node) as Uint8Array, recipients, placeText(name, path)) });
    await writeText(project, name, replaceScalars({ file: name, text }, root, values));
    rows.push({ file: name, secrets: values.size });
  }
  const cells = rows.map(({ file, secrets }) => [file, String(secrets)]);
  printRows(rows, output, ["FILE", "SECRETS"], cells, "nothing is sealed yet: kcore secrets set FILE PATH");
  warnOfFormer(files, recipients);
}

async function openAll(
  project: ProjectSecrets,
  files: readonly SourceNode[],
  moved: boolean,
): Promise<ReadonlyMap<SourceScalar, Uint8Array>> {
  const problems = new Problems();
  const opened = new Map<SourceScalar, Uint8Array>();
  for (const placed of files.flatMap(sealedIn))
    try {
      opened.set(placed.node, await openPlaced(project, placed, moved));
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      problems.add(...error.problems);
    }
  problems.throwIfAny();
  return opened;
}

function openPlaced(project: ProjectSecrets, placed: PlacedScalar, moved: boolean): Promise<Uint8Array> {
  if (!moved) checkPlace(placed);
  return openAt(project, placed.node);
}

/** Warns of former recipients, who can still read the old ciphertext in git. */
function warnOfFormer(files: readonly SourceNode[], recipients: readonly Recipient[]): void {
  const present = new Set(recipients.map(({ fingerprint }) => fingerprint));
  const count = files
    .flatMap(sealedIn)
    .filter(({ node }) => headerOf(String(node.value)).fingerprints.some((one) => !present.has(one))).length;
  if (count > 0)
    process.stderr.write(
      `${count} ${count === 1 ? "value was" : "values were"} sealed to a former recipient, who still knows ${count === 1 ? "it" : "them"}: change the secrets themselves where they are used, then kcore secrets set\n`,
    );
}
