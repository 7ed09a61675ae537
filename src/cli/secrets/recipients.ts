import { homedir } from "node:os";
import { join } from "node:path";
import { setValue } from "#engine/roster/edit.ts";
import { removeEntry } from "#engine/roster/remove.ts";
import { identityFile, readIdentities } from "#engine/encrypted-values/identities.ts";
import { RECIPIENTS, recipientsIn } from "#engine/encrypted-values/recipients.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import type { CommonFlags } from "../options.ts";
import { printRows } from "../terminal/format-result.ts";
import { askSecret } from "../terminal/ask-operator.ts";
import type { ListSecretsFlags } from "./list-secrets.ts";
import { projectSecrets, sealedFiles, textIfThere, writeText } from "./project-secrets.ts";

const recipientsComment = "# The recipients of this project's secrets: kcore secrets recipients, docs/secrets.md\n";

/** `kcore secrets recipients list`. */
export async function listRecipients({ project: given, output }: ListSecretsFlags): Promise<void> {
  const recipients = (await projectSecrets(given).recipients()).map(({ name, key }) => ({ name, recipient: key }));
  const rows = recipients.map(({ name, recipient }) => [name, recipient]);
  printRows(recipients, output, ["NAME", "RECIPIENT"], rows, "none yet: kcore secrets recipients add NAME RECIPIENT");
}

/** `kcore secrets recipients add NAME [RECIPIENT]`. @throws KcoreError USAGE, SECRET_RECIPIENTS, SECRET_IDENTITY */
export async function addRecipient(
  name: string,
  recipient: string | undefined,
  { project: given }: CommonFlags,
): Promise<void> {
  const project = projectSecrets(given);
  if (!/^[A-Za-z0-9][A-Za-z0-9._@-]{0,62}$/.test(name))
    throw usageError(
      `“${name}” cannot name a recipient`,
      "letters, digits, “.”, “_”, “@” and “-”: alice, ci, ops@example.org",
    );
  const before = await project.recipients();
  if (before.some((one) => one.name === name))
    throw new KcoreError({
      code: "SECRET_RECIPIENTS",
      message: `“${name}” is a recipient already`,
      hint: `kcore secrets recipients remove ${name}`,
    });
  const key = recipient ?? (await ownRecipient());
  const old = await textIfThere(join(project.root, RECIPIENTS));
  const text = setValue({ file: RECIPIENTS, text: old === "" ? recipientsComment : old }, [name], key);
  await recipientsIn(parseSource(RECIPIENTS, text));
  await writeText(project, RECIPIENTS, text);
  process.stdout.write(`${name} is a recipient of this project's secrets\n`);
  if (sealedFiles(project).length > 0)
    process.stdout.write(`next: kcore secrets rotate, so that ${name} can open what is sealed already\n`);
  const kinds = new Set([...before.map((one) => one.key), key].map((one) => one.startsWith("age1pq1")));
  if (kinds.size > 1)
    process.stderr.write(
      "some recipients are not post-quantum (age1…, not age1pq1…): for them and so for all, values are only as safe as X25519\n",
    );
}

/** The recipient of this user's identity. @throws KcoreError SECRET_IDENTITY when there is none, or several */
async function ownRecipient(): Promise<string> {
  const file = identityFile(process.env, homedir());
  const identities = await readIdentities(file, askSecret);
  const { recipientOf } = await import("#engine/encrypted-values/age.ts");
  const [own = "", ...more] = await Promise.all(identities.map(recipientOf));
  if (more.length === 0) return own;
  throw new KcoreError({
    code: "SECRET_IDENTITY",
    message: `${file} holds ${identities.length} identities`,
    hint: `say whose recipient is meant: ${[own, ...more].join(", ")}`,
  });
}

/** `kcore secrets recipients remove NAME`. @throws KcoreError SECRET_RECIPIENTS */
export async function removeRecipient(name: string, { project: given }: CommonFlags): Promise<void> {
  const project = projectSecrets(given);
  const names = (await project.recipients()).map((one) => one.name);
  if (!names.includes(name))
    throw new KcoreError({
      code: "SECRET_RECIPIENTS",
      message: `“${name}” is no recipient`,
      hint: names.length === 0 ? "there are none" : `there are: ${names.join(", ")}`,
    });
  const text = await textIfThere(join(project.root, RECIPIENTS));
  await writeText(project, RECIPIENTS, removeEntry({ file: RECIPIENTS, text }, name));
  process.stdout.write(`${name} is no recipient any more of what is sealed from now on\n`);
  process.stdout.write(
    `next: kcore secrets rotate; ${name} still knows every value so far, and git keeps them: change the secrets themselves where they are used\n`,
  );
}
